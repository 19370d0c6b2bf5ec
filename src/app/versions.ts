/** Lists the versions of add-ons in a release, resolves versions such as 1.2.x, and compares with an earlier release. */
import type { Catalog } from '../core/catalog.ts';
import { CurlewError } from '../core/errors.ts';
import { storeKey } from '../core/layout.ts';
import { nearest } from '../core/nearest.ts';
import { ARCHES, compareText, type Arch } from '../core/ref.ts';
import { resolveVersion, type ResolvedVersion } from '../spec/version.ts';
import { offeredCatalog } from '../ship/release/merged-catalog.ts';
import { checkedRelease } from '../ship/release/release-name.ts';
import { readSigned } from '../ship/release/signed-release.ts';
import { changedAddons, type AddonChange } from '../ship/store/changed-addons.ts';
import type { Store } from '../ship/store/store.ts';
import type { Context } from '../core/context.ts';
import { lazyHttp } from '../steps/open/network.ts';
import { trustOfStore } from '../steps/open/release-trust.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { VERSIONS } from '../requests/release.ts';
import { useCase } from '../core/request.ts';

interface AddonVersions {
  readonly name: string;
  /** Latest first. */
  readonly versions: readonly {
    readonly version: string;
    readonly arches: readonly string[];
    /** Bytes of its packages, in the order of `arches`. */
    readonly sizes: readonly number[];
  }[];
  /** For `name@version`. */
  readonly resolved?: ResolvedVersion;
}

export interface Versions {
  readonly store: string;
  readonly release: string;
  /** When the release was written to this store, in ISO 8601; absent if the store does not say. */
  readonly published?: string;
  /** The public key whose signature holds, where signatures were asked for. */
  readonly signedBy?: string;
  readonly addons: readonly AddonVersions[];
  /** With `since`: the release to compare with, and the add-ons that differ from it. */
  readonly since?: string;
  readonly changes?: readonly ReleaseChange[];
}

export interface ReleaseChange extends AddonChange {
  /** The architectures whose packages differ like this. */
  readonly arches: readonly Arch[];
}

/** Without signatures, external add-ons are listed before those of the release. `NOT_FOUND` for an add-on that the release does not have. */
export const versions = useCase(VERSIONS, async (request, context): Promise<Versions> => {
  const { addons: requested = [], from, release: requestedRelease } = request;
  const named = requestedRelease === undefined ? undefined : checkedRelease(requestedRelease, '--release');
  const since = request.since === undefined ? undefined : checkedRelease(request.since, '--since');
  if (since !== undefined && requested.some((text) => text.includes('@'))) {
    throw new CurlewError('USAGE', '--since shows all versions that have changed: name add-ons without a version');
  }
  await using web = lazyHttp(request, context);
  const store = await openStoreFor(from, request, context, { create: false, http: web.get });
  // A list says nothing of what will be used: no key of the configuration refuses it, and no release counts as seen by it.
  const options = { address: store.address, allowOlder: true, remember: false };
  const trust = request.key === undefined ? undefined : await trustOfStore(request, context, options);
  const { signal } = context;
  const read = async (name: string | undefined) =>
    trust === undefined
      ? { parsed: await offeredCatalog(store, { release: name, signal }), signedBy: undefined }
      : readSigned(store, { release: name, trust, signal });
  const { parsed: catalog, signedBy } = await read(named);
  const { release } = catalog;
  const before = since === undefined ? undefined : (await read(since)).parsed;
  const compared = before && { since: before.release, changes: changesOf(before, catalog, requested) };
  const addons = chosenOf(catalog, requested, before);
  const proof = signedBy === undefined ? {} : { signedBy };
  const published =
    catalog.published === undefined ? await publishedOf(store, release, context) : { published: catalog.published };
  return { store: store.address, release, ...published, ...proof, addons, ...compared };
});

/** By name; architectures with the same changes are one. */
function changesOf(before: Catalog, after: Catalog, names: readonly string[]): readonly ReleaseChange[] {
  const merged = new Map<string, ReleaseChange>();
  for (const arch of ARCHES) {
    for (const change of changedAddons(before, after, arch)) {
      if (names.length > 0 && !names.includes(change.name)) continue;
      const key = JSON.stringify([change.name, change.lines]);
      const same = merged.get(key);
      merged.set(key, { ...(same ?? change), arches: [...(same?.arches ?? []), arch] });
    }
  }
  return [...merged.values()].toSorted((a, b) => compareText(a.name, b.name));
}

/** The time of the store, for older catalogs. Web servers list nothing, and some credentials do not allow it. */
async function publishedOf(
  store: Store,
  release: string,
  { signal }: Pick<Context, 'signal'>,
): Promise<Pick<Versions, 'published'>> {
  try {
    for await (const { modified } of store.list(storeKey.catalog(release), { signal }))
      return modified === undefined ? {} : { published: modified.toISOString() };
  } catch {
    signal.throwIfAborted();
  }
  return {};
}

/** An add-on that only the release before has is no mistake: nothing is listed of it. */
function chosenOf(
  { release, addons }: Catalog,
  requested: readonly string[],
  before: Catalog | undefined,
): readonly AddonVersions[] {
  const all = addons.map(({ name, versions: offered }): AddonVersions => {
    const described = offered.map(({ version, packages }) => {
      const sizes = Object.values(packages).map(({ size }) => size);
      return { version, arches: Object.keys(packages), sizes };
    });
    return { name, versions: described };
  });
  if (requested.length === 0) return all;
  const gone = new Set(before?.addons.map(({ name }) => name));
  for (const { name } of addons) gone.delete(name);
  return requested.filter((text) => !gone.has(text)).map((text) => oneOf(all, text, release));
}

function oneOf(all: readonly AddonVersions[], text: string, release: string): AddonVersions {
  const at = text.indexOf('@');
  const name = at === -1 ? text : text.slice(0, at);
  const entry = all.find((addon) => addon.name === name);
  if (entry === undefined) {
    const near = nearest(
      name,
      all.map((addon) => addon.name),
    );
    throw new CurlewError('NOT_FOUND', `${release} has no add-on ${JSON.stringify(name.slice(0, 100))}`, {
      hint: near === undefined ? 'run the same command without a name to list them' : `did you mean ${near}?`,
    });
  }
  if (at === -1) return entry;
  // External packages that curlew cannot read are listed for other tools.
  const available = entry.versions.flatMap(({ version, arches }) => (arches.length === 0 ? [] : [version]));
  return { ...entry, resolved: resolveVersion(name, text.slice(at + 1), available) };
}
