/** One maker of one file at a time: a claim is a file that names the process that holds it. */
import { randomUUID } from 'node:crypto';
import { constants, copyFile, link, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';

/** Bytes: a claim is one short line. */
const CLAIM_LIMIT = 256;
const NOTHING = { buffer: Buffer.alloc(0), bytesRead: 0 };

/** When a process started, in clock ticks since boot (proc(5), stat field 22): a reused pid has another one. */
async function startTimeOf(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}

async function isAlive(pid: number, start: string | undefined): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (errnoOf(error) === 'ESRCH') return false;
  }
  const now = await startTimeOf(pid);
  return now === undefined || start === undefined || now === start;
}

/** Name of the claim beside the file that is being made. */
function claimPath(path: string): string {
  return join(dirname(path), `.${basename(path)}.claim`);
}

/**
 * Claims the making of `path` until the result is disposed of. `BUSY` while a living process holds it; a claim that a
 * dead one left is taken over.
 */
export async function claim(path: string): Promise<AsyncDisposable> {
  const file = claimPath(path);
  const mine = `${file}.${randomUUID()}`;
  const text = `${process.pid} ${(await startTimeOf(process.pid)) ?? ''}\n`;
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
    if (/^\d+$/.test(pid) && (await isAlive(Number(pid), start))) {
      throw new CurlewError('BUSY', `${path} is being made by process ${pid}`, {
        hint: 'wait for it to finish, then run the same command again',
      });
    }
    await removeStale(file, text, `${mine}.stale`);
  }
  throw new CurlewError('BUSY', `${path} is being made by another process`);
}

/** Empty for anything that is no claim: a link or a pipe that somebody has put there is not followed, nor waited for. */
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

/** False when the name is taken. */
async function tryTake(mine: string, file: string): Promise<boolean> {
  try {
    await link(mine, file);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP'].includes(errnoOf(error) ?? '')) throw error;
  }
  // Media for other systems know no links.
  try {
    await copyFile(mine, file, constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Takes a dead process's claim away; one that a third process has put there meanwhile goes back. */
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
