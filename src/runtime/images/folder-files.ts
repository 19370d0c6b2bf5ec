/** Files of packages, for reading images from them. */
import { createReadStream } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileError, ifExists } from '../../core/errors.ts';
import type { PackageFile } from '../../core/package.ts';
import { wrongBytes, readVerified } from '../node/verified-file.ts';
import type { SourcePackage } from '../node/source.ts';
import type { ImageFiles } from './docker-archive.ts';

const READ_SIZE = 1 << 20;

/** Files of a package in a folder; they are not verified. */
export function folderFiles(folder: string): ImageFiles {
  return {
    name: folder,
    size: async (path) => {
      const stats = await ifExists(`read ${join(folder, path)}`, lstat(join(folder, path)));
      return stats?.isFile() === true ? stats.size : undefined;
    },
    async *read(path, { signal }) {
      try {
        yield* createReadStream(join(folder, path), { highWaterMark: READ_SIZE, signal }) as AsyncIterable<Buffer>;
      } catch (error) {
        signal.throwIfAborted();
        throw fileError(`read ${join(folder, path)}`, error);
      }
    },
  };
}

/** Files of a package in a folder: listed ones only, each verified while it is read. */
export function placedFiles(folder: string, files: readonly PackageFile[]): ImageFiles {
  const find = (path: string): PackageFile | undefined => files.find((file) => file.path === path);
  return {
    name: folder,
    size: async (path) => find(path)?.size,
    read: (path, { signal }) => {
      const file = find(path);
      if (file === undefined) throw wrongBytes(join(folder, path));
      return readVerified([join(folder, path)], file, signal);
    },
  };
}

/** Files of a package that is not extracted. */
export function sourceFiles({ ref, files, read }: Pick<SourcePackage, 'ref' | 'files' | 'read'>): ImageFiles {
  return {
    name: `${ref.name}-${ref.version}`,
    size: async (path) => files.find((file) => file.path === path)?.size,
    read,
  };
}
