/**
 * One run at a time on an install folder. The lock names its owner by pid, start time and boot, so one whose owner is
 * gone is recognised and taken over, by exactly one of those who try.
 */
import { randomBytes } from 'node:crypto';
import { link, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { readStateFile } from '../../platform/files/state-file.ts';
import { writeNew } from '../../platform/files/write-new.ts';
import { bootId, processInfo } from '../../platform/process/process-tree.ts';

interface Owner {
  readonly pid: number;
  readonly start: string;
  readonly boot: string;
  /** Makes the text of every lock another one. */
  readonly nonce: string;
}

/** Takes the lock or throws `BUSY`. Disposing of it gives it back. */
export async function lockFolder(directory: string): Promise<AsyncDisposable> {
  const path = join(directory, nodePath.lock);
  const own = await ownText();
  const offer = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    try {
      // Synced: locks and claims that a power cut has made empty could not be distinguished.
      await writeNew(offer, own, 0o600);
      while (!(await tryLink(offer, path))) await takeOver(path, offer, own);
    } finally {
      await rm(offer, { force: true });
    }
    await clearOffers(directory, own);
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(errnoOf(error) ?? '')) throw fileError(`lock ${directory}`, error);
    // Not a word of the lock: nobody holds it, and another folder would be another node.
    throw new CurlewError(
      'NO_SPACE',
      `begin a run in ${directory}: no space left on its disk, and nothing was changed`,
      {
        hint: `free some space there, then run the same command again; df -h ${directory} and df -i ${directory} show it`,
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

/** Process id of the run that is at work on a folder; undefined when there is none. Takes nothing. */
export async function lockOwner(directory: string): Promise<number | undefined> {
  const text = await textOf(join(directory, nodePath.lock)).catch(() => undefined);
  const owner = text === undefined ? undefined : parseOwner(text);
  return owner !== undefined && (await isAlive(owner)) ? owner.pid : undefined;
}

async function ownText(): Promise<string> {
  const own = processInfo(process.pid);
  const owner: Owner = {
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
 * Removes the lock of an owner that is gone. The right to do so is a claim: a file whose name follows from the text of
 * what is taken over, so one process at most has it; a claim whose owner is gone is taken over in the same way.
 */
async function takeOver(path: string, offer: string, own: string): Promise<void> {
  const stale = await textOf(path);
  if (stale === undefined) return;
  const claims: string[] = [];
  let taken = stale;
  for (;;) {
    const owner = parseOwner(taken);
    if (taken !== own && owner !== undefined && (await isAlive(owner))) throw busy(path, owner);
    // Those before are part of the name, so that claims of the same text (empty ones) are no circle.
    const claim = `${path}.claim-${hexOf(digestOf([...claims, taken].join('\n'))).slice(0, 16)}`;
    claims.push(claim);
    if (await tryLink(offer, claim)) break;
    taken = (await textOf(claim)) ?? stale;
  }
  try {
    // Another one may have taken it over, and let go of the claim, since it was read.
    if ((await textOf(path)) === stale) {
      const dead = `${offer}.dead`;
      await rename(path, dead);
      await rm(dead, { force: true });
    }
  } finally {
    for (const claim of claims) await rm(claim, { force: true });
  }
}

/** Removes what those left who died while they took the lock, or gave it back. */
async function clearOffers(directory: string, own: string): Promise<void> {
  const prefix = `${nodePath.lock}.`;
  for (const name of await readdir(directory)) {
    if (!name.startsWith(prefix)) continue;
    const path = join(directory, name);
    const text = await textOf(path).catch(() => undefined);
    const owner = text === undefined ? undefined : parseOwner(text);
    // A lock that is just being written is empty: it is left alone until its owner can be told.
    const writing = Number(/^\d+(?=-)/.exec(name.slice(prefix.length))?.[0] ?? process.pid);
    const alive =
      owner === undefined ? writing !== process.pid && processInfo(writing) !== undefined : await isAlive(owner);
    if (text !== own && !alive) await rm(path, { force: true });
  }
}

function busy(path: string, { pid }: Owner): CurlewError {
  return new CurlewError('BUSY', `lock ${path}: another run is at work (process ${pid})`, {
    hint: 'wait until it has ended, or end it',
  });
}

/** Undefined for a lock that was cut short: its owner died while the machine did. */
function parseOwner(text: string): Owner | undefined {
  try {
    const value = JSON.parse(text) as Partial<Owner> | null;
    const { pid, start, boot, nonce } = value ?? {};
    if (typeof pid !== 'number' || typeof start !== 'string' || typeof boot !== 'string') return undefined;
    return { pid, start, boot, nonce: nonce ?? '' };
  } catch {
    return undefined;
  }
}

async function isAlive({ pid, start, boot }: Owner): Promise<boolean> {
  if (boot !== (await bootId())) return false;
  const found = processInfo(pid);
  return found !== undefined && found.start === start;
}
