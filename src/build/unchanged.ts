/**
 * Whether a package is what a build would make now: then nothing is done. It need not be there: what its build saw is
 * enough. Own files are compared
 * by digest, references by what they name now, assets by digest or by what their server says of them.
 */
import type { Digest } from '../core/digest.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';
import { formatImageRef } from '../core/image-ref.ts';
import type { ImageFormat } from '../core/package.ts';
import type { Arch } from '../core/ref.ts';
import type { ManifestLock } from '../manifest/lock.ts';
import type { AssetStep, ContainerBuildStep, ImageStep, OsPackagesStep, Step } from '../manifest/step.ts';
import { isCurrent } from './asset-note.ts';
import { localPath, measureFile, noteOf } from './assets.ts';
import { askedPackages, type AskedPackages } from './host-packages/fetch.ts';
import { archivePath, referenceOf } from './images.ts';
import type { PackageInputs } from './inputs.ts';
import type { BuildPorts } from './ports.ts';

export interface Wanted extends Pick<PackageInputs, 'about' | 'own'> {
  readonly arch: Arch;
  readonly imageFormat: ImageFormat;
  /** The add-on's folder. */
  readonly root: string;
  /** Folder that holds `addons/`. */
  readonly top: string;
  readonly steps: readonly Step[];
}

