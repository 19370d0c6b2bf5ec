/** The container runtimes that images are loaded into: each a daemon of its own, and the environment that leads to it. */
import { execa } from 'execa';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { findImageRuntime } from '../../../src/runtime/images/find-runtime.ts';
import type { ImageRuntime } from '../../../src/runtime/images/image-runtime.ts';
import { leftToOtherRuns } from '../../support/sweep.ts';
import { cannotRun, ROOT } from './programs.ts';
import { startContainerd, startDockerd, type SocketDaemon } from './services.ts';

export type Env = Readonly<Record<string, string>>;

export interface RuntimeKind {
  readonly title: string;
  readonly name: ImageRuntime['name'];
  /** Why it cannot be tried here. */
  readonly why: string | undefined;
  /** Folder of its programs when they are not those in PATH. */
  readonly programs: string | undefined;
  readonly start: (folder: string) => Promise<SocketDaemon>;
}

const NEW_CONTAINERD = join(ROOT, '.curlew/tools/containerd-2');

const CONTAINERDS: readonly RuntimeKind[] = [
  {
    title: 'containerd 1.6',
    name: 'containerd',
    why: cannotRun('ctr', 'containerd'),
    programs: undefined,
    start: async (folder) => startContainerd(folder),
  },
  {
    title: 'containerd 2',
    name: 'containerd',
    why: cannotRun(join(NEW_CONTAINERD, 'ctr'), join(NEW_CONTAINERD, 'containerd')),
    programs: NEW_CONTAINERD,
    start: async (folder) => startContainerd(folder, { programs: NEW_CONTAINERD }),
  },
];

const DOCKER: RuntimeKind = {
  title: 'docker',
  name: 'docker',
  why: cannotRun('dockerd', 'docker'),
  programs: undefined,
  start: startDockerd,
};

/** Where several would be tried, a run takes one of them, by its seed. */
function inTurn(kinds: readonly RuntimeKind[]): readonly RuntimeKind[] {
  return kinds.map((kind) => ({ ...kind, why: leftToOtherRuns(kind, kinds) ?? kind.why }));
}

export const docker = (): RuntimeKind => DOCKER;
export const containerds = (): readonly RuntimeKind[] => inTurn(CONTAINERDS);
export const runtimeKinds = (): readonly RuntimeKind[] => inTurn([...CONTAINERDS, DOCKER]);

/** What leads to this daemon alone. */
export function envOf({ name, programs }: RuntimeKind, { socket }: SocketDaemon): Env {
  const path = ['/usr/bin', process.env['PATH'] ?? ''].join(':');
  return {
    PATH: programs === undefined ? path : `${programs}:${path}`,
    CONTAINERD_ADDRESS: name === 'containerd' ? socket : '/nowhere.sock',
    DOCKER_HOST: name === 'docker' ? `unix://${socket}` : 'unix:///nowhere.sock',
  };
}

/** A runtime that answers, of the kind that was meant. */
export async function runtimeAt(kind: RuntimeKind, env: Env, signal: AbortSignal): Promise<ImageRuntime> {
  const runtime = await findImageRuntime({ env, signal });
  if (runtime?.name !== kind.name) throw new Error(`${kind.title}: ${runtime?.name ?? 'nothing'} answered`);
  return runtime;
}

/** `ctr` in the namespace of Kubernetes, or `docker`. */
export async function client({ name }: RuntimeKind, env: Env, ...words: readonly string[]): Promise<string> {
  const command = name === 'docker' ? 'docker' : 'ctr';
  const { stdout } = await execa(command, [...(name === 'docker' ? [] : ['-n', 'k8s.io']), ...words], { env });
  return stdout;
}

/** The environment with a client before the real one. `$REAL` in its text is the real one. */
export async function withShim(
  folder: string,
  env: Env,
  text: string,
  program: 'ctr' | 'docker' = 'ctr',
): Promise<Env> {
  const { stdout: real } = await execa('bash', ['-c', 'command -v "$1"', 'bash', program], { env });
  const shim = join(folder, program);
  await mkdir(dirname(shim), { recursive: true });
  await writeFile(shim, `#!/bin/bash\nREAL='${real}'\n${text}\nexec "$REAL" "$@"\n`, { mode: 0o755 });
  return { ...env, PATH: `${folder}:${env['PATH'] ?? ''}` };
}
