/** Objects of a store that is held to signatures: only what follows from one is handed out. */
import type { Catalogue, CataloguePackage } from '../core/catalogue.ts';
import { digestOf, hexOf } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { packageFileName, storeKey } from '../core/layout.ts';
import { ARCHES } from '../core/ref.ts';
import { openStoreSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import type { Catalogues } from './catalogues.ts';
import { dataContent, type Content } from './content.ts';
import { ofStore } from './failure.ts';
import { sourceContent, storedContent } from './objects.ts';
import type { Planner } from './planner.ts';
import { createShelf } from './shelf.ts';
import type { WatchOptions } from './watch.ts';

/** Undefined for a key that no signature speaks of. */
export type ProvedObjects = (key: string, options: { readonly signal: AbortSignal }) => Promise<Content | undefined>;

interface ProvedObjectsOptions extends Pick<WatchOptions, 'signal'> {
  readonly catalogues: Catalogues;
  readonly planner: Planner;
}

const MOST_PACKAGES = 10_000;

/**
 * Signatures as they are, the catalogue that was signed, and its packages: each has the size and the table of contents that
 * the catalogue names. That a package holds what its table of contents says is left to whoever reads it.
 */
export function createProvedObjects(
  store: Store,
  { planner, catalogues, signal: own }: ProvedObjectsOptions,
): ProvedObjects {
  const proofs = createShelf<boolean>({ most: MOST_PACKAGES, weigh: () => 1 });
  const isSigned = async (key: string, etag: string, expected: CataloguePackage): Promise<boolean> =>
    proofs.take(`${key} ${etag} ${expected.toc ?? ''}`, async () =>
      ofStore(async () => {
        const { object, name } = await openStoreSource(store, key, { signal: own });
        if (object.etag !== etag) throw new CurlewError('STORE_CONFLICT', `${name}: it has changed`);
        if (object.size !== expected.size) return false;
        return (await planner.run({ kind: 'toc', object }, { signal: own })) === expected.toc;
      }),
    );
  return async (key, { signal }) => {
    if (key === storeKey.versionSignature) return storedContent(store, key, { signal });
    const [release = '', file] = key.split('/');
    if (file === undefined || release === 'external') return undefined;
    if (key === storeKey.catalogueSignature(release)) return storedContent(store, key, { signal });
    const { catalogue, text } = await catalogues.of(release);
    if (key === storeKey.catalogue(release) && text !== undefined) {
      return dataContent(text, { etag: `"${hexOf(digestOf(text))}"`, type: 'application/json', cache: 'ask' }).content;
    }
    const expected = packageAt(catalogue, file);
    if (expected === undefined) return undefined;
    const found = await ofStore(async () => openStoreSource(store, key, { signal }));
    // The one that was looked at: by now there may be another.
    if (await isSigned(key, found.object.etag, expected)) return sourceContent(found);
    throw new CurlewError('SIGNATURE_INVALID', `${store.address}/${key}: it is not the package that was signed`);
  };
}

function packageAt({ addons }: Catalogue, file: string): CataloguePackage | undefined {
  for (const { name, versions } of addons) {
    for (const { version, packages } of versions) {
      const arch = ARCHES.find((one) => packageFileName({ name, version }, one) === file);
      if (arch !== undefined) return packages[arch];
    }
  }
  return undefined;
}
