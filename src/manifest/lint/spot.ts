/** Ranges of a text, and their places in a file. */
import type { Place } from '../../core/diagnostic.ts';
import type { Find, RuleId } from '../rules.ts';

/** A range of offsets, end exclusive, in UTF-16 code units. */
export interface Spot {
  readonly from: number;
  readonly to: number;
}

/** A finding in a text without its file: copies of a text are checked once. */
export interface Remark extends Spot {
  readonly code: RuleId;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Converts ranges of a text to places in a file. */
export interface Placer {
  readonly file: string;
  readonly at: (spot: Spot) => Place;
}

/** `read` returns the text, and is called only if a place is needed. */
export function placer(file: string, read: () => string): Placer {
  let starts: readonly number[] | undefined;
  return {
    file,
    at({ from, to }) {
      const text = read();
      starts ??= lineStarts(text);
      const line = lineOf(starts, from);
      const end = text.slice(from, to).search(/[\r\n]/);
      const length = Math.max(1, end === -1 ? to - from : end);
      return { file, line, column: from - (starts[line - 1] ?? 0) + 1, length };
    },
  };
}

export function addFindings(remarks: readonly Remark[], place: Placer, find: Find): void {
  for (const remark of remarks) find(remark.code, place.at(remark), remark.message, remark.hint);
}

/** Offsets at which the lines of a text begin. */
function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** The line of an offset, counted from 1. */
function lineOf(starts: readonly number[], offset: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low + 1;
}
