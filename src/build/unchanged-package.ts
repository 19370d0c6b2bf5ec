/**
 * Decides whether a package is what a build would produce now: then nothing is built. The package need not exist: the inputs
 * of its build are enough. Own files are compared by digest, references by their current digest, assets by digest or by what
 * their server reports.
 */
import type { Digest } from '../core/digest.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';
import { formatImageRef } from '../core/image-ref.ts';
import type { ImageFormat } from '../core/package.ts';
import type { Arch } from '../core/ref.ts';
import type { ManifestLock } from '../manifest/lock.ts';
import type { AssetStep, ContainerBuildStep, ImageStep, OsPackagesStep, BuilderStep } from '../manifest/step.ts';
import { isCurrent } from './asset-note.ts';
import { localFile } from '../manifest/within-repository.ts';
import { measureFile, noteOf } from './assets.ts';
import { requestedPackages, type RequestedPackages } from './host-packages/fetch.ts';
import { referenceOf } from './images.ts';
import type { PackageInputs } from './build-inputs.ts';
import type { BuildPorts } from './ports.ts';

interface CurrentInputs extends Pick<PackageInputs, 'about' | 'own'> {
  readonly arch: Arch;
  readonly imageFormat: ImageFormat;
  /** The add-on's folder. */
  readonly root: string;
  /** Folder that contains `addons/`. */
  readonly top: string;
  readonly steps: readonly BuilderStep[];
}

