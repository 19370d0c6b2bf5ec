/** The release on which the next one is based: its packages, their objects in the store, and their build inputs. */
import type { Cancellable } from '../../core/cancellable.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, findCatalog, readCatalog, type CurrentRelease } from '../store/read-catalog.ts';
import type { ListedObject, Store } from '../store/store.ts';
import { fileOf, listPackages } from './make-catalog.ts';
import { parseRecorded, readRecorded, type RecordedPackages } from './release-inputs.ts';
import { readSignedBase, type ReleaseTrust } from './signed-release.ts';
import type { EarlierPackage } from './upload.ts';

export interface Previous {
  /** The release that `VERSION` named; undefined in a store without releases. */
  readonly current: CurrentRelease | undefined;
  /** By file name; empty if the release has no catalog. */
  readonly packages: ReadonlyMap<string, EarlierPackage>;
  /** Names of its channels. */
  readonly channels: readonly string[];
}

export const NO_PREVIOUS: Previous = { current: undefined, packages: new Map(), channels: [] };

/**
 * The current release, read with a few small requests and one listing. With `trust`, the release and its recorded inputs must
 * be signed.
 */
export async function readPrevious(
  store: Store,
  { trust, signal }: Cancellable & { readonly trust?: ReleaseTrust | undefined },
): Promise<Previous> {
  const current = await currentRelease(store, { signal });
  if (current === undefined) return NO_PREVIOUS;
  if (trust !== undefined) {
    const { parsed, inputs } = await readSignedBase(store, { release: current.release, trust, signal });
    const recorded = inputs === undefined ? undefined : parseRecorded(Buffer.from(inputs).toString());
    const packages = await packagesOf(store, parsed, signal, recorded ?? new Map());
    return { current, packages, channels: parsed.channels ?? [] };
  }
  const catalog = await findCatalog(store, current.release, { signal });
  const packages = catalog === undefined ? new Map<string, EarlierPackage>() : await packagesOf(store, catalog, signal);
  return { current, packages, channels: catalog?.channels ?? [] };
}

/** The packages of a release, by default the current one. `NOT_FOUND` if it does not exist. */
export async function readRelease(
  store: Store,
  { release, signal }: Cancellable & { readonly release: string | undefined },
): Promise<{ readonly release: string; readonly packages: Previous['packages'] }> {
  const catalog = await readCatalog(store, { release, signal });
  return { release: catalog.release, packages: await packagesOf(store, catalog, signal) };
}

async function packagesOf(
  store: Store,
  catalog: Parameters<typeof listPackages>[0],
  signal: AbortSignal,
  known?: RecordedPackages,
): Promise<Previous['packages']> {
  const { release } = catalog;
  const [objects, recorded] = await Promise.all([
    keysBelow(store, `${release}/`, signal),
    known ?? readRecorded(store, release, { signal }),
  ]);
  const rows = listPackages(catalog).map((listed) => {
    const file = fileOf(listed);
    const object = objects.get(storeKey.package(release, file));
    const row = recorded.get(file);
    const earlier: EarlierPackage = {
      release,
      listed,
      object: object?.size === listed.entry.size ? object : undefined,
      recorded: row?.digest === listed.entry.digest ? row : undefined,
    };
    return [file, earlier] as const;
  });
  return new Map(rows);
}

/** All objects with this key prefix, by key. */
export async function keysBelow(
  store: Store,
  prefix: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ListedObject>> {
  const objects = new Map<string, ListedObject>();
  for await (const object of store.list(prefix, { signal })) objects.set(object.key, object);
  return objects;
}
