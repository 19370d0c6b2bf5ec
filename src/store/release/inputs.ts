/**
 * `inputs.json` of a release: what the build of each package saw, so that the next publisher, on whatever machine, can
 * tell what has not changed. What is recorded is the builder's; here it is kept and handed on. An entry counts only for
 * the package that it names by digest, so a file that is lost, old or wrong costs builds and nothing else.
 */
import { isRelease } from '../../core/catalogue.ts';
import { canonicalJson, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject, shallowJson } from '../../core/json.ts';
import { storeKey } from '../../core/layout.ts';
import type { Store } from '../store.ts';

export interface RecordedPackage {
  /** Identity of the package that the inputs made. */
  readonly digest: Digest;
  /** The release that it was first in. */
  readonly since: string;
  /** Git commit in the metadata of the package; undefined when that was not recorded. */
  readonly commit?: string | undefined;
  readonly inputs: unknown;
}

/** By file name. */
export type RecordedPackages = ReadonlyMap<string, RecordedPackage>;

/** True for a git commit in hex, whole or cut. */
export function isCommit(text: string): boolean {
  return /^[0-9a-f]{7,64}$/.test(text);
}

const FORMAT = 1;
const LIMIT = 64 << 20;

/** Canonical text of an `inputs.json`. */
export function formatRecorded(packages: RecordedPackages): string {
  return `${canonicalJson({ format: FORMAT, packages: Object.fromEntries(packages) })}\n`;
}

/** Reads an `inputs.json`; what cannot be read is left out. */
export function parseRecorded(text: string): RecordedPackages {
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch {
    return new Map();
  }
  if (!isObject(value) || value['format'] !== FORMAT || !isObject(value['packages'])) return new Map();
  const rows = Object.entries(value['packages']).flatMap(([file, row]) => {
    if (!isObject(row)) return [];
    const { digest, since, inputs, commit } = row;
    const known = typeof digest === 'string' && isDigest(digest) && typeof since === 'string' && isRelease(since);
    const made = typeof commit === 'string' && isCommit(commit) ? { commit } : {};
    return known ? [[file, { digest, since, inputs, ...made }] as const] : [];
  });
  return new Map(rows);
}

/** What a release recorded; empty when it recorded nothing that can be read. */
export async function readRecorded(
  store: Store,
  release: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<RecordedPackages> {
  try {
    const found = await store.read(storeKey.inputs(release), { limit: LIMIT, signal });
    return found === undefined ? new Map() : parseRecorded(Buffer.from(found.data).toString());
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'PACKAGE_INVALID') return new Map();
    throw error;
  }
}
