/**
 * The interface of a directive. To add one, write a file with its kind and add a row to the table of directives; a new kind of
 * step also needs a fetcher in `src/build`.
 */
import type { Diagnostic, Place, Word } from '../core/diagnostic.ts';
import { finding, quoted, type Find } from './rules.ts';
import type { BuilderStep } from './step.ts';

/** A line of a Manifest that is neither blank nor a comment, split into words at blanks and tabs. */
export interface Line {
  readonly keyword: Word;
  /** Words after the keyword. */
  readonly words: readonly Word[];
  /** From the first character of the keyword to the last of the last word. */
  readonly place: Place;
}

/** The fields of every request: its kind and its place. */
export interface DirectiveRequest {
  readonly kind: string;
  readonly keyword: Word;
  readonly place: Place;
}

/** One keyword: its syntax, its request, and the steps that fulfill it. Pure. */
export interface Directive<Request extends DirectiveRequest> {
  readonly keyword: string;
  readonly kind: Request['kind'];
  /** Its syntax, for hints and the reference page. */
  readonly usage: string;
  /** Its purpose, for the reference page. */
  readonly about: string;
  /** Its output in the package, for the reference page. */
  readonly yields: string;
  /** Number of words after the keyword, up to `most` if it varies. */
  readonly columns: { readonly needed: number; readonly most?: number };
  /** Parses a line with the right number of words. Undefined if there is a finding. */
  readonly parse: (line: Line, find: Find) => Request | undefined;
  /** Rules for all requests of this kind in a Manifest. */
  readonly check: (requests: readonly Request[], find: Find) => void;
  /** Steps for all requests of this kind in a Manifest. */
  readonly plan: (requests: readonly Request[]) => readonly BuilderStep[];
}

/** Words of a line by position; the number of words is already checked. */
export function word(line: Line, index: number): Word {
  return line.words[index] ?? line.keyword;
}

/** The line without an inline comment, which is an error, so that other errors of the line are also found. */
export function withoutComment(line: Line, find: Find): Line {
  const { keyword, words, place } = line;
  const at = words.findIndex(({ text }) => text.startsWith('#'));
  const comment = words[at];
  if (comment === undefined) return line;
  const length = place.column + place.length - comment.place.column;
  const message = 'a comment cannot follow a directive';
  find('manifest/inline-comment', { ...comment.place, length }, message, 'move the comment to a separate line');
  const last = words[at - 1] ?? keyword;
  const end = last.place.column + last.place.length;
  return { keyword, words: words.slice(0, at), place: { ...place, length: end - place.column } };
}

/** Checks the number of words. Points at the first extra word, or at the whole line if words are missing. */
export function checkColumns(
  { keyword, words, place }: Line,
  { usage, columns }: Pick<Directive<DirectiveRequest>, 'usage' | 'columns'>,
  find: Find,
): boolean {
  const { needed, most = needed } = columns;
  if (words.length < needed) {
    find(missingWords({ keyword, words, place }, needed, usage));
    return false;
  }
  return refuseExtra(words[most], usage, find);
}

/** Reports a word that is one too many; true if there is none. */
export function refuseExtra(extra: Word | undefined, usage: string, find: Find): boolean {
  if (extra === undefined) return true;
  find('manifest/extra-column', extra.place, `unexpected ${quoted(extra.text)}`, `usage: ${usage}`);
  return false;
}

/** The finding for a line with fewer words than `needed`. */
export function missingWords({ keyword, words, place }: Line, needed: number, usage: string): Diagnostic {
  const message = `${keyword.text} requires ${needed} ${needed === 1 ? 'word' : 'words'}, found ${words.length}`;
  return finding('manifest/missing-column', place, message, `usage: ${usage}`);
}

/** Calls `again` for each item with the same key as an earlier one, with the first of those. */
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
