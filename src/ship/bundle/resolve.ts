/** Resolves the add-ons of an installer spec to packages of a catalog, in the order of installation. Pure. */
import { entryTitle } from '../../cluster/channel/channel.ts';
import { choose, explainChoice } from '../../cluster/channel/choose.ts';
import { publishedEntries } from '../../cluster/channel/published-channels.ts';
import { formatRange, kubernetesTriple } from '../../cluster/channel/range.ts';
import { findPackage, packageKey, type Catalog } from '../../core/catalog.ts';
import type { BundledPackage } from '../../core/bundle.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { ARCHES, type Arch } from '../../core/ref.ts';
import type { Installer, InstallerAddon } from '../../spec/installer.ts';
import { orderAddons, type OrderedAddon } from '../../spec/order.ts';
import { channelOf, channelReason, resolveVersion, type ResolvedVersion } from '../../spec/version.ts';

/** The add-on whose version channels choose by. */
const KUBERNETES = 'kubernetes';

export interface ResolvedPackage extends BundledPackage {
  /** Reason for this version, for people. */
  readonly because: string;
  /** Digest of its table of contents, if the catalog contains it. */
  readonly toc?: Digest | undefined;
  /** Key in the store. */
  readonly key: string;
}

interface Candidate extends OrderedAddon {
  readonly resolved: ResolvedPackage;
}

/** The resolved add-ons of a spec. */
interface ResolvedSpec {
  /** The packages that were found, in the order of installation. */
  readonly packages: readonly ResolvedPackage[];
  /** Lists all other add-ons with their place in the spec; undefined if none. */
  readonly error: CurlewError | undefined;
}

/** Resolves every add-on of the spec. Reports all missing packages at once (`SPEC_INVALID`). */
export function resolvePackages(installer: Installer, catalog: Catalog, arch: Arch): readonly ResolvedPackage[] {
  const { packages, error } = resolveSpec(installer, catalog, arch);
  if (error !== undefined) throw error;
  return packages;
}

/** Resolves add-ons, and collects failures in `error`. */
export function resolveSpec(installer: Installer, catalog: Catalog, arch: Arch): ResolvedSpec {
  const failures: { readonly addon: InstallerAddon; readonly error: CurlewError }[] = [];
  const candidates: Candidate[] = [];
  const from = { catalog, arch, kubernetes: kubernetesOf(installer, { catalog, arch }) };
  for (const addon of installer.addons) {
    try {
      candidates.push(resolveAddon(addon, from));
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      failures.push({ addon, error });
    }
  }
  const [first] = failures;
  if (first === undefined)
    return { packages: orderAddons(candidates).map(({ resolved }) => resolved), error: undefined };
  const several = `${failures.length} add-ons of the spec cannot be resolved`;
  const error = new CurlewError(first.error.code, failures.length === 1 ? first.error.message : several, {
    hint: failures.length === 1 ? first.error.hint : undefined,
    diagnostics: failures.map((one) => {
      const { message, hint } = one.error;
      return {
        code: 'installer/unresolved',
        severity: 'error',
        message,
        place: one.addon.requestedBy ?? one.addon.place,
        hint,
      };
    }),
  });
  // Without the missing add-ons, dependencies are incomplete, so the packages are not ordered.
  return { packages: candidates.map(({ resolved }) => resolved), error };
}

/** Where to look up packages. */
export interface ResolveFrom {
  readonly catalog: Catalog;
  readonly arch: Arch;
  /** The version of Kubernetes that channels choose by; undefined without one. */
  readonly kubernetes?: string | undefined;
}

/** The version of Kubernetes that a spec means; undefined if it has none, or if the release does not have it. */
export function kubernetesOf({ addons }: Pick<Installer, 'addons'>, from: ResolveFrom): string | undefined {
  const addon = addons.find(({ name }) => name === KUBERNETES);
  if (addon === undefined || !addons.some(({ requested }) => channelOf(requested) !== undefined)) return undefined;
  try {
    return resolveAddon(addon, from).resolved.version;
  } catch (error) {
    if (error instanceof CurlewError) return undefined;
    throw error;
  }
}

