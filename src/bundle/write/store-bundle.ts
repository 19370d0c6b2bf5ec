/** Carries out a bundle plan into a store: what its server has already, the server itself puts together. */
import type { SplicePlan } from '../../formats/archive/splice.ts';
import { asError, CurlewError } from '../../core/errors.ts';
import { isFolderStore } from '../../store/folder.ts';
import type { CopiedRange, Store, Upload } from '../../store/store.ts';
import { changedSincePlanned, type BundleSource } from './bytes.ts';
import { createEntryCheck } from './entry-check.ts';
import type { BundlePlan } from '../plan.ts';
import { planSource } from './plan-source.ts';
import type { PourOptions } from './pour.ts';

export interface StoreBundleOptions extends Pick<PourOptions, 'verify' | 'report' | 'signal'> {
  /** Replace an object that is there; otherwise that is `FILE_EXISTS`. */
  readonly force: boolean;
}

/**
 * Puts a bundle under a key. It appears whole, with the digest of its table of contents as metadata. Bytes of packages
 * that a server of this store has do not pass through this machine, but for those at the borders of parts; to `verify`
 * they are read all the same. A source that has changed since the plan was made is `STORE_CONFLICT`.
 */
export async function storeBundle(
  { splice }: BundlePlan,
  sources: readonly BundleSource[],
  { store, key }: { readonly store: Store; readonly key: string },
  { force, verify, report, signal }: StoreBundleOptions,
): Promise<void> {
  const name = `${store.address}/${key}`;
  const isThere = async (): Promise<boolean> => (await store.head(key, { signal })) !== undefined;
  // Also where it may be replaced: a bucket that is not there, or closed, is best told first.
  if ((await isThere()) && !force) throw exists(name);
  const copies = copiesFor(store, splice, sources);
  report({ type: 'step-started', id: name, title: key, bytes: splice.size });
  let bytes = 0;
  const moved = (count: number): void => {
    // What is sent again does not count twice.
    bytes = Math.min(bytes + count, splice.size);
    report({ type: 'step-progress', id: name, bytes });
  };
  const { read } = planSource(name, splice, sources);
  try {
    if (verify && copies.length > 0) await prove(splice, read, name, signal);
    const checked = verify && copies.length === 0;
    const body: Upload = {
      size: splice.size,
      async *read(offset, length, options) {
        const whole = checked && length === splice.size;
        const range = read(offset, length, options);
        for await (const chunk of whole ? proved(splice, range, name, signal) : range) {
          moved(chunk.byteLength);
          yield chunk;
        }
      },
      copies,
      onCopied: moved,
    };
    const metadata = { 'toc-digest': splice.index.tocDigest };
    await store.put(key, body, { ifNoneMatch: force ? undefined : '*', isFree: !force, metadata, signal });
  } catch (error) {
    report({ type: 'step-failed', id: name, error: asError(error) });
    signal.throwIfAborted();
    const conflicts = !force && error instanceof CurlewError && error.code === 'STORE_CONFLICT';
    if (conflicts && (await isThere())) throw exists(name, error);
    throw changedSincePlanned(error);
  }
  report({ type: 'step-done', id: name, outcome: verify ? 'written and verified' : 'written' });
}

function exists(name: string, cause?: unknown): CurlewError {
  return new CurlewError('FILE_EXISTS', `write ${name}: there is such an object already`, {
    hint: 'name another one, or replace it with --force',
    cause,
  });
}

/** Runs that the store's own server holds. */
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

/** All bytes as they pass, and after the last of them a failure if they are not what the plan says. */
async function* proved(
  { index }: SplicePlan,
  chunks: AsyncIterable<Uint8Array>,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const check = createEntryCheck(index, name, { signal });
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

async function prove(splice: SplicePlan, read: Upload['read'], name: string, signal: AbortSignal): Promise<void> {
  for await (const chunk of proved(splice, read(0, splice.size, { signal }), name, signal)) void chunk;
}
