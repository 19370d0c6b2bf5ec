/** Rows of the compatibility tables. */

type Status = 'same' | 'differs' | 'absent';

export interface Row {
  readonly name: string;
  readonly status: Status;
  /** How it differs, or why it is absent; an optional remark for `same`. */
  readonly note: string;
}

const STATUS = /^(same|differs|absent): (.*)$/s;

/**
 * One row per name, in order; a string of names is split at whitespace. `notes` has differences from kURL as `differs: how`,
 * `absent: why` or `same: remark`; throws for a malformed note.
 */
export function rows(names: string | readonly string[], notes: Readonly<Record<string, string>>): readonly Row[] {
  const all = typeof names === 'string' ? names.trim().split(/\s+/) : names;
  return all.map((name) => rowOf(name, notes[name] ?? 'same: '));
}

/** The rows of notes by one name or several, in order. */
export function notedRows(notes: Readonly<Record<string, string>>): readonly Row[] {
  return Object.entries(notes).flatMap(([names, note]) => names.split(' ').map((name) => rowOf(name, note)));
}

function rowOf(name: string, text: string): Row {
  const [, status, note] = STATUS.exec(text) ?? [];
  if ((status === 'same' || status === 'differs' || status === 'absent') && note !== undefined)
    return { name, status, note };
  throw new Error(`${name}: ${text}`);
}
