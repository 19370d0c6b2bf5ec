/** Scalars of YAML as the tools of Kubernetes read them, with go-yaml 2: YAML 1.1 without its numbers to the base of 60. Pure. */

/** Integers that a number cannot represent exactly are bigints. */
export type GoScalar = string | number | bigint | boolean | null;

const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
]);
const SPECIAL = /^([-+]?)\.(?:inf|Inf|INF)$|^\.(?:nan|NaN|NAN)$/;
const INTEGER = /^[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/;
/** go-yaml allows a sign after this prefix too. */
const BINARY = /^0b[-+][01]+$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
/** Maximum length of an integer, whose conversion takes the square of its length. */
const MAX_LENGTH = 1000;
const [MIN_INTEGER, MAX_INTEGER] = [-(2n ** 63n), 2n ** 64n - 1n];

/** The value of a scalar without quotes and without a tag. */
export function goScalar(text: string): GoScalar {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  const [special, sign] = SPECIAL.exec(text) ?? [];
  if (special !== undefined) return sign === undefined ? Number.NaN : Number(`${sign}Infinity`);
  // go-yaml ignores underscores, but those of a fraction without a first digit must be between digits.
  const plain = text.startsWith('.') ? text.replaceAll(/(?<=\d)_(?=\d)/g, '') : withoutUnderscores(text);
  const integer = goInteger(plain);
  if (integer !== undefined) return integer;
  const number = FLOAT.test(plain) ? Number(plain) : Number.NaN;
  return Number.isFinite(number) ? number : text;
}

function withoutUnderscores(text: string): string {
  return /^[-+0-9]/.test(text) ? text.replaceAll('_', '') : text;
}

/** Undefined for another text, and for an integer of more than 64 bits. */
function goInteger(text: string): number | bigint | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const isBinary = BINARY.test(text);
  if (!isBinary && !INTEGER.test(text)) return undefined;
  const sign = /[-+]/.exec(text)?.[0] ?? '';
  const digits = text.replace(sign, '').replace(/^0[oO]?(?=[0-7])/, '0o');
  const value = BigInt(digits.toLowerCase()) * (sign === '-' ? -1n : 1n);
  // go-yaml parses unsigned integers without a sign.
  const most = sign === '' ? MAX_INTEGER : -MIN_INTEGER - 1n;
  if (value < MIN_INTEGER || value > most) return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** The value of a scalar with a tag in its long form; undefined if the text cannot be of that type. */
export function goTagged(tag: string, text: string): GoScalar | undefined {
  const type = tag.replace('tag:yaml.org,2002:', '');
  if (type === 'binary') return binaryText(text);
  if (type === 'timestamp') return /^\d{4}-/.test(text) ? text : undefined;
  if (!['bool', 'int', 'float', 'null'].includes(type)) return text;
  const value = goScalar(text);
  const actual = value === null ? 'null' : typeof value;
  if (type === 'bool') return actual === 'boolean' ? value : undefined;
  if (type === 'null') return actual === 'null' ? value : undefined;
  const isInteger = goInteger(withoutUnderscores(text)) !== undefined;
  if (type === 'int') return isInteger ? value : undefined;
  return actual === 'number' || actual === 'bigint' ? Number(value) : undefined;
}

/** Undefined unless it is a text in base64. */
function binaryText(text: string): string | undefined {
  const bytes = Buffer.from(text, 'base64');
  const isBase64 = bytes.toString('base64') === text.replaceAll(/\s/g, '');
  try {
    return isBase64 ? new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) : undefined;
  } catch {
    return undefined;
  }
}