/** What differs between what a build saw and what is wanted, in words; undefined when nothing does. */
export async function differenceOf(
  seen: PackageInputs,
  wanted: Wanted,
  ports: AskedPorts,
  { signal }: { readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { lock } = seen;
  if (seen.imageFormat !== wanted.imageFormat) return 'the form of images differs';
  if (seen.about !== wanted.about) return 'what addon.json says differs';
  const own = ownDifference(seen.own, wanted.own);
  if (own !== undefined) return own;
  const images = wanted.steps.filter((step) => step.kind === 'image');
  const assets = wanted.steps.filter((step) => step.kind === 'asset');
  const packages = wanted.steps.filter((step) => step.kind === 'os-packages');
  const builds = wanted.steps.filter((step) => step.kind === 'container-build');
  if (images.length !== lock.images.length || assets.length !== lock.assets.length) return 'the Manifest differs';
  if (builds.length !== lock.containerBuilds.length) return 'the Manifest differs';
  const asked = packageDifference(packages, lock);
  if (asked !== undefined) return asked;
  const judged = await mapLimited<(asking: Asking) => Promise<string | undefined>, string | undefined>(
    [
      ...images.map((step) => async (asking: Asking) => imageDifference(step, lock, asking)),
      ...assets.map((step) => async (asking: Asking) => assetDifference(step, seen, asking)),
      ...askedPackages(packages).map((one) => async (asking: Asking) => sourceDifference(one, lock, asking)),
      ...builds.map((step) => async (asking: Asking) => buildDifference(step, lock, asking)),
    ],
    async (judge, context) => judge({ ...wanted, ...context, ports }),
    { width: 16, signal },
  );
  return judged.find((difference) => difference !== undefined);
}

/**
 * By names only: which versions a repository has now is looked at by `outdated` and `--update-lock`, for a resolver needs
 * minutes, and a package that is there stays what it is.
 */
function packageDifference(steps: readonly OsPackagesStep[], lock: ManifestLock): string | undefined {
  const text = ({ os, archives, deps }: Omit<AskedPackages, 'os'> & { readonly os: string }): string =>
    [os, archives.join(' '), deps.join(' ')].join(';');
  const before = lock.hostPackages.map(text);
  const now = askedPackages(steps);
  const differs = now.find((one) => !before.includes(text(one)));
  if (differs !== undefined) return `packages for ${differs.os} differ`;
  return now.length === before.length ? undefined : 'the Manifest differs';
}

function ownDifference(before: PackageInputs['own'], now: PackageInputs['own']): string | undefined {
  for (const [path, row] of Object.entries(now)) {
    const there = Object.hasOwn(before, path) ? before[path] : undefined;
    if (there === undefined) return `${path} is new`;
    if (there !== row) return `${path} differs`;
  }
  const gone = Object.keys(before).find((path) => !Object.hasOwn(now, path));
  return gone === undefined ? undefined : `${gone} is gone`;
}

export type AskedPorts = Pick<BuildPorts, 'registry' | 'engine' | 'http' | 'cache' | 'collector' | 'containerBuilder'>;

interface Asking {
  readonly root: string;
  readonly top: string;
  readonly arch: Arch;
  readonly ports: AskedPorts;
  readonly signal: AbortSignal;
}

async function sourceDifference(
  { os, archives }: AskedPackages,
  lock: ManifestLock,
  { ports, signal }: Asking,
): Promise<string | undefined> {
  if (archives.length === 0) return undefined;
  const locked = lock.hostPackages.find((one) => one.os === os);
  const inputs = await (await ports.collector()).inputs(os, { signal });
  return locked?.inputs === inputs ? undefined : `packages for ${os} would come from ${inputs}`;
}

async function buildDifference(
  step: ContainerBuildStep,
  lock: ManifestLock,
  { root, top, arch, ports, signal }: Asking,
): Promise<string | undefined> {
  const locked = lock.containerBuilds.find(
    ({ folder, dockerfile }) => folder === step.destination && dockerfile === step.dockerfile,
  );
  const builder = await ports.containerBuilder();
  const inputs = await builder.inputs(step, { folder: root, root: top, arch }, { signal });
  return locked?.inputs === inputs ? undefined : `what ${step.dockerfile} is built from differs`;
}

async function imageDifference(step: ImageStep, lock: ManifestLock, asking: Asking): Promise<string | undefined> {
  const { root, arch, ports, signal } = asking;
  const locked = lock.images.find(({ id }) => id === step.id);
  if (locked === undefined) return `image ${step.id} is new`;
  if (step.archive !== undefined) {
    const { digest } = await measureFile(archivePath(step, root), `image ${step.id}`, { signal });
    return digest === locked.digest ? undefined : `the archive of image ${step.id} differs`;
  }
  const ref = referenceOf(step);
  if (formatImageRef(ref) !== locked.reference || locked.platforms[`linux/${arch}`] === undefined) {
    return `image ${step.id} differs`;
  }
  // A digest names the same for ever.
  if (ref.digest !== undefined) return undefined;
  const now = await currentDigest(ref, ports, signal);
  return now === locked.digest ? undefined : `image ${step.id}: ${locked.reference} names another image now`;
}

async function currentDigest(
  ref: ReturnType<typeof referenceOf>,
  { registry, engine }: Asking['ports'],
  signal: AbortSignal,
): Promise<Digest | undefined> {
  try {
    return (await registry.headManifest(ref, { signal })).digest;
  } catch (error) {
    if (engine === undefined || !(error instanceof CurlewError) || error.code === 'CANCELLED') throw error;
    return engine.identify(ref, { signal });
  }
}

async function assetDifference(
  step: AssetStep,
  { lock, sources }: PackageInputs,
  asking: Asking,
): Promise<string | undefined> {
  const { root, ports, signal } = asking;
  const locked = lock.assets.find(({ name }) => name === step.fileName);
  if (locked === undefined || locked.source !== step.source) return `asset ${step.fileName} is new`;
  if (step.digest !== undefined) {
    return step.digest === locked.digest ? undefined : `the digest of asset ${step.fileName} differs`;
  }
  if (step.local) {
    const { digest } = await measureFile(localPath(step, root), `asset ${step.fileName}`, { signal });
    return digest === locked.digest ? undefined : `asset ${step.fileName} differs`;
  }
  const noted = Object.hasOwn(sources, step.fileName) ? sources[step.fileName] : undefined;
  const note = noted ?? (await noteOf(ports.cache, step.source));
  if (note?.digest !== locked.digest) return `asset ${step.fileName}: nothing is known of the last download`;
  if (await isCurrent(step, note, ports.http, { signal })) return undefined;
  return `asset ${step.fileName} has changed at its source`;
}
