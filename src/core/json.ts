/** What a parsed JSON value is: documents from outside are checked field by field before their shape is believed. */

/** An object, not a list: the fields are still to be checked. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A list of texts. */
export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** The object in a JSON text from outside, its fields still to be checked; `bad` makes the error of anything else. */
export function parseObject(text: string, bad: (what: string, cause?: unknown) => Error): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // Not the words of the parser: they repeat what stands in the file.
    throw bad('not JSON', error);
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
