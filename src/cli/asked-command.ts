/** The words of a command as JSON that is kept with its run, and back: for `resume`. */
import { camelCase } from './read-arguments.ts';
import { CurlewError } from '../core/errors.ts';
import { isObject, isTexts } from '../core/json.ts';
import type { Arguments, OptionSpecs } from './command.ts';
import { PLAN_OPTIONS } from './plan-words.ts';

export interface AskedCommand {
  readonly name: string;
  readonly operands: readonly string[];
  readonly options: Readonly<Record<string, readonly string[] | true>>;
  readonly cwd: string;
  /** The text of the installer spec, which may have changed since. */
  readonly installer: string | undefined;
}

interface AskedFrom {
  readonly specs: OptionSpecs;
  readonly cwd: string;
  readonly installer?: string;
}

export function askedFor(name: string, args: Arguments, { specs, cwd, installer }: AskedFrom): AskedCommand {
  const options: Record<string, readonly string[] | true> = {};
  for (const option of Object.keys(specs)) {
    // A run that is gone on with keeps to its own plan.
    if (Object.hasOwn(PLAN_OPTIONS, option)) continue;
    const texts = args.texts(option);
    if (texts.length > 0) options[option] = texts;
    else if (args.flag(option)) options[option] = true;
  }
  return { name, operands: args.positionals, options, cwd, installer };
}

/** `FILE_UNUSABLE` for what is no such JSON. */
export function parseAskedCommand(value: unknown): AskedCommand {
  if (isObject(value)) {
    const { name, operands, options, cwd, installer } = value;
    const isOption = (option: unknown): boolean => option === true || isTexts(option);
    const fits = isTexts(operands) && isObject(options) && Object.values(options).every(isOption);
    if (fits && typeof name === 'string' && typeof cwd === 'string' && isTexts([installer ?? ''])) {
      return { name, operands, options: options as AskedCommand['options'], cwd, installer: installer as string };
    }
  }
  throw new CurlewError('FILE_UNUSABLE', 'resume: the last run does not tell what it was asked for', {
    hint: 'give the whole command that began it',
  });
}

/** Whether a run was asked for by the command of this name, with this one operand. */
export function wasAsked(command: unknown, name: string, operand: string): boolean {
  if (!isObject(command) || command['name'] !== name) return false;
  const { operands } = command;
  return isTexts(operands) && operands.length === 1 && operands[0] === operand;
}

const MANY = new Set(['key', 'allow-http', 'from', 'set', 'env', 'ignore', 'registry-mirror', 'trust-realm']);

export function argumentsOf({ operands, options }: AskedCommand): Arguments {
  const texts = (name: string): readonly string[] => {
    const value = Object.hasOwn(options, name) ? options[name] : undefined;
    return value === undefined || value === true ? [] : value;
  };
  return {
    operands,
    options: Object.fromEntries(
      Object.entries(options).map(([name, value]) => [
        camelCase(name),
        value === true || MANY.has(name) ? value : value[0],
      ]),
    ) as Arguments['options'],
    positionals: operands,
    texts,
    text: (name) => texts(name)[0],
    flag: (name) => Object.hasOwn(options, name) && options[name] === true,
  };
}
