/** The head file of a bundle in parts: lists the parts and describes the joined bundle. Pure. */
import { canonicalJson, hexOf, isDigest, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import { isObject, isSize, shallowJson } from './json.ts';
import { pathProblem } from './layout.ts';

export const PARTS_FORMAT = 1;
/** Size limit of a head file, in bytes. */
export const HEAD_LIMIT: number = 1 << 20;
/** Part numbers have three digits. */
export const MOST_PARTS = 999;

const HEAD_SUFFIX = '.parts.json';

export interface Part {
  /** File name. */
  readonly name: string;
  readonly size: number;
  /** Of the part's bytes. */
  readonly digest: Digest;
}

export interface PartsHead {
  readonly format: typeof PARTS_FORMAT;
  /** File name of the joined file. */
  readonly name: string;
  /** Bytes of the joined file. */
  readonly size: number;
  /** Of the joined file's table of contents, which signatures cover. */
  readonly tocDigest: Digest;
  /** In order, without gaps. */
  readonly parts: readonly Part[];
}

/** File names for the joined file `name`. */
export const partsPath = {
  /** `number` counts from 1. */
  part: (name: string, number: number): string => `${name}.part-${String(number).padStart(3, '0')}`,
  head: (name: string): string => `${name}${HEAD_SUFFIX}`,
  /** For `sha256sum --check`. */
  sums: (name: string): string => `${name}.parts.sha256`,
  /** Record of an unfinished set of parts. */
  begun: (name: string): string => `${name}.parts.begun`,
} as const;

/** True for the parts and the head file of the joined file `name`. */
export function isNamedAfter(name: string, file: string): boolean {
  if (!file.startsWith(name)) return false;
  return file === partsPath.head(name) || /^\.part-\d{3}$/.test(file.slice(name.length));
}

/** True for the path of a head file. */
export function isHeadPath(path: string): boolean {
  return path.endsWith(HEAD_SUFFIX);
}

export function formatHead(head: PartsHead): string {
  return `${canonicalJson(head)}\n`;
}

/** Checksums in the format of `sha256sum --check`. */
export function formatSums(parts: readonly Pick<Part, 'name' | 'digest'>[]): string {
  return parts.map(({ name, digest }) => `${hexOf(digest)}  ${name}\n`).join('');
}

/** Reads a head file from outside; `from` names it for messages. Anything wrong is `PACKAGE_INVALID`. */
export function parseHead(text: string, from: string): PartsHead {
  const bad = (what: string): CurlewError =>
    new CurlewError('PACKAGE_INVALID', `${from}: ${what}`, {
      hint: 'use the head file that was written with the parts',
    });
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch (error) {
    throw new CurlewError('PACKAGE_INVALID', `${from}: not JSON`, { cause: error });
  }
  if (!isObject(value)) throw bad('not the head file of a bundle in parts');
  const { format, name, size, tocDigest, parts } = value;
  if (format !== PARTS_FORMAT) {
    throw new CurlewError('UNSUPPORTED', `${from}: format ${JSON.stringify(format)} of parts is not supported`, {
      hint: 'a newer curlew wrote it; use that version or a newer one',
    });
  }
  if (typeof name !== 'string' || name.includes('/') || pathProblem(name) !== undefined) throw bad('name');
  if (!isSize(size) || !isDigest(tocDigest)) throw bad('size or tocDigest');
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > MOST_PARTS) throw bad('parts');
  let sum = 0;
  const checked = parts.map((part: unknown, index): Part => {
    const expected = partsPath.part(name, index + 1);
    if (!isObject(part) || part['name'] !== expected) throw bad(`part ${index + 1} is not ${expected}`);
    const { size: bytes, digest } = part;
    if (!isSize(bytes) || bytes === 0 || !isDigest(digest)) {
      throw bad(`size or digest of ${expected}`);
    }
    sum += bytes;
    return { name: expected, size: bytes, digest };
  });
  if (sum !== size) throw bad(`its parts have ${sum} bytes, not ${size}`);
  return { format, name, size, tocDigest, parts: checked };
}
