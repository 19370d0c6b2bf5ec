/** What a parsed JSON value is: documents from outside are checked field by field before their shape is believed. */

/** An object, not a list: the fields are still to be checked. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A list of texts. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** Lists and objects in each other. JSON.parse reads any number of them, and whoever writes the value again runs out of stack. */
export const DEEPEST = 500;

/**
 * Lists, objects and commas of a document: what it is in memory goes by them, not by its bytes, and an empty object takes twenty
 * times its text. A table of contents of a million entries has fewer.
 */
const MOST_VALUES = 16_000_000;

/** Its message repeats nothing of the document. */
class Refused extends SyntaxError {}

/**
 * The value of a JSON document from outside, as every reader of JSON must understand it: `SyntaxError` or `TypeError` for bytes
 * that are no UTF-8, for a byte order mark, and for a key that an object has twice, of which readers take different ones. So is
 * what is nested deeper than `deepest` ({@link DEEPEST} is for whatever may be written again), and what has more than 16 million values.
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

/** `JSON.parse` of a document from outside: one that is nested deeper, or has more values, than any that is meant is a `SyntaxError`. */
export function shallowJson(text: string): unknown {
  membersIn(text, DEEPEST);
  return JSON.parse(text);
}

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [LIST, LIST_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Members of all objects in a text that is JSON: each has one colon, and no other is outside of strings. `SyntaxError` for a
 * text that is nested too deeply, or has too many values.
 */
function membersIn(text: string, deepest: number): number {
  let count = 0;
  let depth = 0;
  let values = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) quoted = !quoted;
    else if (code === BACKSLASH) at += 1;
    else if (quoted) continue;
    else if (code === COLON) count += 1;
    else if (code === COMMA) values += 1;
    else if (code === LIST || code === OBJECT) {
      values += 1;
      depth += 1;
      if (depth > deepest) throw new Refused(`it is nested deeper than ${deepest} lists and objects`);
    } else if (code === LIST_END || code === OBJECT_END) depth -= 1;
    if (values > MOST_VALUES) throw new Refused(`it has more than ${MOST_VALUES} values`);
  }
  return count;
}

/** The same of what was read: there, each key of an object is left once. */
function membersOf(value: unknown): number {
  let count = 0;
  // Not by recursion: documents nest as deep as they like.
  const left: unknown[] = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one !== 'object' || one === null) continue;
    const inside = Object.values(one);
    if (!Array.isArray(one)) count += inside.length;
    for (const item of inside) if (typeof item === 'object') left.push(item);
  }
  return count;
}

/** The object in a JSON text from outside, its fields still to be checked; `bad` makes the error of anything else. */
export function parseObject(text: string, bad: (what: string, cause?: unknown) => Error): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(text, DEEPEST);
  } catch (error) {
    // Not the words of the parser: they repeat what stands in the file.
    throw bad(error instanceof Refused ? error.message : 'not JSON', error);
  }
  if (!isObject(value)) throw bad('not an object');
  return value;
}

/**
 * JSON for a terminal or a log: the control characters that JSON lets stand, and those that turn the direction of text, are
 * written as escapes.
 */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
