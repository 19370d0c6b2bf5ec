/**
 * Locks an install folder: one run at a time. The lock names its owner by PID, start time and boot ID. A lock whose owner is
 * dead is detected, and exactly one of the competing processes takes it over.
 */
import { randomBytes } from 'node:crypto';
import { link, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { readStateFile } from '../../platform/files/state-file.ts';
import { writeNew } from '../../platform/files/write-new.ts';
import { bootId, isProcessRunning, processInfo } from '../../platform/process/process-tree.ts';

/** The run that holds the lock. Partial files have owners, too: platform/files/owner.ts. */
interface LockOwner {
  readonly pid: number;
  readonly start: string;
  readonly boot: string;
  /** Makes the text of every lock unique. */
  readonly nonce: string;
}

/** Takes the lock or throws `BUSY`. Disposing it releases the lock. */
export async function lockFolder(directory: string): Promise<AsyncDisposable> {
  const path = join(directory, nodePath.lock);
  const own = await ownText();
  const offer = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    try {
      // Synced: after a power failure, empty locks and claims could not be distinguished.
      await writeNew(offer, own, 0o600);
      while (!(await tryLink(offer, path))) await takeOver(path, offer, own);
    } finally {
      await rm(offer, { force: true });
    }
    await clearOffers(directory, own);
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(errnoOf(error) ?? '')) throw fileError(`lock ${directory}`, error);
    // The message does not mention the lock: it is free. Nor another folder, which would be another node.
    throw new CurlewError(
      'NO_SPACE',
      `cannot start a run in ${directory}: no space left on its disk; nothing was changed`,
      {
        hint: `free some space there (see df -h ${directory} and df -i ${directory}), then run the same command again`,
        cause: error,
      },
    );
  }
  return {
    [Symbol.asyncDispose]: async () => {
      if ((await textOf(path)) === own) await rm(path, { force: true });
    },
  };
}

/** Process ID of the run in progress on a folder; undefined if there is none. Does not take the lock. */
export async function lockOwner(directory: string): Promise<number | undefined> {
  const text = await textOf(join(directory, nodePath.lock)).catch(() => undefined);
  const owner = text === undefined ? undefined : parseOwner(text);
  return owner !== undefined && (await isLockOwnerAlive(owner)) ? owner.pid : undefined;
}

async function ownText(): Promise<string> {
  const own = processInfo(process.pid);
  const owner: LockOwner = {
    pid: process.pid,
    start: own?.start ?? '',
    boot: await bootId(),
    nonce: randomBytes(8).toString('hex'),
  };
  return `${JSON.stringify(owner)}\n`;
}

async function tryLink(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Bytes: an owner is one short line. */
const LIMIT = 4096;

async function textOf(path: string): Promise<string | undefined> {
  return readStateFile(path, LIMIT);
}

/**
 * Removes the lock of a dead owner. The right to do so is a claim: a file whose name is derived from the text of the lock, so
 * at most one process holds it. A claim whose owner is dead is taken over in the same way.
 */
async function takeOver(path: string, offer: string, own: string): Promise<void> {
  const stale = await textOf(path);
  if (stale === undefined) return;
  const claims: string[] = [];
  let taken = stale;
  for (;;) {
    const owner = parseOwner(taken);
    if (taken !== own && owner !== undefined && (await isLockOwnerAlive(owner))) throw busy(path, owner);
    // The name includes the claims before it, so that claims with the same text (empty ones) do not form a cycle.
    const claim = `${path}.claim-${hexOf(digestOf([...claims, taken].join('\n'))).slice(0, 16)}`;
    claims.push(claim);
    if (await tryLink(offer, claim)) break;
    taken = (await textOf(claim)) ?? stale;
  }
  try {
    // Another process may have taken it over and released the claim since it was read.
    if ((await textOf(path)) === stale) {
      const dead = `${offer}.dead`;
      await rename(path, dead);
      await rm(dead, { force: true });
    }
  } finally {
    for (const claim of claims) await rm(claim, { force: true });
  }
}

/** Removes files of processes that died while they took or released the lock. */
async function clearOffers(directory: string, own: string): Promise<void> {
  const prefix = `${nodePath.lock}.`;
  for (const name of await readdir(directory)) {
    if (!name.startsWith(prefix)) continue;
    const path = join(directory, name);
    const text = await textOf(path).catch(() => undefined);
    const owner = text === undefined ? undefined : parseOwner(text);
    // A file that is being written is empty: it stays until its owner is known.
    const writing = Number(/^\d+(?=-)/.exec(name.slice(prefix.length))?.[0] ?? process.pid);
    const alive =
      owner === undefined
        ? writing !== process.pid && isProcessRunning(writing, undefined)
        : await isLockOwnerAlive(owner);
    if (text !== own && !alive) await rm(path, { force: true });
  }
}

function busy(path: string, { pid }: LockOwner): CurlewError {
  return new CurlewError('BUSY', `cannot lock ${path}: another run is in progress (process ${pid})`, {
    hint: 'wait until it ends, or terminate it',
  });
}

/** Undefined for a truncated lock: its owner died with the machine. */
function parseOwner(text: string): LockOwner | undefined {
  try {
    const value = JSON.parse(text) as Partial<LockOwner> | null;
    const { pid, start, boot, nonce } = value ?? {};
    if (typeof pid !== 'number' || typeof start !== 'string' || typeof boot !== 'string') return undefined;
    return { pid, start, boot, nonce: nonce ?? '' };
  } catch {
    return undefined;
  }
}

async function isLockOwnerAlive({ pid, start, boot }: LockOwner): Promise<boolean> {
  return boot === (await bootId()) && isProcessRunning(pid, start);
}