/** Describes a difference between the inputs of an earlier build and the current ones; undefined if there is none. */
export async function differenceOf(
  seen: PackageInputs,
  current: CurrentInputs,
  ports: QueryPorts,
  { signal }: { readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { lock } = seen;
  if (seen.imageFormat !== current.imageFormat) return 'the image format differs';
  // Hooks and settings come from own files, which are named.
  const own = ownDifference(seen.own, current.own);
  if (own !== undefined) return own;
  if (seen.about !== current.about) return 'categories.json differs, or another version of curlew built the package';
  const images = current.steps.filter((step) => step.kind === 'image');
  const assets = current.steps.filter((step) => step.kind === 'asset');
  const packages = current.steps.filter((step) => step.kind === 'os-packages');
  const builds = current.steps.filter((step) => step.kind === 'container-build');
  if (images.length !== lock.images.length || assets.length !== lock.assets.length) return 'the Manifest differs';
  if (builds.length !== lock.containerBuilds.length) return 'the Manifest differs';
  const changedPackages = packageDifference(packages, lock);
  if (changedPackages !== undefined) return changedPackages;
  const differences = await mapLimited<(query: Query) => Promise<string | undefined>, string | undefined>(
    [
      ...images.map((step) => async (query: Query) => imageDifference(step, lock, query)),
      ...assets.map((step) => async (query: Query) => assetDifference(step, seen, query)),
      ...requestedPackages(packages).map((one) => async (query: Query) => sourceDifference(one, lock, query)),
      ...builds.map((step) => async (query: Query) => buildDifference(step, lock, query)),
    ],
    async (compare, context) => compare({ ...current, ...context, ports }),
    { width: 16, signal },
  );
  return differences.find((difference) => difference !== undefined);
}

/**
 * Compares only names: `outdated` and `--update-lock` check the current versions in a repository, since resolving takes
 * minutes, and an existing package does not change.
 */
function packageDifference(steps: readonly OsPackagesStep[], lock: ManifestLock): string | undefined {
  const text = ({ os, archives, deps }: Omit<RequestedPackages, 'os'> & { readonly os: string }): string =>
    [os, archives.join(' '), deps.join(' ')].join(';');
  const before = lock.hostPackages.map(text);
  const now = requestedPackages(steps);
  const differs = now.find((one) => !before.includes(text(one)));
  if (differs !== undefined) return `packages for ${differs.os} differ`;
  return now.length === before.length ? undefined : 'the Manifest differs';
}

function ownDifference(before: PackageInputs['own'], now: PackageInputs['own']): string | undefined {
  for (const [path, row] of Object.entries(now)) {
    const previous = Object.hasOwn(before, path) ? before[path] : undefined;
    if (previous === undefined) return `${path} is new`;
    if (previous !== row) return `${path} differs`;
  }
  const gone = Object.keys(before).find((path) => !Object.hasOwn(now, path));
  return gone === undefined ? undefined : `${gone} was removed`;
}

export type QueryPorts = Pick<
  BuildPorts,
  'registry' | 'engine' | 'http' | 'cache' | 'collector' | 'containerBuilder' | 'outsideFiles'
>;

interface Query extends Pick<CurrentInputs, 'root' | 'top' | 'arch'> {
  readonly ports: QueryPorts;
  readonly signal: AbortSignal;
}

async function sourceDifference(
  { os, archives }: RequestedPackages,
  lock: ManifestLock,
  { ports, signal }: Query,
): Promise<string | undefined> {
  if (archives.length === 0) return undefined;
  const locked = lock.hostPackages.find((one) => one.os === os);
  const inputs = await (await ports.collector()).inputs(os, { signal });
  return locked?.inputs === inputs ? undefined : `packages for ${os} would come from ${inputs}`;
}

async function buildDifference(
  step: ContainerBuildStep,
  lock: ManifestLock,
  { root, top, arch, ports, signal }: Query,
): Promise<string | undefined> {
  const locked = lock.containerBuilds.find(
    ({ folder, dockerfile }) => folder === step.destination && dockerfile === step.dockerfile,
  );
  const builder = await ports.containerBuilder();
  const inputs = await builder.inputs(step, { folder: root, root: top, arch }, { signal });
  return locked?.inputs === inputs ? undefined : `the inputs of ${step.dockerfile} differ`;
}

async function imageDifference(step: ImageStep, lock: ManifestLock, query: Query): Promise<string | undefined> {
  const { root, arch, ports, signal } = query;
  const locked = lock.images.find(({ id }) => id === step.id);
  if (locked === undefined) return `image ${step.id} is new`;
  if (step.archive !== undefined) {
    const doing = `read the archive of image ${step.id}`;
    const path = localFile(step.archive, { root, doing, outsideFiles: ports.outsideFiles });
    const { digest } = await measureFile(path, doing, { signal });
    return digest === locked.digest ? undefined : `the archive of image ${step.id} differs`;
  }
  const ref = referenceOf(step);
  if (formatImageRef(ref) !== locked.reference || locked.platforms[`linux/${arch}`] === undefined) {
    return `image ${step.id} differs`;
  }
  // A digest never changes its meaning.
  if (ref.digest !== undefined) return undefined;
  const now = await currentDigest(ref, ports, signal);
  return now === locked.digest ? undefined : `image ${step.id}: ${locked.reference} now names another image`;
}

async function currentDigest(
  ref: ReturnType<typeof referenceOf>,
  { registry, engine }: Query['ports'],
  signal: AbortSignal,
): Promise<Digest | undefined> {
  try {
    return await registry.currentDigest(ref, { signal });
  } catch (error) {
    if (engine === undefined || !(error instanceof CurlewError) || error.code === 'CANCELLED') throw error;
    return engine.identify(ref, { signal });
  }
}

async function assetDifference(
  step: AssetStep,
  { lock, sources }: PackageInputs,
  query: Query,
): Promise<string | undefined> {
  const { root, ports, signal } = query;
  const locked = lock.assets.find(({ name }) => name === step.fileName);
  if (locked === undefined || locked.source !== step.source) return `asset ${step.fileName} is new`;
  if (step.digest !== undefined) {
    return step.digest === locked.digest ? undefined : `the digest of asset ${step.fileName} differs`;
  }
  if (step.local) {
    const doing = `read asset ${step.fileName}`;
    const path = localFile(step.source, { root, doing, outsideFiles: ports.outsideFiles });
    const { digest } = await measureFile(path, doing, { signal });
    return digest === locked.digest ? undefined : `asset ${step.fileName} differs`;
  }
  const noted = Object.hasOwn(sources, step.fileName) ? sources[step.fileName] : undefined;
  const note = noted ?? (await noteOf(ports.cache, step.source));
  if (note?.digest !== locked.digest) return `asset ${step.fileName}: no record of the last download`;
  if (await isCurrent(step, note, ports.http, { signal })) return undefined;
  return `asset ${step.fileName} has changed at its source`;
}
