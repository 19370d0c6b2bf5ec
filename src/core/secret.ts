/** Passwords and tokens as a type that logs, messages and JSON cannot reveal by accident. */
import { isObject } from './json.ts';

export interface Secret {
  /** The text itself. Call it only where the secret is used. */
  readonly reveal: () => string;
  readonly toString: () => string;
  readonly toJSON: () => string;
}

export const REDACTED = '[secret]';

/** Wraps a text; printing or serializing the result yields `[secret]`. */
export function secret(text: string): Secret {
  const shown = (): string => REDACTED;
  const wrapped = { reveal: (): string => text, toString: shown, toJSON: shown };
  return Object.defineProperty(wrapped, Symbol.for('nodejs.util.inspect.custom'), { value: shown, enumerable: false });
}

/** All texts and numbers in a value, also as single lines, and in the forms of JSON and base64. */
export function secretsIn(value: unknown): readonly Secret[] {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') {
    const text = String(value);
    const lines = text.split('\n').map((line) => line.trim());
    return [text, ...lines, JSON.stringify(text).slice(1, -1), Buffer.from(text).toString('base64')].map(secret);
  }
  if (Array.isArray(value)) return value.flatMap(secretsIn);
  return isObject(value) ? Object.values(value).flatMap(secretsIn) : [];
}

/** Shorter secrets occur in any text. */
const MIN_SECRET = 4;

/** Returns what shows `[secret]` where a text has one of these. */
export function hiding(secrets: readonly Secret[]): (text: string) => string {
  const texts = new Set(secrets.map((one) => one.reveal()));
  // A long one may contain a short one.
  const hidden = [...texts].filter(({ length }) => length >= MIN_SECRET).toSorted((a, b) => b.length - a.length);
  return (text) => hidden.reduce((shown, one) => shown.replaceAll(one, REDACTED), text);
}