function resolveAddon(addon: InstallerAddon, from: ResolveFrom): Candidate {
  const { name, s3Override } = addon;
  if (s3Override !== undefined) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${name}: a bundle contains packages of its store only, not of an s3Override`,
      { hint: 'publish that package to the store, and remove s3Override from the spec' },
    );
  }
  return resolvePackage(addon, from);
}

/** How to ask for another architecture on a command line. */
export function askingFor(arch: Arch | ''): string {
  return `curlew bundle --arch ${arch} makes a bundle for such machines`;
}

/** Resolves one package. A missing one is `SPEC_INVALID`, with a similar name as hint. */
export function resolvePackage(
  { name, requested }: Pick<InstallerAddon, 'name' | 'requested'>,
  { catalog, arch, kubernetes }: ResolveFrom,
): Candidate {
  const listed = catalog.addons.find((one) => one.name === name);
  if (listed === undefined) {
    const names = catalog.addons.map((one) => one.name);
    const near = nearest(name, names);
    throw new CurlewError('SPEC_INVALID', `${name}: release ${catalog.release} does not contain this add-on`, {
      hint: near === undefined ? `add-ons in the release: ${names.slice(0, 20).join(', ')}` : `did you mean ${near}?`,
    });
  }
  const built = listed.versions.filter(({ packages }) => packages[arch] !== undefined);
  const unreadable = listed.versions.find((one) => one.version === requested || built.length === 0);
  if (unreadable !== undefined && Object.keys(unreadable.packages).length === 0) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${name}: the external package ${unreadable.version} was not built with curlew`,
      { hint: 'ask its publisher for a curlew package, or build it from source, and import it under another version' },
    );
  }
  const others = listed.versions.filter(({ version, packages }) => {
    return packages[arch] === undefined && (version === requested || built.length === 0);
  });
  if (others.length > 0) {
    const arches = ARCHES.filter((one) => others.some(({ packages }) => packages[one] !== undefined));
    const what = built.length === 0 ? name : `${name} ${requested}`;
    throw new CurlewError('SPEC_INVALID', `${what}: no package for ${arch}`, {
      hint: `the release has it for ${arches.join(', ')}: ${askingFor(arches[0] ?? '')}`,
    });
  }
  const channel = channelOf(requested);
  const available = built.map((one) => one.version);
  const { version, because } =
    channel === undefined
      ? resolveVersion(name, requested, available)
      : resolveInChannel(name, channel, { catalog, arch, kubernetes });
  const package_ = findPackage(catalog, { name, version }, arch);
  if (package_ === undefined) throw new CurlewError('SPEC_INVALID', `${name}: no package of version ${version}`);
  const { requires, fulfills, tree } = package_.entry;
  const { digest, sha256, toc, size } = package_.listed;
  const key = packageKey(catalog.release, { name, version }, arch, package_.listed);
  const resolved = { name, version, tree, arch, requested, digest, sha256, toc, size, because, key };
  return { name, requires, fulfills, resolved };
}

/** The version of an add-on that a channel of the release has for this version of Kubernetes. */
function resolveInChannel(name: string, channel: string, { catalog, arch, kubernetes }: ResolveFrom): ResolvedVersion {
  const { release, channels = [] } = catalog;
  const refused = (what: string, hint: string): CurlewError =>
    new CurlewError('SPEC_INVALID', `${name}: cannot resolve channel:${channel}: ${what}`, { hint });
  if (!channels.includes(channel)) {
    const near = nearest(channel, channels);
    const listed = channels.length === 0 ? 'none' : channels.join(', ');
    const hint =
      near === undefined
        ? `channels of the release: ${listed}; curlew publish --channel ${channel} adds it`
        : `did you mean channel:${near}?`;
    throw refused(`release ${release} does not have this channel`, hint);
  }
  if (name === KUBERNETES) {
    const hint = 'write an exact version, "latest" or "1.31.x"';
    throw refused('the version of Kubernetes decides what the others get', hint);
  }
  if (kubernetes === undefined) {
    const newest = catalog.addons.find((one) => one.name === KUBERNETES)?.versions[0]?.version;
    const hint =
      newest === undefined
        ? `the release does not have ${KUBERNETES}: write a version of this add-on`
        : `add "${KUBERNETES}: {version: ${newest}}", or another version of the release, to the spec, or write a version of this add-on`;
    throw refused('the version of Kubernetes decides, and the spec has none that the release has', hint);
  }
  const own = publishedEntries({ ...catalog, addons: catalog.addons.filter((one) => one.name === name) });
  if (own.length === 0) throw refused('it has no entry of this add-on', 'write one of its versions');
  const triple = kubernetesTriple(kubernetes);
  const chosen = choose(own, triple, 'native').get(name);
  if (chosen === undefined) {
    const { near } = explainChoice(own, { addon: name, kubernetes: triple, compat: 'native' });
    const shown = near.map((entry) => `${entryTitle(entry)} (${formatRange(entry.range)})`);
    throw refused(`no entry is for Kubernetes ${kubernetes}`, `nearest: ${shown.join(', ')}`);
  }
  if (findPackage(catalog, chosen, arch) === undefined) {
    throw refused(
      `${entryTitle(chosen)} has no package for ${arch}`,
      'build it for this architecture, or write a version',
    );
  }
  return { version: chosen.version, because: channelReason(channel, kubernetes) };
}
