/** Parses the arguments of a command. */
import { parseArgs } from 'node:util';
import { camelCase } from '../core/camel-case.ts';
import { asError, CurlewError, errnoOf } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import {
  GLOBAL_OPTIONS,
  parseArgsOptions,
  type Arguments,
  type Command,
  type GlobalValues,
  type OptionSpecs,
} from './command.ts';

/** Throws `USAGE` for arguments that the command does not accept. */
export function readArguments(
  { name, operands, options, bareWords = [] }: Pick<Command<never>, 'name' | 'operands' | 'options' | 'bareWords'>,
  args: readonly string[],
): Arguments {
  const specs: OptionSpecs = { ...options, ...GLOBAL_OPTIONS };
  const wrong = (what: string, hint = `curlew ${name} --help lists its options`): CurlewError =>
    new CurlewError('USAGE', `curlew ${name}: ${what}`, { hint });
  try {
    const { values, positionals } = parseArgs({
      args: withBareValues(specs, args, wrong),
      options: parseArgsOptions(specs),
      allowPositionals: true,
      strict: true,
    });
    const all = values as Record<string, string | boolean | readonly (string | boolean)[] | undefined>;
    // Probably an unset shell variable; as a path it would mean the current folder.
    const empty = Object.entries(all).find(([, value]) => [value].flat().includes(''));
    if (empty !== undefined) throw wrong(`--${empty[0]} has an empty value`);
    const folder = Object.entries(specs).find(([option, { value }]) => value === 'FILE' && isFolder(all[option]));
    if (folder !== undefined) throw wrong(`--${folder[0]} ends with a slash`, 'specify a file in that folder');
    const extra = positionals[maxOperands(operands)];
    if (extra !== undefined) throw wrong(`unexpected argument "${extra}"`, usageOf(name, operands));
    const missing = Object.entries(specs).find(([option, { required }]) => required !== undefined && !(option in all));
    if (missing !== undefined) throw wrong(missing[1].required ?? '');
    return {
      operands: positionals,
      options: optionValues(specs, all) as Arguments['options'],
      globals: optionValues(GLOBAL_OPTIONS, all) as GlobalValues,
    };
  } catch (error) {
    // The error of an invalid value.
    if (error instanceof CurlewError && error.hint === undefined) {
      throw new CurlewError(error.code, error.message, { hint: `curlew ${name} --help lists its options` });
    }
    const code = errnoOf(error) ?? '';
    if (!code.startsWith('ERR_PARSE_ARGS_')) throw error;
    const { message } = asError(error);
    const [, option = ''] = /'(?:-\w, )?(--?[^' ]+)/.exec(message) ?? [];
    if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      const bare = option.slice(2);
      if (bareWords.includes(bare)) throw wrong(`unknown option ${option}`, `write the flag without dashes: ${bare}`);
      const near = option.startsWith('--') ? nearest(option.slice(2), Object.keys(specs)) : undefined;
      throw wrong(`unknown option ${option}`, near === undefined ? undefined : `did you mean --${near}?`);
    }
    if (message.includes('does not take an argument')) throw wrong(`${option} does not accept a value`);
    const dashed = message.includes('ambiguous');
    throw wrong(
      `${option} requires a value`,
      dashed ? `write a value that begins with a dash as ${option}=-VALUE` : undefined,
    );
  }
}

/** Node's parser has no options whose value may be missing: gives them one. An operand next to one may be meant as its value. */
function withBareValues(
  specs: OptionSpecs,
  args: readonly string[],
  wrong: (what: string, hint: string) => CurlewError,
): string[] {
  return args.map((arg, at) => {
    const bare = arg.startsWith('--') ? specs[arg.slice(2)]?.bare : undefined;
    if (bare === undefined) return arg;
    const next = args[at + 1];
    if (next === undefined || next.startsWith('-')) return `${arg}=${bare}`;
    throw wrong(`"${next}" after ${arg} is ambiguous`, `write ${arg}=${next}, or put ${arg} after the other arguments`);
  });
}

/** Converts the result of parseArgs to {@link OptionValues}. */
function optionValues(specs: OptionSpecs, all: Readonly<Record<string, unknown>>): object {
  const entries = Object.entries(specs).map(([name, { type, multiple, read = (text: string): unknown => text }]) => {
    const one = (text: unknown): unknown => (typeof text === 'string' ? read(text, `--${name}`) : undefined);
    const given = [all[name] ?? []].flat();
    const value = type === 'boolean' ? all[name] === true : multiple === true ? given.map(one) : one(all[name]);
    return [camelCase(name), value] as const;
  });
  return Object.fromEntries(entries);
}

/** True for a path with a trailing slash, which would otherwise create a file instead of a folder. False for addresses. */
function isFolder(value: unknown): boolean {
  return [value].flat().some((one) => typeof one === 'string' && one.endsWith('/') && !one.includes('://'));
}

/** Maximum number of operands according to the help text, such as `[ADDON [HOOK]]` or `FILE…`. */
function maxOperands(operands: string): number {
  if (operands.includes('…')) return Number.POSITIVE_INFINITY;
  return operands.split(' ').filter((word) => word !== '').length;
}

function usageOf(name: string, operands: string): string {
  return operands === '' ? `curlew ${name} accepts only options` : `usage: curlew ${name} ${operands} [options]`;
}
