/** Passwords and tokens as a type that logs, messages and JSON cannot reveal by accident. */

export interface Secret {
  /** The text itself. Call it only where the secret is used. */
  readonly reveal: () => string;
  readonly toString: () => string;
  readonly toJSON: () => string;
}

const SHOWN = '[secret]';

/** Wraps a text; printing or serializing the result yields `[secret]`. */
export function secret(text: string): Secret {
  const shown = (): string => SHOWN;
  const wrapped = { reveal: (): string => text, toString: shown, toJSON: shown };
  return Object.defineProperty(wrapped, Symbol.for('nodejs.util.inspect.custom'), { value: shown, enumerable: false });
}
