/** Reading a delta: which bundle it makes, and what it brings of that. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import type { Holder } from '../../formats/archive/holder.ts';
import { isBomb } from '../../formats/archive/pack.ts';
import { findEntry, readFile } from '../../formats/archive/read.ts';
import { indexOfContents } from '../../formats/archive/recreate.ts';
import {
  BUNDLE_JSON_LIMIT,
  formatBundleJson,
  parseBundleJson,
  type BundleJson,
  type DeltaJson,
} from '../../core/bundle.ts';
import { counted } from '../../core/counted.ts';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { BUNDLE_JSON, BUNDLED_TOOL, DELTA_CONTENTS } from '../../core/layout.ts';

/** Most bytes of a table of contents: one of a million entries fits. */
const CONTENTS_LIMIT = 512 << 20;

export interface Delta {
  /** Of the whole bundle, with what makes it a delta. */
  readonly bundle: BundleJson & { readonly delta: DeltaJson };
  /** Of the whole bundle. */
  readonly full: ArchiveIndex;
  /** Payloads that came with the delta, by digest. */
  readonly brought: ReadonlyMap<Digest, Holder>;
}

/** What an archive is the delta of; undefined when it is none. Anything that does not fit together is `PACKAGE_INVALID`. */
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
  const bad = (what: string): CurlewError =>
    new CurlewError('PACKAGE_INVALID', `${source.name}: ${what}`, { hint: 'the delta is damaged: make it again' });
  const listed = findEntry(index, DELTA_CONTENTS);
  if (listed === undefined) throw bad(`it says that it is a delta, and there is no ${DELTA_CONTENTS}`);
  if (isBomb(listed.size, listed.packed)) throw bad(`${DELTA_CONTENTS} unpacks to far more than its packed size`);
  const json = await readFile(source, listed, { limit: CONTENTS_LIMIT, signal });
  if (digestOf(json) !== delta.contents) throw bad(`${DELTA_CONTENTS} is not what ${BUNDLE_JSON} says`);
  const full = indexOfContents(json, delta.size, `${source.name}: ${DELTA_CONTENTS}`);
  const brought = new Map<Digest, Holder>();
  for (const one of index.entries) if (one.packed > 0) brought.set(one.digest, { kind: 'entry', source, entry: one });
  const data = Buffer.from(formatBundleJson(whole));
  brought.set(digestOf(data), { kind: 'bytes', path: `${source.name}: ${BUNDLE_JSON}`, data });
  return { bundle: { ...bundle, delta }, full, brought };
}

/** What a delta says of itself, when it brings a table of contents; whatever else the archive is, is not looked at. */
export async function describeDelta(
  source: RangeSource,
  index: ArchiveIndex,
  { signal }: { readonly signal: AbortSignal },
): Promise<DeltaJson | undefined> {
  if (findEntry(index, DELTA_CONTENTS) === undefined) return undefined;
  return (await readDelta(source, index, { signal }))?.bundle.delta;
}

/** The payloads that somebody else must have: one entry for each. */
export function lackingIn({ full, brought }: Pick<Delta, 'full' | 'brought'>): readonly PlacedEntry[] {
  const lacking = new Map<Digest, PlacedEntry>();
  for (const entry of full.entries) {
    if (entry.packed > 0 && !brought.has(entry.digest) && !lacking.has(entry.digest)) lacking.set(entry.digest, entry);
  }
  return [...lacking.values()];
}

const MOST_NAMED = 10;
const HINT = 'Make an inventory of this place, and a delta since that; or take the whole bundle';
/** Only bundles have it in the packed form. */
const TOOL_HINT = `Name a bundle with the same ${BUNDLED_TOOL} with another --base; or make an inventory without --with-tool, and a delta since that`;

/** The error of a place that has not got all of it; `doing` opens the message. */
export function baseLacks(doing: string, missing: readonly PlacedEntry[]): CurlewError {
  const bytes = missing.reduce((sum, { size }) => sum + size, 0);
  const named = missing.slice(0, MOST_NAMED).map(({ path, size }) => `${path} (${size} bytes)`);
  const more = missing.length > MOST_NAMED ? `, and ${missing.length - MOST_NAMED} more` : '';
  return new CurlewError(
    'NOT_FOUND',
    `${doing}: ${counted(missing.length, 'file')} of ${counted(bytes, 'byte')} ${missing.length === 1 ? 'is' : 'are'} missing: ${named.join(', ')}${more}`,
    { hint: `nothing was changed. ${missing.every(({ path }) => path === BUNDLED_TOOL) ? TOOL_HINT : HINT}` },
  );
}
