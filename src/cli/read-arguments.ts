/** Parses the arguments of a command. */
import { parseArgs } from 'node:util';
import { asError, CurlewError, errnoOf } from '../core/errors.ts';
import type { Field, Fields } from '../core/field.ts';
import { nearest } from '../core/nearest.ts';
import { optionName, parametersOf, type Request } from '../core/request.ts';
import { GLOBAL_OPTIONS, type Arguments, type Command } from './command.ts';

type Given = Pick<Command, 'of' | 'bareWords'>;

interface ReadArguments extends Arguments {
  /** About former names of options. */
  readonly notes: readonly string[];
}

/** Throws `USAGE` for arguments that the command does not accept. */
export function readArguments({ of, bareWords = [] }: Given, given: readonly string[]): ReadArguments {
  const wrong = (what: string, hint = `curlew ${of.name} --help lists its options`): CurlewError =>
    new CurlewError('USAGE', `curlew ${of.name}: ${what}`, { hint });
  const all = parametersOf({ ...of, options: { ...of.options, ...GLOBAL_OPTIONS } });
  const specs = new Map(all.options);
  const { args, notes } = withCurrentNames(all.options, given);
  try {
    const { values, positionals } = parseArgs({
      args: withBareValues(specs, args, wrong),
      options: Object.fromEntries(
        all.options.map(([name, { takes, short }]) => [
          name,
          {
            type: takes === 'nothing' ? 'boolean' : 'string',
            multiple: takes === 'many',
            ...(short === undefined ? {} : { short }),
          } as const,
        ]),
      ),
      allowPositionals: true,
      strict: true,
    });
    const texts = new Map(Object.entries(values).map(([name, value]) => [name, [value].flat().map(String)] as const));
    // Probably an unset shell variable; as a path it would mean the current folder.
    const empty = [...texts].find(([, given]) => given.includes(''));
    if (empty !== undefined) throw wrong(`--${empty[0]} has an empty value`);
    const folder = all.options.find(
      ([name, { value }]) => value === 'FILE' && texts.get(name)?.some(isFolder) === true,
    );
    if (folder !== undefined) throw wrong(`--${folder[0]} ends with a slash`, 'specify a file in that folder');
    const rest = [...positionals];
    for (const [name, { takes }] of all.operands) {
      const words = rest.splice(0, takes === 'many' ? rest.length : 1);
      if (words.length > 0) texts.set(name, words);
    }
    if (rest[0] !== undefined) throw wrong(`unexpected argument "${rest[0]}"`, usageOf(of));
    for (const [name, { required, hint }] of [...all.operands, ...all.options]) {
      if (required === undefined || texts.has(name)) continue;
      throw wrong(required, hint);
    }
    for (const [name, { with: other, plan }] of all.options) {
      if (!texts.has(name) || other === undefined || texts.has(other)) continue;
      // A saved plan may have the other one.
      if (plan === undefined || !texts.has('plan')) {
        throw wrong(`--${name} requires --${other}`, `add --${other}, or omit --${name}`);
      }
    }
    return {
      request: valuesOf(of.fields, texts),
      options: valuesOf({ ...of.options, ...GLOBAL_OPTIONS }, texts) as Arguments['options'],
      notes,
    };
  } catch (error) {
    // The error of an invalid value.
    if (error instanceof CurlewError && error.hint === undefined) {
      throw new CurlewError(error.code, error.message, { hint: `curlew ${of.name} --help lists its options` });
    }
    const code = errnoOf(error) ?? '';
    if (!code.startsWith('ERR_PARSE_ARGS_')) throw error;
    const { message } = asError(error);
    const [, option = ''] = /'(?:-\w, )?(--?[^' ]+)/.exec(message) ?? [];
    if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
      // The parser takes `-from` for the options -f, -r, -o and -m.
      const single = args.find((arg) => /^-[a-z]{2}/.test(arg) && specs.has(arg.slice(1).replace(/=.*/s, '')));
      if (single !== undefined && !option.startsWith('--')) {
        const name = single.replace(/=.*/s, '');
        throw wrong(`unknown option ${name}`, `did you mean -${name}?`);
      }
      const bare = option.slice(2);
      if (bareWords.includes(bare)) throw wrong(`unknown option ${option}`, `write the flag without dashes: ${bare}`);
      const near = option.startsWith('--') ? nearest(option.slice(2), specs.keys()) : undefined;
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

/** Replaces former names of options. */
function withCurrentNames(
  options: readonly (readonly [name: string, field: Field])[],
  args: readonly string[],
): { readonly args: readonly string[]; readonly notes: readonly string[] } {
  const renamed = options.filter(([, { formerly }]) => formerly !== undefined && args.includes(`--${formerly}`));
  const names = new Map(renamed.map(([name, { formerly }]) => [`--${formerly}`, `--${name}`]));
  const notes = [...names].map(([old, name]) => `${old} is now ${name}; the next release removes the old name`);
  return { args: args.map((arg) => names.get(arg) ?? arg), notes };
}

/** Node's parser has no options whose value may be missing: gives them one. An operand next to one may be meant as its value. */
function withBareValues(
  specs: ReadonlyMap<string, Field>,
  args: readonly string[],
  wrong: (what: string, hint: string) => CurlewError,
): string[] {
  return args.map((arg, at) => {
    const bare = arg.startsWith('--') ? specs.get(arg.slice(2))?.bare : undefined;
    if (bare === undefined) return arg;
    const next = args[at + 1];
    if (next === undefined || next.startsWith('-')) return `${arg}=${bare}`;
    throw wrong(`"${next}" after ${arg} is ambiguous`, `write ${arg}=${next}, or put ${arg} after the other arguments`);
  });
}

const ABSENT = { nothing: false, many: [], one: undefined } as const;

function valuesOf(fields: Fields, texts: ReadonlyMap<string, readonly string[]>): Readonly<Record<string, unknown>> {
  const entries = Object.entries(fields).map(([name, field]) => {
    const option = optionName(name);
    const words = texts.get(option);
    // The value of an operand may be all its words, as in the usage: bash|zsh|fish.
    const title = field.value.includes('|') ? name : field.value;
    return [name, words === undefined ? ABSENT[field.takes] : field.read(words, field.operand ? title : `--${option}`)];
  });
  return Object.fromEntries(entries) as Readonly<Record<string, unknown>>;
}

/** True for a path with a trailing slash, which would otherwise create a file instead of a folder. False for addresses. */
function isFolder(text: string): boolean {
  return text.endsWith('/') && !text.includes('://');
}

/** The operands in help texts, such as `HEAD [FOLDER…]`. */
export function operandsOf(of: Request): string {
  const words = parametersOf(of).operands.map(([, { value, takes, required }]) => {
    const word = takes === 'many' ? `${value}…` : value;
    return required === undefined ? `[${word}]` : word;
  });
  return words.join(' ');
}

function usageOf(of: Request): string {
  const operands = operandsOf(of);
  return operands === '' ? `curlew ${of.name} accepts only options` : `usage: curlew ${of.name} ${operands} [options]`;
}
