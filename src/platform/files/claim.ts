/**
 * Locks: one process at a time holds a file that names it. A lock whose owner is dead is detected, and exactly one of the
 * competing processes takes it over.
 */
import { randomBytes } from 'node:crypto';
import { constants, copyFile, link, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError, succeeds } from '../../core/errors.ts';
import { isOwnerRunning, ownerText, parseOwner } from './owner.ts';
import { partialName, writeAside } from './partial.ts';

/** Bytes: a lock is one short line. */
const LIMIT = 256;

/**
 * Claims the writing of `path` until the result is disposed of. `BUSY` while a running process holds the claim, a file next to
 * `path`; a claim of a process that has ended is taken over.
 */
export async function claim(path: string): Promise<AsyncDisposable> {
  try {
    return await takeLock(join(dirname(path), `.${basename(path)}.claim`), (pid) => {
      return new CurlewError('BUSY', `${path} is being written by process ${pid}`, {
        hint: 'wait for it to finish, then run the same command again',
      });
    });
  } catch (error) {
    throw fileError(`write ${path}`, error);
  }
}

/**
 * Takes the lock `file`, or throws what `busy` returns for the process that holds it. Disposing of the result releases the lock.
 * Errors of the system are thrown as they are.
 */
export async function takeLock(file: string, busy: (pid: number) => CurlewError): Promise<AsyncDisposable> {
  // Unique, so that the text identifies one lock.
  const own = `${ownerText()} ${randomBytes(8).toString('hex')}\n`;
  // Synced: after a power failure, empty locks and claims could not be distinguished.
  await writeAside(
    dirname(file),
    0o644,
    async (offer) => offer.writeFile(own),
    async (offer) => {
      while (!(await tryLink(offer, file))) await takeOver(file, offer, own, busy);
    },
  );
  await clearClaims(file);
  return {
    [Symbol.asyncDispose]: async () => {
      if ((await textOf(file)) === own) await rm(file, { force: true });
    },
  };
}

/** Process ID of the running process that holds a lock; undefined if there is none. */
export async function lockOwner(file: string): Promise<number | undefined> {
  return runningOwner(await textOf(file));
}

function runningOwner(text: string | undefined): number | undefined {
  const owner = parseOwner(text ?? '');
  return owner !== undefined && isOwnerRunning(owner) === true ? owner.pid : undefined;
}

/** Undefined if it does not exist, empty for anything that is not a lock. Does not follow a link or wait for a pipe in its place. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LIMIT), 0, LIMIT, null);
    return buffer.toString('utf8', 0, bytesRead);
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT') return undefined;
    // A lock that cannot be read may have an owner.
    if (code === 'ELOOP' || code === 'ENXIO' || code === 'EAGAIN') return '';
    throw error;
  }
}

/** A hard link is atomic and fails when the name is taken: false. */
async function tryLink(from: string, to: string): Promise<boolean> {
  // File systems of other operating systems have no hard links.
  const linking = link(from, to).catch(async (error: unknown) => {
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) throw error;
    await copyFile(from, to, constants.COPYFILE_EXCL);
  });
  return succeeds(['EEXIST'], linking);
}

/** Path of a claim on a lock; its name is derived from the text of the lock, and of the claims before it. */
function claimOn(file: string, texts: readonly string[]): string {
  return `${file}.claim-${hexOf(digestOf(texts.join('\n'))).slice(0, 16)}`;
}

/**
 * Removes the lock of a dead owner. The right to do so is a claim: a file whose name is derived from the text of the lock, so
 * at most one process holds it. A claim whose owner is dead is taken over in the same way.
 */
async function takeOver(file: string, offer: string, own: string, busy: (pid: number) => CurlewError): Promise<void> {
  const stale = await textOf(file);
  if (stale === undefined) return;
  const claims: string[] = [];
  let taken = stale;
  for (;;) {
    const owner = taken === own ? undefined : runningOwner(taken);
    if (owner !== undefined) throw busy(owner);
    // The name includes the claims before it, so that claims with the same text (empty ones) do not form a cycle.
    const next = claimOn(file, [...claims, taken]);
    claims.push(next);
    if (await tryLink(offer, next)) break;
    taken = (await textOf(next)) ?? stale;
  }
  try {
    // Another process may have taken it over and released the claim since it was read.
    if ((await textOf(file)) === stale) {
      const dead = join(dirname(file), partialName());
      await rename(file, dead);
      await rm(dead, { force: true });
    }
  } finally {
    for (const path of claims) await rm(path, { force: true });
  }
}

/** Removes claims of processes that died while they took over the lock. */
async function clearClaims(file: string): Promise<void> {
  const prefix = `${basename(file)}.claim-`;
  for (const name of await readdir(dirname(file))) {
    const path = join(dirname(file), name);
    if (name.startsWith(prefix) && runningOwner(await textOf(path)) === undefined) await rm(path, { force: true });
  }
}
