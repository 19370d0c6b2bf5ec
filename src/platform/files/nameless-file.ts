/** Secrets for programs that read them from a path: files that end with this process, however it ends. */
import { closeSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface NamelessFile extends Disposable {
  /** Programs of this user can read it there until the file is disposed of or this process has ended. */
  readonly path: string;
}

/**
 * A file with this data that no folder lists: the kernel removes it with the last process that has it open. Without /proc, it is a
 * private file in the folder until it is disposed of.
 */
export function namelessFile(folder: string, name: string, data: Uint8Array | string): NamelessFile {
  const named = join(folder, name);
  const fd = openSync(named, 'wx+', 0o600);
  const opened = `/proc/${process.pid}/fd/${fd}`;
  const isSeen = existsSync(opened);
  const end = (): void => {
    closeSync(fd);
    if (!isSeen) rmSync(named, { force: true });
  };
  try {
    // Before it has data: a kill leaves an empty file at most.
    if (isSeen) rmSync(named);
    writeFileSync(fd, data);
  } catch (error) {
    end();
    throw error;
  }
  return { path: isSeen ? opened : named, [Symbol.dispose]: end };
}
