/** Words as kURL's programs take them: Go's flags, `-name value`, `--name=value`, and `-name` alone for switches. */
import { CurlewError } from '../../core/errors.ts';

export interface Words {
  readonly values: ReadonlyMap<string, string>;
  readonly switches: ReadonlySet<string>;
  readonly rest: readonly string[];
}

/** The flags that a program knows. */
export interface WordsKnown {
  readonly values: readonly string[];
  readonly switches: readonly string[];
  /** Flags may stand behind operands, as programs made with cobra have it; others stop at the first operand. */
  readonly anywhere?: boolean;
}

/** Throws `USAGE` for a flag that is none of these, or that lacks its value. */
export function readWords(
  tool: string,
  words: readonly string[],
  { values, switches, anywhere = false }: WordsKnown,
): Words {
  const found = new Map<string, string>();
  const on = new Set<string>();
  const rest: string[] = [];
  const left = [...words];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (word === '--') break;
    if (!word.startsWith('-') || word === '-') {
      rest.push(word);
      if (anywhere) continue;
      break;
    }
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
  return { values: found, switches: on, rest: [...rest, ...left] };
}

/** The value of a flag that must be there. */
export function needed(tool: string, { values }: Words, name: string): string {
  const value = values.get(name) ?? '';
  if (value === '') throw new CurlewError('USAGE', `curlew kurl ${tool}: -${name} is missing`);
  return value;
}
