/** What is said of a repository that was made for kURL. */
import type { Place } from '../core/diagnostic.ts';

/** `missing`: to be put right first. `differs`: works, and not quite as with kURL. `note`: good to know. */
export type Grade = 'missing' | 'differs' | 'note';

export type Subject =
  | 'directive'
  | 'file'
  | 'folder'
  | 'function'
  | 'order'
  | 'package'
  | 'preflight'
  | 'program'
  | 'script'
  | 'variable';

export interface Finding {
  readonly grade: Grade;
  readonly kind: Subject;
  /** What it is about: a name, a path, the id of a rule. */
  readonly subject: string;
  readonly message: string;
  readonly hint: string | undefined;
  readonly place: Place;
}

/** Takes findings as they are made. */
export type Tell = (grade: Grade, kind: Subject, subject: string, message: string, place: Place, hint?: string) => void;

/** A list of findings, and what fills it. */
export function findings(): { readonly found: readonly Finding[]; readonly tell: Tell } {
  const found: Finding[] = [];
  const tell: Tell = (grade, kind, subject, message, place, hint) => {
    found.push({ grade, kind, subject, message, hint, place });
  };
  return { found, tell };
}

/** Finds the places of offsets in a text. */
export function placesIn(file: string, text: string): (offset: number, length: number) => Place {
  let starts: readonly number[] | undefined;
  return (offset, length) => {
    starts ??= [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { file, line: low + 1, column: offset - (starts[low] ?? 0) + 1, length: Math.max(1, length) };
  };
}

/** The whole of a file or folder. */
export function placeOf(file: string): Place {
  return { file, line: 1, column: 1, length: 1 };
}
