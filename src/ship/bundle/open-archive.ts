/** Opens a package or a bundle by its path: one file, or parts by their head file. */
import { dirname, join } from 'node:path';
import type { RangeSource } from '../../formats/archive/entry.ts';
import { openFileSource } from '../../formats/archive/read.ts';
import { openParts } from './parts/parts-source.ts';
import { isHeadPath } from '../../core/parts.ts';
import { refuseAddress, refuseFolder, refuseInstaller, type FolderOption } from './file-kind.ts';

export interface OpenArchive extends RangeSource, AsyncDisposable {
  /** Path of the whole file, even if only its parts exist; signatures are next to it. */
  readonly whole: string;
  /** Files that are read: that file, or its parts and their head file. */
  readonly files: readonly string[];
}

interface OpenOptions {
  readonly signal: AbortSignal;
  readonly shown?: string | undefined;
  /** Options of the command that take a folder instead. */
  readonly folders?: readonly FolderOption[] | undefined;
  /** How each file is opened. */
  readonly open?: typeof openFileSource;
}

/**
 * The parts of a head file must be in its folder; they are read in place. Installer specs, stores and addresses are refused, by
 * the name `shown`.
 */
export async function openArchive(
  path: string,
  { signal, shown = path, folders, open = openFileSource }: OpenOptions,
): Promise<OpenArchive> {
  refuseAddress(shown);
  if (!isHeadPath(path)) {
    await refuseFolder(path, shown, folders);
    const source = await open(path);
    try {
      await refuseInstaller(source, shown, { signal });
    } catch (error) {
      await source[Symbol.asyncDispose]();
      throw error;
    }
    return { ...source, whole: path, files: [path] };
  }
  const folder = dirname(path);
  const parts = await openParts(path, { folders: [folder], open, signal });
  return { ...parts, whole: join(folder, parts.head.name), files: [path, ...parts.paths] };
}
