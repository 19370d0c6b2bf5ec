/** Reads a delta: the bundle that it recreates, and the payloads that it contains. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../../formats/archive/entry.ts';
import type { Holder } from '../../../formats/archive/holder.ts';
import { isBomb } from '../../../formats/archive/pack.ts';
import { findEntry, readFile } from '../../../formats/archive/read.ts';
import { indexOfContents } from '../../../formats/archive/recreate.ts';
import {
  BUNDLE_JSON_LIMIT,
  formatBundleJson,
  parseBundleJson,
  type BundleJson,
  type DeltaJson,
} from '../../../core/bundle.ts';
import { counted } from '../../../core/counted.ts';
import { digestOf, type Digest } from '../../../core/digest.ts';
import { CurlewError, errorAbout } from '../../../core/errors.ts';
import { BUNDLE_JSON, BUNDLED_TOOL, DELTA_CONTENTS } from '../../../core/layout.ts';

/** Maximum bytes of a table of contents; fits a million entries. */
const CONTENTS_LIMIT = 512 << 20;

export interface Delta {
  /** The `bundle.json` of the whole bundle, with the `delta` field. */
  readonly bundle: BundleJson & { readonly delta: DeltaJson };
  /** Index of the whole bundle. */
  readonly full: ArchiveIndex;
  /** Payloads in the delta, by digest. */
  readonly included: ReadonlyMap<Digest, Holder>;
}

/** Reads a delta; undefined for any other archive. An inconsistent delta is `PACKAGE_INVALID`. */
export async function readDelta(
  source: RangeSource,
  index: ArchiveIndex,
  { signal }: { readonly signal: AbortSignal },
): Promise<Delta | undefined> {
  const entry = findEntry(index, BUNDLE_JSON);
  if (entry === undefined) return undefined;
  const text = await readFile(source, entry, { limit: BUNDLE_JSON_LIMIT, signal });
  const bundle = parseBundleJson(Buffer.from(text).toString('utf8'), source.name);
  const { delta, ...whole } = bundle;
  if (delta === undefined) return undefined;
  const bad = errorAbout('PACKAGE_INVALID', source.name, 'the delta is damaged: create it again');
  const listed = findEntry(index, DELTA_CONTENTS);
  if (listed === undefined) throw bad(`it is a delta without ${DELTA_CONTENTS}`);
  if (isBomb(listed.size, listed.packed)) throw bad(`${DELTA_CONTENTS} unpacks to far more than its packed size`);
  const json = await readFile(source, listed, { limit: CONTENTS_LIMIT, signal });
  if (digestOf(json) !== delta.contents) throw bad(`${DELTA_CONTENTS} does not match ${BUNDLE_JSON}`);
  const full = indexOfContents(json, delta.size, `${source.name}: ${DELTA_CONTENTS}`);
  const included = new Map<Digest, Holder>();
  for (const one of index.entries) if (one.packed > 0) included.set(one.digest, { kind: 'entry', source, entry: one });
  const data = Buffer.from(formatBundleJson(whole));
  included.set(digestOf(data), { kind: 'bytes', path: `${source.name}: ${BUNDLE_JSON}`, data });
  return { bundle: { ...bundle, delta }, full, included };
}

/** The `delta` field of a delta; undefined for any other archive. */
export async function describeDelta(
  source: RangeSource,
  index: ArchiveIndex,
  { signal }: { readonly signal: AbortSignal },
): Promise<DeltaJson | undefined> {
  if (findEntry(index, DELTA_CONTENTS) === undefined) return undefined;
  return (await readDelta(source, index, { signal }))?.bundle.delta;
}

/** The payloads that are not in the delta, one entry each. */
export function missingIn({ full, included }: Pick<Delta, 'full' | 'included'>): readonly PlacedEntry[] {
  const missing = new Map<Digest, PlacedEntry>();
  for (const entry of full.entries) {
    if (entry.packed > 0 && !included.has(entry.digest) && !missing.has(entry.digest)) missing.set(entry.digest, entry);
  }
  return [...missing.values()];
}

const MAX_LISTED = 10;
const HINT = 'Create an inventory here and a delta from it, or use the whole bundle';
/** Only bundles have the tool in packed form. */
const TOOL_HINT = `Add a --base bundle with the same ${BUNDLED_TOOL}, or use an inventory without --with-tool`;

/** The error for a base without some payloads; `doing` is the prefix of the message. */
export function incompleteBase(doing: string, missing: readonly PlacedEntry[]): CurlewError {
  const bytes = missing.reduce((sum, { size }) => sum + size, 0);
  const named = missing.slice(0, MAX_LISTED).map(({ path, size }) => `${path} (${size} bytes)`);
  const more = missing.length > MAX_LISTED ? `, and ${missing.length - MAX_LISTED} more` : '';
  return new CurlewError(
    'NOT_FOUND',
    `cannot ${doing}: ${counted(missing.length, 'file')} (${counted(bytes, 'byte')}) missing: ${named.join(', ')}${more}`,
    { hint: `nothing has changed. ${missing.every(({ path }) => path === BUNDLED_TOOL) ? TOOL_HINT : HINT}` },
  );
}
