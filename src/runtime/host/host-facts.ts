/** Facts about this machine: file systems and their room, memory, its address. Nothing is changed. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { lstat, readdir, readFile, realpath, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { asError, CurlewError, errnoOf } from '../../core/errors.ts';
import { mountOf, parseMounts } from '../../platform/files/mounts.ts';

/** A file system that holds some of the paths asked for. */
export interface MountFacts {
  /** Names the file system: mounts of the same one share their room. */
  readonly device: string;
  readonly mountPoint: string;
  /** Those asked for that lie on it, whether they exist yet or not. */
  readonly paths: readonly string[];
  /** Bytes. */
  readonly total: number;
  /** Bytes that are left to everybody; what is set aside for root does not count. */
  readonly free: number;
  /** Files that can still be made; undefined where there is no such limit. */
  readonly inodes: { readonly total: number; readonly free: number } | undefined;
}

export interface MemoryFacts {
  /** Bytes. */
  readonly total: number;
  /** Bytes that programs can get without swapping. */
  readonly available: number;
}

export interface FactOptions {
  /** Where the kernel shows itself; another folder in tests. */
  readonly proc?: string;
  readonly signal: AbortSignal;
}

const PROC = '/proc';

/** The file systems of these absolute paths, each once, in the order of the paths. */
export async function mountsOf(
  paths: readonly string[],
  { proc = PROC, signal }: FactOptions,
): Promise<readonly MountFacts[]> {
  const mounts = parseMounts(await readFile(join(proc, 'self/mountinfo'), 'utf8').catch(() => ''));
  const found = new Map<string, MountFacts>();
  for (const path of paths) {
    signal.throwIfAborted();
    const there = await existing(path);
    const { device, mountPoint } = mountOf(there, mounts) ?? {
      device: String((await stat(there)).dev),
      mountPoint: there,
    };
    const known = found.get(device);
    found.set(
      device,
      known === undefined
        ? { device, mountPoint, paths: [path], ...(await roomOf(there)) }
        : { ...known, paths: [...known.paths, path] },
    );
  }
  return [...found.values()];
}

/** Where the file system of an absolute path is mounted, if no program on it may run. */
export async function noexecMount(path: string, { proc = PROC }: FactOptions): Promise<string | undefined> {
  const mounts = parseMounts(await readFile(join(proc, 'self/mountinfo'), 'utf8').catch(() => ''));
  const mount = mountOf(await existing(path), mounts);
  return mount?.noexec === true ? mount.mountPoint : undefined;
}

async function roomOf(path: string): Promise<Pick<MountFacts, 'total' | 'free' | 'inodes'>> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(path);
  // Some file systems make inodes as they are wanted, and count none.
  const inodes = files === 0 ? undefined : { total: files, free: ffree };
  return { total: blocks * bsize, free: bavail * bsize, inodes };
}

/** The nearest folder upwards that exists, without links. */
async function existing(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    try {
      return await realpath(at);
    } catch (error) {
      const errno = errnoOf(error);
      if ((errno === 'ENOENT' || errno === 'ENOTDIR') && dirname(at) !== at) continue;
      throw new CurlewError('FILE_UNUSABLE', `look at ${at}: ${asError(error).message}`, { cause: error });
    }
  }
}

/** Bytes that everything below a folder takes on its disk; what cannot be looked at counts for nothing. */
export async function takenBy(folder: string, { signal }: Pick<FactOptions, 'signal'>): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    signal.throwIfAborted();
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += await takenBy(path, { signal });
    const blocks = await lstat(path).then(
      (found) => found.blocks,
      () => 0,
    );
    bytes += blocks * BLOCK;
  }
  return bytes;
}

/** What stat(2) counts blocks in. */
const BLOCK = 512;

/** Undefined where the kernel does not say. */
export async function memoryFacts({ proc = PROC }: FactOptions): Promise<MemoryFacts | undefined> {
  const text = await readFile(join(proc, 'meminfo'), 'utf8').catch(() => '');
  const bytes = (name: string): number | undefined => {
    const [, kibibytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text) ?? [];
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
  };
  const [total, available] = [bytes('MemTotal'), bytes('MemAvailable')];
  return total === undefined || available === undefined ? undefined : { total, available };
}

/** Addresses for documentation, which no network has: what leads to them leads to all others. */
const FAR_AWAY = { 4: '203.0.113.1', 6: '2001:db8::1' } as const;

/** The address by which this machine reaches others: that of its default route, where it has one. Nothing is sent. */
export async function addressOfDefaultRoute(version: 4 | 6): Promise<string | undefined> {
  const socket = createSocket(version === 4 ? 'udp4' : 'udp6');
  try {
    socket.connect(9, FAR_AWAY[version]);
    await once(socket, 'connect');
    return socket.address().address;
  } catch {
    return undefined;
  } finally {
    socket.close();
  }
}
