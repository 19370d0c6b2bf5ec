/** Findings about a repository written for kURL. */
import type { Place } from '../core/diagnostic.ts';

/** `missing`: must be fixed first. `differs`: works, but not exactly as in kURL. `note`: for information. */
export type Grade = 'missing' | 'differs' | 'note';

type Subject =
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
  /** A name, a path, or the ID of a rule. */
  readonly subject: string;
  readonly message: string;
  readonly hint: string | undefined;
  readonly place: Place;
}

/** Adds a finding to a list. */
export type AddFinding = (
  grade: Grade,
  kind: Subject,
  subject: string,
  message: string,
  place: Place,
  hint?: string,
) => void;

/** A list of findings and the function that fills it. */
export function findings(): { readonly list: readonly Finding[]; readonly add: AddFinding } {
  const list: Finding[] = [];
  const add: AddFinding = (grade, kind, subject, message, place, hint) => {
    list.push({ grade, kind, subject, message, hint, place });
  };
  return { list, add };
}

/** Maps offsets in a text to places. */
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

/** The place of a whole file or folder. */
export function linePlace(file: string): Place {
  return { file, line: 1, column: 1, length: 1 };
}
