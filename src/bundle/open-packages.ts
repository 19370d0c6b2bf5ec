/** The packages of a bundle to be, as they lie in a store: their bytes by range, and their indexes. */
import type { ArchiveIndex } from '../archive/entry.ts';
import { readIndex } from '../archive/read.ts';
import { mapLimited } from '../core/each.ts';
import { CurlewError } from '../core/errors.ts';
import { openStoreSource, type StoreSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import type { ResolvedPackage } from './resolve.ts';

export interface OpenPackage<Resolved extends ResolvedPackage = ResolvedPackage> {
  readonly resolved: Resolved;
  readonly source: StoreSource;
  /** Of the object, as it was when its index was read. */
  readonly etag: string;
  readonly index: ArchiveIndex;
}

const AT_ONCE = 8;

/** Reads the end of each package only. An object of another size than the catalogue says is `DIGEST_MISMATCH`. */
export async function openPackages<Resolved extends ResolvedPackage>(
  store: Store,
  packages: readonly Resolved[],
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly OpenPackage<Resolved>[]> {
  return mapLimited(
    packages,
    async (resolved, context) => {
      const source = await openStoreSource(store, resolved.key, context);
      if (source.size !== resolved.size) {
        throw new CurlewError('DIGEST_MISMATCH', `${source.name}: has ${source.size} bytes, not ${resolved.size}`, {
          hint: 'the object in the store was replaced or damaged: publish the add-on again in a new release',
        });
      }
      return { resolved, source, etag: source.object.etag, index: await readIndex(source, context) };
    },
    { width: AT_ONCE, signal },
  );
}
