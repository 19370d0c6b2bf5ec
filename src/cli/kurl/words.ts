/** Words as kURL's programs take them: Go's flags, `-name value`, `--name=value`, and `-name` alone for switches. */
import { CurlewError } from '../../core/errors.ts';

export interface Words {
  readonly values: ReadonlyMap<string, string>;
  readonly switches: ReadonlySet<string>;
  readonly rest: readonly string[];
}

/** Throws `USAGE` for a flag that is none of these, or that lacks its value. */
export function readWords(
  tool: string,
  words: readonly string[],
  { values, switches }: { readonly values: readonly string[]; readonly switches: readonly string[] },
): Words {
  const found = new Map<string, string>();
  const on = new Set<string>();
  const left = [...words];
  for (let word = left[0]; word?.startsWith('-') === true && word !== '-'; word = left[0]) {
    left.shift();
    if (word === '--') break;
    const [, name = '', value] = /^--?([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (switches.includes(name)) {
      if (value !== 'false') on.add(name);
    } else if (values.includes(name)) {
      const given = value ?? left.shift();
      if (given === undefined) throw new CurlewError('USAGE', `curlew kurl ${tool}: -${name} needs a value`);
      found.set(name, given);
    } else {
      throw new CurlewError('USAGE', `curlew kurl ${tool}: unknown flag ${word}`);
    }
  }
  return { values: found, switches: on, rest: left };
}

/** The value of a flag that must be there. */
export function needed(tool: string, { values }: Words, name: string): string {
  const value = values.get(name) ?? '';
  if (value === '') throw new CurlewError('USAGE', `curlew kurl ${tool}: -${name} is missing`);
  return value;
}
