/** Reads the words of an unfinished command line, as far as they go. Pure. */
import type { Field } from '../core/field.ts';
import { parametersOf, type Request } from '../core/request.ts';
import { GLOBAL_OPTIONS } from './command.ts';

export interface Walked {
  readonly options: ReadonlyMap<string, Field>;
  /** The option whose value comes next. */
  readonly waiting: Field | undefined;
  /** The operand that comes next, if the command takes one more. */
  readonly next: Field | undefined;
  /** The given values, by the names of options and operands. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** True if all words are options of the command with their values. */
  readonly onlyOptions: boolean;
}

/** Never fails: skips words that the command does not accept. */
export function walkWords(of: Request, words: readonly string[]): Walked {
  const { options: own, operands } = parametersOf({ ...of, options: { ...of.options, ...GLOBAL_OPTIONS } });
  const options = new Map(own);
  const values = new Map<string, string[]>();
  const give = (name: string, value: string): unknown => values.set(name, [...(values.get(name) ?? []), value]);
  let waiting: readonly [name: string, field: Field] | undefined;
  let unknown = false;
  let ended = false;
  let place = 0;
  for (const word of words) {
    if (waiting !== undefined) {
      give(waiting[0], word);
      waiting = undefined;
    } else if (ended || !word.startsWith('-') || word === '-') {
      const [name, field] = operands[place] ?? [''];
      give(name, word);
      if (field?.takes !== 'many') place += 1;
    } else if (word === '--') {
      ended = true;
    } else {
      const [, dashes, name = '', value] = /^(--?)([^=]*)(?:=(.*))?$/s.exec(word) ?? [];
      const option = own.find(([long, { short }]) => (dashes === '--' ? long === name : short === name[0]));
      if (option === undefined) unknown = true;
      else if (
        value !== undefined ||
        option[1].takes === 'nothing' ||
        option[1].bare !== undefined ||
        (dashes === '-' && name.length > 1)
      )
        give(option[0], value ?? name);
      else waiting = option;
    }
  }
  const hasOperands = values.has('') || operands.some(([name]) => values.has(name));
  return {
    options,
    waiting: waiting?.[1],
    next: operands[place]?.[1],
    values,
    onlyOptions: !unknown && !ended && !hasOperands && waiting === undefined,
  };
}
