/** Waiting for what others do: for a file by which another process or a hook signals its progress, or for any other sign. */
import { constants } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

/** Resolves when the file exists, or when `writer` has ended without creating it. */
export async function appears(path: string, writer?: { readonly exitCode: number | null }): Promise<void> {
  while ((await stat(path).catch(() => undefined)) === undefined) {
    if (typeof writer?.exitCode === 'number') return;
    await wait(1);
  }
}

/** Resolves when the condition holds; the deadline of the test is for those that never do. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await wait(5);
}

/** The other end of a pipe, once `path` is open for reading. */
export async function otherEnd(path: string): Promise<FileHandle> {
  let file: FileHandle | undefined;
  await until(async () => {
    file = await open(path, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => undefined);
    return file !== undefined;
  });
  if (file === undefined) throw new Error('not opened');
  return file;
}
