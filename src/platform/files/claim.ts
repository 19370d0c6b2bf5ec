/** Lets one process at a time write a file: a claim is a file that names the process that holds it. */
import { randomUUID } from 'node:crypto';
import { constants, copyFile, link, open, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { isProcessRunning, processInfo } from '../process/process-tree.ts';

/** Bytes: a claim is one short line. */
const CLAIM_LIMIT = 256;
const NOTHING = { buffer: Buffer.alloc(0), bytesRead: 0 };

/** Path of the claim, next to the file that is being written. */
function claimPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.claim`);
}

/**
 * Claims the writing of `path` until the result is disposed of. `BUSY` while a running process holds the claim; a claim of
 * a process that has ended is taken over.
 */
export async function claim(path: string): Promise<AsyncDisposable> {
  const file = claimPath(path);
  const mine = `${file}.${randomUUID()}`;
  const text = `${process.pid} ${processInfo(process.pid)?.start ?? ''}\n`;
  try {
    await writeFile(mine, text, { flag: 'wx', mode: 0o644 });
    await takeClaim(mine, file, path);
  } catch (error) {
    throw fileError(`write ${path}`, error);
  } finally {
    await rm(mine, { force: true });
  }
  return {
    [Symbol.asyncDispose]: async () => {
      await rm(file, { force: true });
    },
  };
}

/** A hard link is atomic and fails when the name is taken. */
async function takeClaim(mine: string, file: string, path: string): Promise<void> {
  for (let attempt = 0; attempt < 3; attempt += 1) {
    if (await tryTake(mine, file)) return;
    const text = await readClaim(file);
    const [pid = '', start] = text.trim().split(' ');
    if (/^\d+$/.test(pid) && isProcessRunning(Number(pid), start)) {
      throw new CurlewError('BUSY', `${path} is being written by process ${pid}`, {
        hint: 'wait for it to finish, then run the same command again',
      });
    }
    await removeStale(file, text, `${mine}.stale`);
  }
  throw new CurlewError('BUSY', `${path} is being written by another process`);
}

/** Empty for anything that is not a claim. Does not follow a link or wait for a pipe in its place. */
async function readClaim(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  try {
    const { buffer, bytesRead } = (await file?.read(Buffer.alloc(CLAIM_LIMIT), 0, CLAIM_LIMIT, 0)) ?? NOTHING;
    return buffer.toString('utf8', 0, bytesRead);
  } catch {
    return '';
  } finally {
    await file?.close();
  }
}

/** False if the name is taken. */
async function tryTake(mine: string, file: string): Promise<boolean> {
  try {
    await link(mine, file);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) throw error;
  }
  // File systems of other operating systems have no hard links.
  try {
    await copyFile(mine, file, constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Removes the claim of a process that has ended. Puts back a claim that a third process wrote meanwhile. */
async function removeStale(file: string, text: string, aside: string): Promise<void> {
  try {
    await rename(file, aside);
    if ((await readClaim(aside)) !== text) await link(aside, file);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'EEXIST') throw error;
  } finally {
    await rm(aside, { force: true });
  }
}
