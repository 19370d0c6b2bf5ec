/** The files of this tool that every bundle has at its root: the scripts and the tool itself. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { BUNDLE_SCRIPTS } from '../core/layout.ts';
import type { RootFile } from './plan.ts';

/** Both the sources and what is compiled from them lie two folders below the project. */
const PROJECT = new URL('../../', import.meta.url);

/** Where the tool lies in a bundle. */
const BUNDLED_TOOL = 'bin/curlew';
/** The part of the tool that runs on nodes, as one file. */
const NODE_TOOL = 'dist/node/curlew.mjs';

/** Reads scripts and tool; `NOT_FOUND` when the tool for nodes has not been built. */
export async function readRootFiles(): Promise<readonly RootFile[]> {
  const sources = [...BUNDLE_SCRIPTS.map((name) => [name, `scripts/bundle/${name}`]), [BUNDLED_TOOL, NODE_TOOL]];
  return Promise.all(
    sources.map(async ([path = '', source = '']) => ({ path, mode: 0o755 as const, data: await readOwn(source) })),
  );
}

async function readOwn(source: string): Promise<Uint8Array> {
  const path = fileURLToPath(new URL(source, PROJECT));
  try {
    return await readFile(path);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw fileError(`read ${path}`, error);
    throw new CurlewError('NOT_FOUND', `read ${path}: this part of curlew is missing`, {
      hint: 'in a checkout, run: npm run build',
      cause: error,
    });
  }
}
