/** Type checks for parsed JSON: the fields of a document from outside are checked one by one. */

/** An object, not a list. Its fields are unchecked. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fields of an object; none for anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/** The items of a list; none for anything else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A map with the same names and changed values. */
export function mapped<From, To>(all: Readonly<Record<string, From>>, change: (one: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, change(one)]));
}

/** A step of a JSON pointer (RFC 6901): `~1` is a slash, `~0` a tilde. */
export function pointerStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** A list of strings. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** A size in bytes, or any other count: a safe integer that is not negative. */
export function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Nesting limit. JSON.parse reads any depth, but code that writes the value again would overflow the stack. */
export const DEEPEST = 500;

/**
 * Limit on the lists, objects and commas of a document. They determine its size in memory, not its bytes: an empty object
 * takes twenty times its text. A table of contents with a million entries has fewer.
 */
const MAX_VALUES = 16_000_000;

/** Its message contains no part of the document. */
class Refused extends SyntaxError {}

/**
 * The value of a JSON document from outside that all JSON readers interpret alike. Throws `SyntaxError` or `TypeError` for
 * bytes that are not UTF-8, for a byte order mark, for a key that an object has twice (readers differ in which one they
 * use), for nesting deeper than `deepest` ({@link DEEPEST} for values that are written again), and for more than 16
 * million values.
 */
export function parseJson(document: Uint8Array | string, deepest = Number.POSITIVE_INFINITY): unknown {
  const text =
    typeof document === 'string'
      ? document
      : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(document);
  const members = membersIn(text, deepest);
  const value: unknown = JSON.parse(text);
  if (members !== membersOf(value)) throw new Refused('an object has a key twice');
  return value;
}

/** {@link parseJson} for values that are written again. */
export function strictJson(text: string): unknown {
  return parseJson(text, DEEPEST);
}

/** `JSON.parse` of a document from outside; `SyntaxError` for one that is nested too deeply or has too many values. */
export function shallowJson(text: string, most = MAX_VALUES): unknown {
  membersIn(text, DEEPEST, most);
  return JSON.parse(text);
}

/** {@link shallowJson}, but undefined for a text that is not such a document, or has more than `most` values. */
export function jsonIn(text: string, most = MAX_VALUES): unknown {
  try {
    return shallowJson(text, most);
  } catch {
    return undefined;
  }
}

/** The first, which is fast, is in any text with the second. Both are also found in strings: that only costs time. */
const [LONG_DIGITS, LONG_INTEGER] = [/\d{16}/, /[[:,]\s*-?\d{16}/];
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;

/** {@link shallowJson} with bigints for integers beyond 2^53; {@link exactJson} is its reverse. */
export function exactValue(text: string): unknown {
  if (!LONG_DIGITS.test(text) || !LONG_INTEGER.test(text)) return shallowJson(text);
  membersIn(text, DEEPEST);
  let mark = 'integer ';
  while (text.includes(mark)) mark += ' ';
  return unmarked(JSON.parse(withMarkedIntegers(text, mark)), mark);
}

function unmarked(value: unknown, mark: string): unknown {
  if (typeof value === 'string') return value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value;
  if (typeof value !== 'object' || value === null) return value;
  const object = value as Record<string, unknown>;
  for (const key of Object.keys(object)) object[key] = unmarked(object[key], mark);
  return value;
}

/** Valid JSON text whose integers beyond 2^53 are strings that begin with `mark`. */
function withMarkedIntegers(text: string, mark: string): string {
  const parts: string[] = [];
  let done = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    if (code !== MINUS && (code < ZERO || code > NINE)) continue;
    NUMBER.lastIndex = at;
    const [token = ''] = NUMBER.exec(text) ?? [];
    if (/^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token))) {
      parts.push(text.slice(done, at), JSON.stringify(mark + token));
      done = at + token.length;
    }
    at += token.length - 1;
  }
  return parts.join('') + text.slice(done);
}

const [MINUS, ZERO, NINE] = [0x2d, 0x30, 0x39];
const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts the members of all objects in valid JSON text: each has one colon, and outside strings there are no other colons.
 * `SyntaxError` for text that is nested too deeply or has too many values.
 */
function membersIn(text: string, deepest: number, most = MAX_VALUES): number {
  let count = 0;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COLON) count += 1;
    else if (code === COMMA) values += 1;
    else if (code === LIST || code === OBJECT) {
      values += 1;
      depth += 1;
      if (depth > deepest) throw new Refused(`it nests more than ${deepest} lists and objects`);
    } else if (code === LIST_END || code === OBJECT_END) depth -= 1;
    if (values > most) throw new Refused(`it has more than ${most} values`);
  }
  return count;
}

/** Index of the quote that ends the string beginning at `start`, or of the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}

/** Counts the members of the parsed value, where each key of an object appears once. */
function membersOf(value: unknown): number {
  let count = 0;
  // Not recursive: documents may nest to any depth.
  const stack: unknown[] = [value];
  while (stack.length > 0) {
    const one = stack.pop();
    if (typeof one !== 'object' || one === null) continue;
    const items: readonly unknown[] = Array.isArray(one) ? one : Object.values(one);
    if (!Array.isArray(one)) count += items.length;
    for (const item of items) if (typeof item === 'object' && item !== null) stack.push(item);
  }
  return count;
}

/** Parses JSON from outside; `bad` creates the error for anything else. */
export function parseText<Text extends string | Uint8Array>(
  text: Text,
  parse: (text: Text) => unknown,
  bad: (what: string, cause?: unknown) => Error,
): unknown {
  try {
    return parse(text);
  } catch (error) {
    // Not the parser's message where it repeats the content of the file.
    const isQuote = error instanceof SyntaxError && error.message.endsWith(' is not valid JSON');
    throw bad(error instanceof Refused ? error.message : 'not JSON', isQuote ? undefined : error);
  }
}

/** The object in a JSON text from outside, with unchecked fields; `bad` creates the error for anything else. */
export function parseObject(text: string, bad: (what: string, cause?: unknown) => Error): Record<string, unknown> {
  const value = parseText(text, strictJson, bad);
  if (!isObject(value)) throw bad('not an object');
  return value;
}

/** JSON text of a value in which integers beyond 2^53 are bigints: these are written with all digits. */
export function exactJson(value: unknown): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map((item: unknown) => exactJson(item ?? null)).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  return `{${members.map(([key, item]) => `${JSON.stringify(key)}:${exactJson(item)}`).join(',')}}`;
}

/**
 * JSON text as Go's encoding/json writes it: keys sorted, and `<`, `>`, `&` and two line separators escaped. Unset values are null,
 * and bigints have all digits.
 */
export function goJson(value: unknown): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(goJson).join(',')}]`;
  if (isObject(value)) {
    const keys = Object.keys(value).toSorted();
    return `{${keys.map((key) => `${goJson(key)}:${goJson(value[key])}`).join(',')}}`;
  }
  return JSON.stringify(value ?? null).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The value with a text of its digits in place of each bigint, for what takes JSON only, such as digests. */
export function withDigits(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? `${item}n` : item)));
}

/**
 * JSON for a terminal or a log: escapes the control characters that JSON allows, and the characters that change the
 * direction of text.
 */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
