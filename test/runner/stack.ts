/** Places in compiled code as places in the sources. */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join, relative, resolve, dirname } from 'node:path';
import { COMPILED, PRODUCT } from '../support/compiled.ts';

const PLACE = /(?:file:\/\/)?(\/[^\s():]+\.js)(?:\?\d+)?:(\d+):(\d+)/g;

/** The text with `path:line:column` of the sources where stack traces name compiled files. */
export function withSourcePlaces(text: string, root: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return text.replaceAll(PLACE, (whole, path: string, line: string, column: string) => {
    if (!path.startsWith(join(root, COMPILED)) && !path.startsWith(join(root, PRODUCT))) return whole;
    if (!maps.has(path)) maps.set(path, readMap(path));
    const entry = maps.get(path)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (entry === undefined || !('originalSource' in entry)) return whole;
    const source = relative(root, resolve(dirname(path), entry.originalSource));
    return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  });
}

function readMap(path: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')) as ConstructorParameters<typeof SourceMap>[0]);
  } catch {
    return undefined;
  }
}
