/** Tables of contents as JSON text, and what becomes of them. */
import { endSize, parseTocJson } from '../../src/formats/archive/toc.ts';
import { digestOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from './assert.ts';

/** The JSON text of a table of `count` empty files. */
export function tableOf(count: number, pathOf: (at: number) => string): Buffer {
  const rest = `","type":"reg","size":0,"mode":420,"digest":"${digestOf('')}"}`;
  const rows = Array.from({ length: count }, (_, at) => `{"name":"${pathOf(at)}${rest}`);
  return Buffer.from(`{"version":1,"entries":[${rows.join(',')}]}`);
}

/** How many entries are read from it. */
export function entriesOf(json: Buffer): number {
  return parseTocJson(json, 0, endSize(json.byteLength), 'huge').entries.length;
}

/** The message of the error that it is refused with. */
export function refusal(json: Buffer): string {
  try {
    return `${entriesOf(json)} entries were read`;
  } catch (error) {
    assert.instance(error, CurlewError);
    return (error as CurlewError).message;
  }
}
