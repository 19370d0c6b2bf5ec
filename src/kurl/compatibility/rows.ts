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
  return all.map((name) => {
    const note = notes[name];
    if (note === undefined) return { name, status: 'same', note: '' };
    const [, status, text] = STATUS.exec(note) ?? [];
    if ((status !== 'same' && status !== 'differs' && status !== 'absent') || text === undefined)
      throw new Error(`${name}: ${note}`);
    return { name, status, note: text };
  });
}
