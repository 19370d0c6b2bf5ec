/** A Docker engine with one small image, and a list of all that is in it, to compare before and after. */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { createContainers, type Containers } from '../../../src/build/containers/containers.ts';
import type { ProgressEvent, Report } from '../../../src/core/events.ts';
import { createRegistryClient } from '../../../src/build/registry/client.ts';
import { ANONYMOUS } from '../../../src/build/registry/credentials.ts';
import { quickHttp } from '../../support/client.ts';
import { noReport } from '../../support/context.ts';
import { run, shell } from './programs.ts';
import { startDockerd } from './services.ts';

export const BASE = 'base:1';

export interface EngineBox extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  /** Runs Docker's own client. */
  readonly docker: (...args: readonly string[]) => Promise<string>;
  /** Every container, image, volume and network that is there now. */
  readonly inventory: () => Promise<readonly string[]>;
}

const APPLETS = ['sh', 'cat', 'cp', 'dd', 'env', 'false', 'ln', 'ls', 'mkdir', 'mkfifo', 'mknod', 'rm', 'seq', 'sleep'];

/** An engine below `folder` whose image `base:1` is Debian's static busybox, with bash where it is installed. */
export async function startEngine(folder: string): Promise<EngineBox> {
  const daemon = await startDockerd(folder);
  const docker = async (...args: readonly string[]): Promise<string> =>
    run('/usr/bin/docker', ['--host', `unix://${daemon.socket}`, ...args]);
  const root = join(folder, 'base');
  await mkdir(join(root, 'bin'), { recursive: true });
  await mkdir(join(root, 'tmp'));
  await copyFile('/bin/busybox', join(root, 'bin/busybox'));
  if (existsSync('/bin/bash-static')) await copyFile('/bin/bash-static', join(root, 'bin/bash'));
  for (const name of [...APPLETS, 'dirname', 'printf', 'test', 'touch', 'true'])
    await symlink('busybox', join(root, 'bin', name));
  await shell('tar -C "$1" -cf - . | /usr/bin/docker --host "unix://$2" import - "$3"', root, daemon.socket, BASE);
  return {
    env: { DOCKER_HOST: `unix://${daemon.socket}` },
    docker,
    inventory: async () => {
      const lists = await Promise.all([
        docker('container', 'ls', '--all', '--format', 'container {{.Names}} {{.Image}}'),
        docker('image', 'ls', '--all', '--no-trunc', '--format', 'image {{.ID}} {{.Repository}}:{{.Tag}}'),
        docker('volume', 'ls', '--format', 'volume {{.Name}}'),
        docker('network', 'ls', '--format', 'network {{.Name}}'),
      ]);
      return lists
        .flatMap((text) => text.split('\n'))
        .filter((line) => line !== '')
        .toSorted();
    },
    [Symbol.asyncDispose]: async () => daemon[Symbol.asyncDispose](),
  };
}

export interface OpenContainers extends AsyncDisposable {
  readonly containers: Containers;
  readonly events: ProgressEvent[];
  readonly report: Report;
  /** Lines that programs have said. */
  readonly lines: () => readonly string[];
}

/** The containers of one run against an engine, with what they tell. */
export async function openContainers(
  env: Readonly<Record<string, string>>,
  heard: Report = noReport,
  network?: string,
): Promise<OpenContainers> {
  const events: ProgressEvent[] = [];
  const report: Report = (event) => {
    events.push(event);
    heard(event);
  };
  const http = await quickHttp();
  const registry = createRegistryClient({ http, credentials: ANONYMOUS });
  const containers = createContainers({ env, registry, network, report });
  return {
    containers,
    events,
    report,
    lines: () => events.flatMap((event) => (event.type === 'step-log' ? [event.text] : [])),
    [Symbol.asyncDispose]: async () => {
      await containers[Symbol.asyncDispose]();
      await http.close();
    },
  };
}
