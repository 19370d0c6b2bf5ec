/** The words behind a command's name, checked against its options. */
import { parseArgs } from 'node:util';
import { camelCase } from '../core/camel-case.ts';
import { asError, CurlewError, errnoOf } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { GLOBAL_OPTIONS, parseArgsOptions, type Arguments, type Command, type OptionSpecs } from './command.ts';

/** Throws `USAGE` for words that the command does not take. */
export function readArguments(
  { name, operands, options, bareWords = [] }: Pick<Command<never>, 'name' | 'operands' | 'options' | 'bareWords'>,
  words: readonly string[],
): Arguments {
  const specs: OptionSpecs = { ...options, ...GLOBAL_OPTIONS };
  const wrong = (what: string, hint = `curlew ${name} --help lists its options`): CurlewError =>
    new CurlewError('USAGE', `curlew ${name}: ${what}`, { hint });
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: parseArgsOptions(specs),
      allowPositionals: true,
      strict: true,
    });
    const all = values as Record<string, string | boolean | readonly (string | boolean)[] | undefined>;
    // Most likely a shell variable that is not set; as a path it would mean the current folder.
    const empty = Object.entries(all).find(([, value]) => [value].flat().includes(''));
    if (empty !== undefined) throw wrong(`--${empty[0]} has an empty value`);
    const folder = Object.entries(specs).find(([option, { value }]) => value === 'FILE' && isFolder(all[option]));
    if (folder !== undefined)
      throw wrong(`--${folder[0]} names a folder`, 'name a file in it: the last character is a slash');
    const extra = positionals[mostOperands(operands)];
    if (extra !== undefined) throw wrong(`unexpected word "${extra}"`, usageOf(name, operands));
    const missing = Object.entries(specs).find(([option, { required }]) => required !== undefined && !(option in all));
    if (missing !== undefined) throw wrong(missing[1].required ?? '');
    return {
      operands: positionals,
      options: optionValues(specs, all),
      positionals,
      text: (option) => (typeof all[option] === 'string' ? all[option] : undefined),
      texts: (option) => [all[option] ?? []].flat().filter((value) => typeof value === 'string'),
      flag: (option) => all[option] === true,
    };
  } catch (error) {
    // Of a value that its option cannot read.
    if (error instanceof CurlewError && error.hint === undefined) {
      throw new CurlewError(error.code, error.message, { hint: `curlew ${name} --help lists its options` });
    }
    const code = errnoOf(error) ?? '';
    if (error instanceof CurlewError && error.hint === undefined)
      throw new CurlewError(error.code, error.message, { hint: `curlew ${name} --help lists its options` });
    if (!code.startsWith('ERR_PARSE_ARGS_')) throw error;
    const { message } = asError(error);
    const [, option = ''] = /'(?:-\w, )?(--?[^' ]+)/.exec(message) ?? [];
    if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      const bare = option.slice(2);
      if (bareWords.includes(bare))
        throw wrong(`unknown option ${option}`, `as a flag it is written without dashes: ${bare}`);
      const near = option.startsWith('--') ? nearest(option.slice(2), Object.keys(specs)) : undefined;
      throw wrong(`unknown option ${option}`, near === undefined ? undefined : `did you mean --${near}?`);
    }
    if (message.includes('does not take an argument')) throw wrong(`${option} takes no value`);
    const dashed = message.includes('ambiguous');
    throw wrong(
      `${option} needs a value`,
      dashed ? `a value that begins with a dash is written ${option}=-VALUE` : undefined,
    );
  }
}

/** What parseArgs found, as the types of {@link OptionValues} say it. */
function optionValues(specs: OptionSpecs, all: Readonly<Record<string, unknown>>): Arguments['options'] {
  const entries = Object.entries(specs).map(([name, { type, multiple, read = (text: string): unknown => text }]) => {
    const one = (text: unknown): unknown => (typeof text === 'string' ? read(text, `--${name}`) : undefined);
    const given = [all[name] ?? []].flat();
    const value = type === 'boolean' ? all[name] === true : multiple === true ? given.map(one) : one(all[name]);
    return [camelCase(name), value] as const;
  });
  return Object.fromEntries(entries) as Arguments['options'];
}

/** Without its slash it would become a file where a folder was meant; addresses have words of their own. */
function isFolder(value: unknown): boolean {
  return [value].flat().some((one) => typeof one === 'string' && one.endsWith('/') && !one.includes('://'));
}

/** How many words fit the operands of a help text, such as `[ADDON [HOOK]]` or `FILE…`. */
function mostOperands(operands: string): number {
  if (operands.includes('…')) return Number.POSITIVE_INFINITY;
  return operands.split(' ').filter((word) => word !== '').length;
}

function usageOf(name: string, operands: string): string {
  return operands === '' ? `curlew ${name} takes only options` : `usage: curlew ${name} ${operands} [options]`;
}
