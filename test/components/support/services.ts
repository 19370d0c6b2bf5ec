/** The services that component tests talk to: Debian's registry, a Docker engine, containerd. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../support/ports.ts';
import { startDaemon, type Daemon } from './daemon.ts';
import { succeeds } from './programs.ts';

export interface RegistryDaemon extends Daemon {
  /** `127.0.0.1:<port>` */
  readonly host: string;
}

export interface SocketDaemon extends Daemon {
  /** Path of its unix socket. */
  readonly socket: string;
}

/** Debian's `docker-registry` on loopback, with its storage in `folder`. */
export async function startRegistry(folder: string): Promise<RegistryDaemon> {
  const storage = join(folder, 'storage');
  const config = join(folder, 'registry.json');
  await mkdir(storage, { recursive: true });
  const host = `127.0.0.1:${await freePort()}`;
  // JSON is YAML.
  const settings = {
    version: '0.1',
    log: { level: 'warn', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: storage }, delete: { enabled: true } },
    http: { addr: host },
  };
  await writeFile(config, JSON.stringify(settings));
  const daemon = await startDaemon({
    command: 'docker-registry',
    args: ['serve', config],
    logFile: join(folder, 'registry.log'),
    ready: async () => (await fetch(`http://${host}/v2/`)).ok,
  });
  return { ...daemon, host };
}

/** A Docker engine of its own: no network for containers, so it changes nothing on the machine outside `folder`. */
export async function startDockerd(folder: string): Promise<SocketDaemon> {
  await mkdir(folder, { recursive: true });
  const socket = join(folder, 'docker.sock');
  const daemon = await startDaemon({
    command: 'dockerd',
    args: [
      ['--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec')],
      ['--pidfile', join(folder, 'docker.pid'), '--host', `unix://${socket}`],
      ['--bridge', 'none', '--iptables=false', '--ip-forward=false', '--ip-masq=false'],
    ].flat(),
    logFile: join(folder, 'dockerd.log'),
    ready: async () => succeeds('/usr/bin/docker', ['--host', `unix://${socket}`, 'version']),
  });
  const stop = async (): Promise<void> => {
    await daemon[Symbol.asyncDispose]();
    // Where the root of the machine is a folder of another file system, the engine leaves a mount on its data behind.
    await succeeds('umount', ['--quiet', join(folder, 'data')]);
    // A container on the machine's own network leaves one here.
    await succeeds('umount', ['--quiet', join(folder, 'exec/netns/default')]);
  };
  return { ...daemon, socket, [Symbol.asyncDispose]: stop };
}

export interface ContainerdOptions {
  /** Folder of `containerd` and `ctr`; those in PATH when it is left out. */
  readonly programs?: string | undefined;
}

/** containerd alone, without its Kubernetes part, below `folder`. */
export async function startContainerd(folder: string, { programs }: ContainerdOptions = {}): Promise<SocketDaemon> {
  await mkdir(folder, { recursive: true });
  const socket = join(folder, 'containerd.sock');
  const config = join(folder, 'containerd.toml');
  await writeFile(config, 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n');
  const program = (name: string): string => (programs === undefined ? name : join(programs, name));
  const daemon = await startDaemon({
    command: program('containerd'),
    args: [
      ['--config', config, '--address', socket],
      ['--root', join(folder, 'root'), '--state', join(folder, 'state')],
    ].flat(),
    logFile: join(folder, 'containerd.log'),
    ready: async () => succeeds(program('ctr'), ['--address', socket, 'version']),
  });
  return { ...daemon, socket };
}
