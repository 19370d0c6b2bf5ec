/** Facts about this machine: file systems and their space, memory, its address. Changes nothing. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { lstat, readdir, readFile, realpath, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CurlewError, asError, isMissing } from '../../core/errors.ts';
import { mountOf, parseMounts } from '../../platform/files/mounts.ts';
import type { NodePlace } from '../node/node-place.ts';
import type { MountFacts } from '../plan/disk.ts';

export interface MemoryFacts {
  /** Bytes. */
  readonly total: number;
  /** Bytes that programs can allocate without swapping. */
  readonly available: number;
}

export interface FactOptions {
  /** The proc file system; another folder in tests. */
  readonly proc?: string;
  readonly signal: AbortSignal;
}

const PROC = '/proc';

/**
 * The file systems of these absolute paths, each once, in the order of the paths; and the mount of each path. Files cannot be
 * linked or renamed from one mount to another, also if both show the same file system, as bind mounts do.
 */
export async function mountsOf(
  paths: readonly string[],
  { proc = PROC, signal }: FactOptions,
): Promise<{ readonly mounts: readonly MountFacts[]; readonly points: ReadonlyMap<string, string> }> {
  const table = parseMounts(await readFile(join(proc, 'self/mountinfo'), 'utf8').catch(() => ''));
  const byDevice = new Map<string, MountFacts>();
  const points = new Map<string, string>();
  for (const path of paths) {
    signal.throwIfAborted();
    const folder = await existing(path);
    const mount = mountOf(folder, table);
    const device = mount?.device ?? String((await stat(folder)).dev);
    points.set(path, mount?.mountPoint ?? device);
    const known = byDevice.get(device);
    byDevice.set(
      device,
      known === undefined
        ? { device, mountPoint: mount?.mountPoint ?? folder, paths: [path], ...(await spaceOf(folder)) }
        : { ...known, paths: [...known.paths, path] },
    );
  }
  return { mounts: [...byDevice.values()], points };
}

/**
 * Hooks run programs from the install folder: throws `FILE_UNUSABLE` if it is on a noexec mount. The folder need
 * not exist.
 */
export async function requirePrograms(
  { directory, option }: Pick<NodePlace, 'directory' | 'option'>,
  { proc = PROC }: FactOptions,
): Promise<void> {
  const mounts = parseMounts(await readFile(join(proc, 'self/mountinfo'), 'utf8').catch(() => ''));
  const { noexec, mountPoint } = mountOf(await existing(directory), mounts) ?? {};
  if (noexec !== true) return;
  const what = `cannot install into ${directory}: ${mountPoint} is mounted noexec, and hooks run programs from it`;
  throw new CurlewError('FILE_UNUSABLE', what, {
    hint: `use another folder with ${option}, or run: mount -o remount,exec ${mountPoint}`,
  });
}

async function spaceOf(path: string): Promise<Pick<MountFacts, 'total' | 'free' | 'inodes'>> {
  const { bsize, blocks, bavail, files, ffree } = await statfs(path);
  // Some file systems allocate inodes on demand and report none.
  const inodes = files === 0 ? undefined : { total: files, free: ffree };
  return { total: blocks * bsize, free: bavail * bsize, inodes };
}

/** The nearest existing folder above a path, with links resolved. */
async function existing(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    try {
      return await realpath(at);
    } catch (error) {
      if (isMissing(error) && dirname(at) !== at) continue;
      throw new CurlewError('FILE_UNUSABLE', `cannot inspect ${at}: ${asError(error).message}`, { cause: error });
    }
  }
}

/** Bytes on disk of everything below a folder; unreadable files are not counted. */
export async function takenBy(folder: string, { signal }: Pick<FactOptions, 'signal'>): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    signal.throwIfAborted();
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += await takenBy(path, { signal });
    const blocks = await lstat(path).then(
      (stats) => stats.blocks,
      () => 0,
    );
    bytes += blocks * BLOCK;
  }
  return bytes;
}

/** Unit of `blocks` in stat(2). */
const BLOCK = 512;

/** Undefined if the kernel does not report it. */
export async function memoryFacts({ proc = PROC }: FactOptions): Promise<MemoryFacts | undefined> {
  const text = await readFile(join(proc, 'meminfo'), 'utf8').catch(() => '');
  const bytes = (name: string): number | undefined => {
    const [, kibibytes] = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text) ?? [];
    return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
  };
  const [total, available] = [bytes('MemTotal'), bytes('MemAvailable')];
  return total === undefined || available === undefined ? undefined : { total, available };
}

/** Addresses reserved for documentation: they are always reached through the default route. */
const FAR_AWAY = { 4: '203.0.113.1', 6: '2001:db8::1' } as const;

/** The source address of this machine's default route, if it has one. Sends nothing. */
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
