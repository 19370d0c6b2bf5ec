/** The folder that relative paths of this process begin at. */
import { cwd } from 'node:process';
import { CurlewError } from '../../core/errors.ts';

/** `FILE_UNUSABLE` if it was removed, also if a folder with the same path was made since. */
export function workingFolder(): string {
  try {
    return cwd();
  } catch (error) {
    throw new CurlewError('FILE_UNUSABLE', 'cannot read the working folder: it was removed', {
      hint: 'change to another folder; cd "$PWD" enters one that was made again at its path',
      cause: error,
    });
  }
}
