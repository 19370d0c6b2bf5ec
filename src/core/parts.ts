/** The head file of a bundle in parts: lists the parts and describes the joined bundle. Pure. */
import * as v from 'valibot';
import { canonicalJson, hexOf } from './digest.ts';
import { errorAbout, type CurlewError } from './errors.ts';
import { shallowJson } from './json.ts';
import { digest, fileName, readJson, size, type Read } from './schema.ts';

export const PARTS_FORMAT = 1;
/** Size limit of a head file, in bytes. */
export const HEAD_LIMIT: number = 1 << 20;
/** Part numbers have three digits. */
export const MAX_PARTS = 999;

const HEAD_SUFFIX = '.parts.json';

const part = v.object({
  /** File name. */
  name: v.string(),
  size: v.pipe(size, v.minValue(1, 'not a size of at least one byte')),
  /** Digest of the part's bytes. */
  digest,
});
export type Part = Read<typeof part>;

const partsHead = v.object({
  format: v.literal(PARTS_FORMAT),
  /** File name of the joined file. */
  name: fileName,
  /** Bytes of the joined file. */
  size,
  /** Digest of the joined file's table of contents, which signatures cover. */
  tocDigest: digest,
  /** Parts in order, without gaps. */
  parts: v.pipe(v.array(part), v.minLength(1, 'empty'), v.maxLength(MAX_PARTS, `more than ${MAX_PARTS}`)),
});
export type PartsHead = Read<typeof partsHead>;

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

/** The joined file of a part with this path; undefined if it is not named like a part. */
export function wholeOf(path: string): string | undefined {
  return /^(.*)\.part-\d{3}$/s.exec(path)?.[1];
}

/** True for the parts and the head file of the joined file `name`. */
export function isNamedAfter(name: string, file: string): boolean {
  return file === partsPath.head(name) || wholeOf(file) === name;
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
  const bad = errorAbout(
    'PACKAGE_INVALID',
    `${from}: not the head file of a bundle in parts`,
    'use the head file that was written with the parts',
  );
  const unsupported = errorAbout('UNSUPPORTED', from, 'a newer curlew wrote it; use that version or a newer one');
  const other = (shown: string): CurlewError => unsupported(`format ${shown} of parts is not supported`);
  const head = readJson(partsHead, text, { bad, parse: shallowJson, format: { only: PARTS_FORMAT, other } });
  const { format, name, size: total, tocDigest } = head;
  const parts = head.parts.map((one, index): Part => {
    const expected = partsPath.part(name, index + 1);
    if (one.name !== expected) throw bad(`part ${index + 1} is not ${expected}`);
    return { name: expected, size: one.size, digest: one.digest };
  });
  const sum = parts.reduce((bytes, one) => bytes + one.size, 0);
  if (sum !== total) throw bad(`its parts have ${sum} bytes, not ${total}`);
  return { format, name, size: total, tocDigest, parts };
}
