/** The image folder of a container runtime: from the runtime itself, its configuration, or the default. */
import { readFile } from 'node:fs/promises';
import type { RuntimeName } from '../images/image-runtime.ts';
import { tryProgram } from '../../platform/process/run-program.ts';

export interface ImageRootOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** containerd's configuration file; another one in tests. */
  readonly config?: string;
  readonly signal: AbortSignal;
}

const DEFAULT: Readonly<Record<RuntimeName, string>> = { containerd: '/var/lib/containerd', docker: '/var/lib/docker' };
const CONTAINERD_CONFIG = '/etc/containerd/config.toml';
const ANSWER_MS = 10_000;
const MAX_OUTPUT = 1 << 20;

/** An absolute path; it need not exist. */
export async function imageRoot(name: RuntimeName, options: ImageRootOptions): Promise<string> {
  const root = name === 'docker' ? await dockerRoot(options) : await containerdRoot(options);
  return root?.startsWith('/') === true ? root : DEFAULT[name];
}

async function dockerRoot(options: ImageRootOptions): Promise<string | undefined> {
  const answer = await output(['docker', 'info', '--format', '{{.DockerRootDir}}'], options);
  return answer?.trim();
}

async function containerdRoot(options: ImageRootOptions): Promise<string | undefined> {
  const { config = CONTAINERD_CONFIG } = options;
  const dumped = await output(['containerd', '--config', config, 'config', 'dump'], options);
  return tomlRoot(dumped ?? (await readFile(config, 'utf8').catch(() => '')));
}

/** The `root` of a containerd configuration, a key before the first table. */
export function tomlRoot(text: string): string | undefined {
  for (const line of text.split('\n')) {
    if (/^\s*\[/.test(line)) return undefined;
    const [, double, single] = /^\s*root\s*=\s*(?:"([^"\\]*)"|'([^']*)')\s*(?:#.*)?$/.exec(line) ?? [];
    const root = double ?? single;
    if (root !== undefined && root !== '') return root;
  }
  return undefined;
}

async function output(
  [command, ...args]: readonly [string, ...string[]],
  { env, signal }: ImageRootOptions,
): Promise<string | undefined> {
  const limits = { limitMs: ANSWER_MS, outputLimit: MAX_OUTPUT };
  return tryProgram(command, args, { env, signal, ...limits }, ({ stdout, error }) => {
    return error === undefined ? stdout : undefined;
  });
}
