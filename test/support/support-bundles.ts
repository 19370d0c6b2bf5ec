/** Support bundles, read by tests as the programs of others read them. */
import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { walkTar } from '../../src/formats/archive/walk-tar.ts';
import { INDEX_PATH, parseSupportIndex, type SupportIndex } from '../../src/runtime/support/support-index.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { never } from './context.ts';

export interface ReadBundle {
  /** By path below the folder of the archive. */
  readonly files: ReadonlyMap<string, string>;
  readonly index: SupportIndex;
  /** All that is in the archive. */
  readonly whole: string;
}

/** Throws if it is not whole. */
export async function readBundle(path: string): Promise<ReadBundle> {
  const tar = gunzipSync(await readFile(path));
  const files = new Map<string, string>();
  const refuse = (what: string): Error => new Error(what);
  const stream = (async function* chunks() {
    yield tar;
  })();
  for await (const { path: name, data } of walkTar(stream, { refuse, signal: never })) {
    files.set(name.slice(name.indexOf('/') + 1), (await data()).toString());
  }
  const bad = (what: string): CurlewError => new CurlewError('PACKAGE_INVALID', what);
  return { files, index: parseSupportIndex(files.get(INDEX_PATH) ?? '', bad), whole: tar.toString('latin1') };
}
