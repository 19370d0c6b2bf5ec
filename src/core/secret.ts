/** Passwords and tokens as a type that no log, message or JSON can show by accident. */

export interface Secret {
  /** The text itself: call it where the secret is put to use and nowhere else. */
  readonly reveal: () => string;
  readonly toString: () => string;
  readonly toJSON: () => string;
}

const SHOWN = '[secret]';

/** Wraps a text; whatever prints or serialises the result gets `[secret]`. */
export function secret(text: string): Secret {
  const shown = (): string => SHOWN;
  const wrapped = { reveal: (): string => text, toString: shown, toJSON: shown };
  return Object.defineProperty(wrapped, Symbol.for('nodejs.util.inspect.custom'), { value: shown, enumerable: false });
}
