/** Writes a planned bundle to a store. The store's server copies the ranges of objects that it already has. */
import { countBytes } from '../../../core/events.ts';
import type { SplicePlan } from '../../../formats/archive/splice.ts';
import { asError, CurlewError } from '../../../core/errors.ts';
import { isFolderStore } from '../../store/folder.ts';
import type { CopiedRange, Store, Upload } from '../../store/store.ts';
import { changedSincePlanned, type BundleSource } from './bytes.ts';
import { createEntryCheck, type EntryNaming, sourceNames } from './entry-check.ts';
import type { BundlePlan } from '../bundle-plan.ts';
import { planSource } from './plan-source.ts';
import type { WriteBundleOptions } from './write-bundle.ts';

export interface StoreBundleOptions extends Pick<WriteBundleOptions, 'verify' | 'report' | 'signal'> {
  /** Replace an existing object; otherwise it is `FILE_EXISTS`. */
  readonly force: boolean;
}

/**
 * Writes a bundle under a key, atomically, with the digest of its table of contents as metadata. Packages on the same server are
 * copied there, except for bytes at part boundaries; `verify` reads them all. A source that has changed since
 * planning is `STORE_CONFLICT`.
 */
export async function storeBundle(
  { splice }: BundlePlan,
  sources: readonly BundleSource[],
  { store, key }: { readonly store: Store; readonly key: string },
  { force, verify, report, signal }: StoreBundleOptions,
): Promise<void> {
  const name = `${store.address}/${key}`;
  const exists = async (): Promise<boolean> => (await store.head(key, { signal })) !== undefined;
  // Also checked with `force`, so that a missing or inaccessible bucket is reported first.
  if ((await exists()) && !force) throw existsError(name);
  const copies = copiesFor(store, splice, sources);
  report({ type: 'step-started', id: name, title: key, bytes: splice.size });
  // Retried bytes must not exceed the total.
  const addBytes = countBytes(report, name, { most: splice.size });
  const { read } = planSource(name, splice, sources);
  const nameOf = sourceNames(splice, sources, name);
  try {
    if (verify && copies.length > 0) await verifyAll(splice, read, nameOf, signal);
    const checked = verify && copies.length === 0;
    const body: Upload = {
      size: splice.size,
      async *read(offset, length, options) {
        const whole = checked && length === splice.size;
        const range = read(offset, length, options);
        for await (const chunk of whole ? verified(splice, range, nameOf, signal) : range) {
          addBytes(chunk.byteLength);
          yield chunk;
        }
      },
      copies,
      onCopied: addBytes,
    };
    const metadata = { 'toc-digest': splice.index.tocDigest };
    await store.put(key, body, { ifNoneMatch: force ? undefined : '*', isFree: !force, metadata, signal });
  } catch (error) {
    report({ type: 'step-failed', id: name, error: asError(error) });
    signal.throwIfAborted();
    const conflicts = !force && error instanceof CurlewError && error.code === 'STORE_CONFLICT';
    if (conflicts && (await exists())) throw existsError(name, error);
    throw changedSincePlanned(error);
  }
  report({ type: 'step-done', id: name, outcome: verify ? 'written and verified' : 'written' });
}

function existsError(name: string, cause?: unknown): CurlewError {
  return new CurlewError('FILE_EXISTS', `cannot write ${name}: the object already exists`, {
    hint: 'use another key, or replace it with --force',
    cause,
  });
}

/** Ranges that the store's own server can copy. */
function copiesFor(store: Store, { segments }: SplicePlan, sources: readonly BundleSource[]): readonly CopiedRange[] {
  if (isFolderStore(store)) return [];
  return segments.flatMap((segment): readonly CopiedRange[] => {
    if (segment.kind === 'bytes') return [];
    const { place, object } = sources[segment.source] ?? {};
    if (object === undefined || place?.server !== store.place.server) return [];
    const { at, offset, length } = segment;
    return [{ at, offset, length, place, key: object.key, etag: object.etag }];
  });
}

/** Passes all bytes through; throws at the end if they do not match the plan. */
async function* verified(
  { index }: SplicePlan,
  chunks: AsyncIterable<Uint8Array>,
  nameOf: EntryNaming,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const check = createEntryCheck(index, nameOf, { signal });
  try {
    for await (const chunk of chunks) {
      await check.push(chunk);
      yield chunk;
    }
    await check.finish();
  } finally {
    check.abandon();
  }
}

async function verifyAll(
  splice: SplicePlan,
  read: Upload['read'],
  nameOf: EntryNaming,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of verified(splice, read(0, splice.size, { signal }), nameOf, signal)) void chunk;
}
