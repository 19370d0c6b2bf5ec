/** Fields of requests: each is a value of a library call, and an option or operand of a command. Pure. */
import * as v from 'valibot';
import { CurlewError } from './errors.ts';
import { nearest } from './nearest.ts';
import { archName, ARCHES, type Arch } from './ref.ts';
import { parseDuration } from './units.ts';

/**
 * `addon`: in the working folder. `published`: an add-on in the store that the request names, with its versions after `@`.
 * `release`: in that store. `installed`: an add-on on this node. `topic`: what `curlew help` describes.
 */
export type Offered = 'addon' | 'published' | 'release' | 'installed' | 'topic';

interface Attributes {
  /** Headline for the option in help texts. */
  readonly group?: string;
  readonly short?: string;
  /** Name of the option in the previous release: it still works, with a note, and no help lists it. */
  readonly formerly?: string;
  /** Name of the option that it is for: a command line without that one is refused, and the help begins with it. */
  readonly with?: string;
  /** The field is required; the text says what to do without it, such as `add --to …`. */
  readonly required?: string;
  /** The hint if it is missing, instead of the usage of the command. */
  readonly hint?: string;
  /** A command line gives it without the name of an option, in the order of the table. */
  readonly operand?: true;
  /** The value of an option that is given without one: any other value needs `--option=VALUE`. */
  readonly bare?: string;
  /** It says which node, store or folder a command is about: commands in hints get it too. */
  readonly located?: true;
  /** It is saved with a plan, which decides it, or keeps it as a default; `source`: unless another source is given. */
  readonly plan?: 'decided' | 'kept' | 'source';
  /** It is for one run only: a resumed run does not get it. */
  readonly once?: true;
  /** The kind of names that it takes, for completion in shells. */
  readonly offers?: Offered;
}

/** How one value is checked, and read from a command line. */
export interface Kind<Value> {
  /** Accepts what callers of the library may pass. */
  readonly schema: v.GenericSchema;
  /** Reads the text of an option. Throws `USAGE`. */
  readonly read: (text: string, option: string) => Value;
  /** The kind of thing that the text names: a local path, or a place that may also be an address. */
  readonly names?: 'path' | 'place';
  /** All values. */
  readonly values?: readonly string[];
}

type Takes = 'nothing' | 'one' | 'many';

export interface Field<Value = unknown, Values extends Takes = Takes> extends Attributes, Omit<Kind<unknown>, 'read'> {
  /** How many values its option takes: none, one, or one each time that it is given. */
  readonly takes: Values;
  /** Name of the value in help texts, such as `DIR`; empty if it takes none. */
  readonly value: string;
  readonly help: string;
  /** Its value, from all texts of its option. Throws `USAGE`. */
  readonly read: (texts: readonly string[], option: string) => Value;
}

/** By name as in requests: `olderThan` is `--older-than`. */
export type Fields = Readonly<Record<string, Field>>;

/** A field of this value must be given. */
export interface Required {
  readonly required: string;
}

type Declare<Value, Values extends Takes> = <const More extends Attributes = object>(
  value: string,
  help: string,
  more?: More,
) => Field<Value, Values> & NoInfer<More>;

function declared<Value, Values extends Takes, More extends Attributes>(
  field: Field<Value, Values>,
  more: More | undefined,
) {
  const help = more?.with === undefined ? field.help : `with --${more.with}: ${field.help}`;
  return Object.assign({ ...field, help }, more ?? ({} as More));
}

/** Declares fields with one value of this kind. */
export function one<Value>({ read, ...kind }: Kind<Value>): Declare<Value, 'one'> {
  return (value, help, more) => {
    const last = (values: readonly string[], option: string): Value => read(values.at(-1) ?? '', option);
    return declared({ ...kind, takes: 'one', value, help, read: last }, more);
  };
}

/** Declares fields with any number of values of this kind. */
export function many<Value>({ read, ...kind }: Kind<Value>): Declare<readonly Value[], 'many'> {
  const schema = v.array(kind.schema);
  return (value, help, more) => {
    const all = (values: readonly string[], option: string): readonly Value[] =>
      values.map((each) => read(each, option));
    return declared({ ...kind, schema, takes: 'many', value, help, read: all }, more);
  };
}

/** Declares an option without a value. */
export function flag<const More extends Attributes = object>(
  help: string,
  more?: More,
): Field<boolean, 'nothing'> & NoInfer<More> {
  return declared({ schema: v.boolean(), takes: 'nothing', value: '', help, read: () => true }, more);
}

/** A reader that refuses texts of which `parse` makes nothing. */
export function reading<Value>(
  parse: (text: string) => Value | undefined,
  wrong: string,
  hint?: string,
): Kind<Value>['read'] {
  return (text, option) => {
    const value = parse(text);
    if (value === undefined) throw new CurlewError('USAGE', `${option} ${text}: ${wrong}`, { hint });
    return value;
  };
}

/** One of several texts. */
export function choiceOf<const Value extends string>(values: readonly Value[]): Kind<Value> {
  const wrong = `must be ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`;
  return {
    schema: v.picklist(values),
    values,
    read: (text, option) => {
      const near = nearest(text, values);
      const parse = (): Value | undefined => values.find((value) => value === text);
      return reading(parse, wrong, near === undefined ? undefined : `did you mean ${near}?`)(text, option);
    },
  };
}

