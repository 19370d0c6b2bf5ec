/** Packages of a release in a store and its mirrors. */
import { chooseExtras, NO_EXTRAS } from '../../ship/bundle/extras.ts';
import { resolvePackages, type ResolvedPackage } from '../../ship/bundle/resolve.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { addonRef, formatRef, type Arch } from '../../core/ref.ts';
import type { Installer, InstallerAddon } from '../../spec/installer.ts';
import { resolveVersion } from '../../spec/version.ts';
import { placedPackage } from '../../runtime/node/placed-package.ts';
import { readRecords } from '../../runtime/node/records.ts';
import { NO_RECORDS } from '../../runtime/plan/records.ts';
import { archivePackages, type SourcePackage } from '../../runtime/node/source.ts';
import { tryPlaces, type FetchPlace } from '../../ship/store/places.ts';
import { isWhole, knownPackage, openRemotePackage, requireContents } from '../../runtime/node/remote-package.ts';
import { readIndex } from '../../formats/archive/read.ts';
import { isFolderStore } from '../../ship/store/folder.ts';
import { openStoreSource } from '../../ship/store/source.ts';
import type { Store } from '../../ship/store/store.ts';
import type { ReleaseTrust } from '../../ship/release/signed-release.ts';
import { catalogOf, notingCurrent } from '../open/release-trust.ts';
import type { Context } from '../../core/context.ts';
import type { InstallSource } from './install-source.ts';
import { lazyHttp } from '../open/network.ts';
import { objectOpener, openStoreFor } from '../open/stores.ts';
import type { AddressRequest } from '../../requests/connection.ts';

export interface StoreSourceOptions {
  /** The first determines the current release; the others are tried if an earlier one fails. */
  readonly places: readonly string[];
  /** Undefined for the current one. */
  readonly release: string | undefined;
  readonly arch: Arch;
  /** The install folder: metadata of packages in place is not requested. */
  readonly directory: string;
  /** Undefined if no signatures are required. */
  readonly trust: ReleaseTrust | undefined;
}

const AT_ONCE = 8;

interface Opened {
  readonly arch: Arch;
  readonly directory: string;
  readonly stores: readonly Store[];
  readonly objectAt: (address: string) => Promise<FetchPlace>;
  readonly context: Context;
}

/** A release of a store. Only metadata of its packages is read here; the run fetches them. */
export async function releaseSource(
  { places, release, arch, directory, trust }: StoreSourceOptions,
  request: AddressRequest,
  context: Context,
): Promise<InstallSource> {
  const web = lazyHttp(request, context);
  try {
    const stores: Store[] = [];
    for (const address of places) {
      stores.push(await openStoreFor(address, request, context, { create: false, http: web.get }));
    }
    const { onNotCurrent, result } = notingCurrent(context);
    const catalog = await tryPlaces(
      stores,
      async (store) => catalogOf(store, { release, trust, onNotCurrent, signal: context.signal }),
      context,
    );
    const opened = { arch, directory, stores, context, objectAt: objectOpener(request, context, web) };
    return {
      installerText: undefined,
      airgap: false,
      release: catalog.release,
      ...result(),
      choose: async (installer) => {
        if (trust !== undefined) refuseOverrides(installer);
        const published = installer.addons.filter(({ s3Override }) => s3Override === undefined);
        const resolved = resolvePackages({ ...installer, addons: published }, catalog, arch);
        return [...(await openPublished(resolved, opened)), ...(await openOverrides(installer, opened))];
      },
      offered: async (chosen) => {
        // The same companions that every bundle includes; upgrade steps and packages of `--with` are only in bundles.
        const resolved = chooseExtras(
          chosen.map(({ ref }) => ref),
          NO_EXTRAS,
          { catalog, arch },
        );
        const sources = await openPublished(resolved, opened);
        return sources.map((source) => ({ source, role: 'machine' }) as const);
      },
      [Symbol.asyncDispose]: web.close,
    };
  } catch (error) {
    await web.close();
    throw error;
  }
}

/** A signature does not cover an s3Override. */
function refuseOverrides({ addons }: Installer): void {
  const [first] = addons.filter(({ s3Override }) => s3Override !== undefined);
  if (first === undefined) return;
  throw new CurlewError('SIGNATURE_INVALID', `${first.name}: the package of its s3Override is not signed`, {
    hint: 'publish it to a signed store, and remove s3Override from the spec',
  });
}

async function openPublished(
  resolved: readonly ResolvedPackage[],
  { stores, directory, context }: Opened,
): Promise<readonly SourcePackage[]> {
  const [only] = stores;
  // Damaged records are reported when the run is prepared.
  const records = await readRecords(directory).catch(() => NO_RECORDS);
  return mapLimited(
    resolved,
    async (one, { signal }) => {
      // A folder store is on this machine: its packages are extracted from there without fetching.
      if (stores.length === 1 && only !== undefined && isFolderStore(only)) return openLocal(only, one, signal);
      const places = stores.map((store) => ({ store, key: one.key }));
      const file = { name: formatRef(one), published: one, places };
      const ref = addonRef(one.name, one.version, one.tree);
      const placed = await placedPackage(directory, ref, one.digest, { ...records, signal });
      if (placed !== undefined) return knownPackage(file, placed, one.size);
      return openRemotePackage(file, { report: context.report, signal });
    },
    { width: AT_ONCE, signal: context.signal },
  );
}

async function openLocal(store: Store, resolved: ResolvedPackage, signal: AbortSignal): Promise<SourcePackage> {
  const source = await openStoreSource(store, resolved.key, { signal });
  const index = await readIndex(source, { signal });
  requireContents(source, index, resolved.toc);
  const packages = await archivePackages(source, index, { signal });
  const whole = packages.find((one) => one.addon.digest === resolved.digest && isWhole(one));
  if (whole !== undefined) return whole;
  throw new CurlewError('DIGEST_MISMATCH', `${source.name}: not the package that the catalog names`, {
    hint: 'publish the release again',
  });
}

async function openOverrides(installer: Installer, opened: Opened): Promise<readonly SourcePackage[]> {
  const overridden = installer.addons.filter(({ s3Override }) => s3Override !== undefined);
  return mapLimited(overridden, async (addon, { signal }) => openOverride(addon, opened, signal), {
    width: AT_ONCE,
    signal: opened.context.signal,
  });
}

/** Only the spec names such a package, so its add-on, version and architecture are checked. */
async function openOverride(
  { name, requested, s3Override = '' }: InstallerAddon,
  { arch, objectAt, context }: Opened,
  signal: AbortSignal,
): Promise<SourcePackage> {
  const place = await objectAt(s3Override);
  const file = { name: `${name} by its s3Override`, published: undefined, places: [place] };
  const opened = await openRemotePackage(file, { report: context.report, signal });
  const { ref, addon } = opened;
  const bad = (code: 'SPEC_INVALID' | 'UNSUPPORTED', what: string): CurlewError =>
    new CurlewError(code, `${name}: the s3Override ${place.store.address}/${place.key} ${what}`, {
      hint: 'name another package in s3Override, or remove it from the spec',
    });
  if (ref.name !== name) throw bad('SPEC_INVALID', `is a package of ${ref.name}`);
  if (addon.arch !== arch) throw bad('UNSUPPORTED', `is for ${addon.arch}, this machine is ${arch}`);
  try {
    resolveVersion(name, requested, [ref.version]);
  } catch {
    throw bad('SPEC_INVALID', `has version ${ref.version}, the spec requires ${requested}`);
  }
  return opened;
}
