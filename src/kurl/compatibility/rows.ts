/** What the tables of compatibility are made of. */

export type Status = 'same' | 'differs' | 'absent';

export interface Row {
  readonly name: string;
  readonly status: Status;
  /** How it differs, or why it is absent; may add something to what is the same. */
  readonly note: string;
}

const STATUS = /^(same|differs|absent): (.*)$/s;

/**
 * Rows of names, in a list or separated by spaces, in their order. Differences from kURL are in `notes` as `differs: how`,
 * `absent: why` or `same: remark`; a note without its name is an error of whoever wrote the table.
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
