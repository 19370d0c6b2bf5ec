/**
 * What a directive is. Adding one is a file with its kind, a row in the table of directives, and for a new kind of step
 * a fetcher in `src/build`.
 */
import type { Diagnostic, Place, Word } from '../core/diagnostic.ts';
import { finding, quoted, type Find } from './rules.ts';
import type { Step } from './step.ts';

/** A line of a Manifest that is neither blank nor a comment, cut into words at blanks and tabs. */
export interface Line {
  readonly keyword: Word;
  /** The words after the keyword. */
  readonly words: readonly Word[];
  /** From the first character of the keyword to the last of the last word. */
  readonly place: Place;
}

/** What every request has: which kind it is, and where it was asked for. */
export interface Asked {
  readonly kind: string;
  readonly keyword: Word;
  readonly place: Place;
}

/** One keyword: how it is written, what it asks for, which steps fulfil that. All of it is pure. */
export interface Directive<Request extends Asked> {
  readonly keyword: string;
  readonly kind: Request['kind'];
  /** How it is written; printed in hints and in the reference page. */
  readonly usage: string;
  /** What it asks for, as a sentence for the reference page. */
  readonly about: string;
  /** What it leaves in the package, for the reference page. */
  readonly yields: string;
  /** Number of words after the keyword, `most` where it is no fixed one; `optional` are words that may follow literally. */
  readonly columns: { readonly needed: number; readonly most?: number; readonly optional: readonly string[] };
  /** Reads a line whose number of words is right. Undefined when a finding says what is wrong with it. */
  readonly parse: (line: Line, find: Find) => Request | undefined;
  /** Rules over all requests of this kind in one Manifest. */
  readonly check: (requests: readonly Request[], find: Find) => void;
  /** Steps for all requests of this kind in one Manifest. */
  readonly plan: (requests: readonly Request[]) => readonly Step[];
}

/** Words of a line by position; the number of words was checked before. */
export function word(line: Line, index: number): Word {
  return line.words[index] ?? line.keyword;
}

/** The line in front of a comment, which must not stand there: what else is wrong with the line is found all the same. */
export function withoutComment(line: Line, find: Find): Line {
  const { keyword, words, place } = line;
  const at = words.findIndex(({ text }) => text.startsWith('#'));
  const comment = words[at];
  if (comment === undefined) return line;
  const length = place.column + place.length - comment.place.column;
  const message = 'a comment cannot stand behind a directive';
  find(
    finding('manifest/inline-comment', { ...comment.place, length }, message, 'put the comment on a line of its own'),
  );
  const last = words[at - 1] ?? keyword;
  const end = last.place.column + last.place.length;
  return { keyword, words: words.slice(0, at), place: { ...place, length: end - place.column } };
}

/** Checks the number of words. Points at the first word too many, or at the whole line when some are missing. */
export function columnsFit(
  { keyword, words, place }: Line,
  { usage, columns }: Pick<Directive<Asked>, 'usage' | 'columns'>,
  find: Find,
): boolean {
  const { needed, most = needed, optional } = columns;
  if (words.length < needed) {
    find(missingWords({ keyword, words, place }, most, usage));
    return false;
  }
  const extra = words.find(({ text }, index) => index >= most && optional[index - most] !== text);
  if (extra !== undefined) {
    find(finding('manifest/extra-column', extra.place, `unexpected ${quoted(extra.text)}`, `usage: ${usage}`));
  }
  return extra === undefined;
}

/** The finding for a line with fewer words than `needed`. */
export function missingWords({ keyword, words, place }: Line, needed: number, usage: string): Diagnostic {
  const message = `${keyword.text} needs ${needed} ${needed === 1 ? 'word' : 'words'}, found ${words.length}`;
  return finding('manifest/missing-column', place, message, `usage: ${usage}`);
}

/** Calls `again` for each item whose key an earlier item has, with the first of those. */
export function eachRepeated<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string | undefined,
  again: (item: Item, first: Item) => void,
): void {
  const seen = new Map<string, Item>();
  for (const item of items) {
    const key = keyOf(item);
    if (key === undefined) continue;
    const first = seen.get(key);
    if (first === undefined) seen.set(key, item);
    else again(item, first);
  }
}