/** Whole numbers in a range. */
export function numberOf(least: number, most: number, wrong: string): Kind<number> {
  const schema = v.pipe(v.number(), v.integer(wrong), v.minValue(least, wrong), v.maxValue(most, wrong));
  const parse = (text: string): number | undefined => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : -1;
    return number >= least && number <= most ? number : undefined;
  };
  return { schema, read: reading(parse, wrong) };
}

/** A number from 0, of bytes or milliseconds. */
const AMOUNT: v.GenericSchema = v.pipe(v.number(), v.finite('not a finite number'), v.minValue(0, 'negative'));

const HOUR = 60 * 60 * 1000;
const AGES: Readonly<Record<string, number>> = { h: HOUR, d: 24 * HOUR, w: 7 * 24 * HOUR };

function ageOf(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (AGES[unit] ?? 1);
}

function durationOf(text: string): number | undefined {
  const ms = parseDuration(text) ?? 0;
  return ms >= 1000 && ms <= Number.MAX_SAFE_INTEGER ? ms : undefined;
}

function delayOf(text: string): number | undefined {
  return parseDuration(text) === 0 ? 0 : durationOf(text);
}

const POWERS = ['', 'K', 'M', 'G', 'T'];

/** `4480M`, `1.5G`, `512K`, `1000`: powers of 1024; `10MB`: powers of 1000. Never 0. */
function bytesOf(text: string): number | undefined {
  const [, digits = '', power = '', decimal] = /^(\d{1,15}(?:\.\d{1,3})?)(?:([KMGT])(?:(B)|iB)?|B)?$/i.exec(text) ?? [];
  const factor = (decimal === undefined ? 1024 : 1000) ** POWERS.indexOf(power.toUpperCase());
  const bytes = Math.floor(Number(digits) * factor);
  return digits !== '' && bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined;
}

const TEXT: Kind<string> = {
  // Paths, names and variables of the environment cannot contain NUL.
  schema: v.pipe(
    v.string(),
    v.check((text) => !text.includes('\0'), 'contains a NUL character'),
  ),
  read: (text) => text,
};
/** A path as a command line has it. Throws `USAGE` for one whose `~` a shell has not replaced, which would become a folder of this name. */
export function pathText(text: string, option: string): string {
  if (!/^~(?:[\w.-]*\/|$)/.test(text)) return text;
  const whole = /^~(?:\/|$)/.test(text) ? `$HOME${text.slice(1)}` : 'the whole path';
  throw new CurlewError('USAGE', `${option} ${text}: the shell has not replaced ~ with a home folder`, {
    hint: `a shell does so only at the beginning of a word: write ${whole}, or ./${text} for a file of that name`,
  });
}

const PATH: Kind<string> = { ...TEXT, read: pathText, names: 'path' };
const PLACE: Kind<string> = { ...PATH, names: 'place' };
const ARCH = choiceOf(ARCHES);

export const text: Declare<string, 'one'> = one(TEXT);
export const texts: Declare<readonly string[], 'many'> = many(TEXT);
export const path: Declare<string, 'one'> = one(PATH);
export const paths: Declare<readonly string[], 'many'> = many(PATH);
/** A path or an address. */
export const place: Declare<string, 'one'> = one(PLACE);
export const places: Declare<readonly string[], 'many'> = many(PLACE);
const NO_STREAM = reading(
  (to) => (to === '-' ? undefined : to),
  'the output must be a file, not standard output',
  'use -o FILE',
);
/** A file to write. */
export const outputFile: Declare<string, 'one'> = one({
  ...PATH,
  read: (to, option) => NO_STREAM(pathText(to, option), option),
});
/** From 1 to 999,999. */
export const count: Declare<number, 'one'> = one(numberOf(1, 999_999, 'not a number from 1'));
export const port: Declare<number, 'one'> = one(numberOf(1, 65_535, 'not a port from 1 to 65535'));
/** `12h`, `30d` or `8w`; in milliseconds. */
export const age: Declare<number, 'one'> = one({
  schema: AMOUNT,
  read: reading(ageOf, 'not a duration', 'write 12h, 30d or 8w'),
});
/** `90s`, `5m` or `1h30m`, from 1 second; in milliseconds. */
export const duration: Declare<number, 'one'> = one({
  schema: AMOUNT,
  read: reading(durationOf, 'not a duration of at least 1s', 'write 90s, 5m or 2h'),
});
/** Milliseconds that may be none. */
export const delayField: Declare<number, 'one'> = one({
  schema: AMOUNT,
  read: reading(delayOf, 'not 0s or a duration of at least 1s', 'write 0s, 90s, 5m or 2h'),
});
/** {@link bytesOf}. */
export const sizeField: Declare<number, 'one'> = one({
  schema: AMOUNT,
  read: reading(bytesOf, 'not a size in bytes', 'write it as 500K, 10M or 1.5G'),
});
/** Also as `uname -m` prints it. */
export const archField: Declare<Arch, 'one'> = one({
  ...ARCH,
  read: (name, option) => ARCH.read(archName(name), option),
});

/** One of `values`; the name of the value in help texts is `value`, or all of them. */
export function choice<
  const Value extends string,
  const More extends Attributes & { readonly value?: string } = object,
>(values: readonly Value[], help: string, more?: More): Field<Value, 'one'> & NoInfer<More> {
  return one(choiceOf(values))(values.join('|'), help, more);
}
