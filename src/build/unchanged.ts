/**
 * Whether the package that lies there already is what a build would make: then nothing is done. Own files are compared
 * by digest, references by what they name now, assets by digest or by what their server says of them.
 */
import { join } from 'node:path';
import type { ArchiveIndex } from '../archive/entry.ts';
import { findEntry, openFileSource, readFile, readIndex } from '../archive/read.ts';
import type { Digest } from '../core/digest.ts';
import { mapLimited } from '../core/each.ts';
import { CurlewError } from '../core/errors.ts';
import { formatImageRef } from '../core/image-ref.ts';
import { ADDON_JSON, MANIFEST_LOCK, packageFileName, prefixOf } from '../core/layout.ts';
import { parseAddonJson, type AddonJson, type ImageFormat, type PackageFile } from '../core/package.ts';
import type { AddonRef, Arch } from '../core/ref.ts';
import { parseLock, type ManifestLock } from '../manifest/lock.ts';
import type { AssetStep, ImageStep, Step } from '../manifest/step.ts';
import { isCurrent } from './asset-note.ts';
import { localPath, measureFile, noteOf } from './assets.ts';
import { archivePath, referenceOf } from './images.ts';
import type { BuildPorts } from './ports.ts';

export interface FinishedPackage {
  readonly path: string;
  readonly index: ArchiveIndex;
  readonly addon: AddonJson;
  readonly lock: ManifestLock;
}

/** Most bytes of `addon.json` and of the lock that are read. */
const DOCUMENT_LIMIT = 32 << 20;

/** The package of this reference in a folder; undefined when there is none, or none that can be read. */
export async function finishedPackage(
  out: string,
  ref: AddonRef,
  arch: Arch,
  { signal }: { readonly signal: AbortSignal },
): Promise<FinishedPackage | undefined> {
  const path = join(out, packageFileName(ref, arch));
  try {
    await using source = await openFileSource(path);
    const index = await readIndex(source, { signal });
    const prefix = prefixOf(ref);
    const document = async (name: string): Promise<string | undefined> => {
      const entry = findEntry(index, prefix + name);
      if (entry === undefined) return undefined;
      return Buffer.from(await readFile(source, entry, { limit: DOCUMENT_LIMIT, signal })).toString();
    };
    const [addon, lock] = [await document(ADDON_JSON), await document(MANIFEST_LOCK)];
    if (addon === undefined || lock === undefined) return undefined;
    return { path, index, addon: parseAddonJson(addon, path), lock: parseLock(lock, path) };
  } catch (error) {
    if (error instanceof CurlewError && error.code !== 'CANCELLED') return undefined;
    throw error;
  }
}

export interface Wanted {
  readonly ref: AddonRef;
  readonly arch: Arch;
  readonly imageFormat: ImageFormat;
  /** The add-on's folder. */
  readonly root: string;
  readonly steps: readonly Step[];
  readonly own: readonly PackageFile[];
  /** What `addon.json` says beside files and steps, canonical. */
  readonly about: string;
}

/** What differs between the package and what is wanted, in words; undefined when nothing does. */
export async function differenceOf(
  finished: FinishedPackage,
  wanted: Wanted,
  aboutOf: (addon: AddonJson) => string,
  ports: Pick<BuildPorts, 'registry' | 'engine' | 'http' | 'cache'>,
  { signal }: { readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { addon, lock } = finished;
  if (addon.imageFormat !== wanted.imageFormat) return 'the form of images differs';
  if (aboutOf(addon) !== wanted.about) return 'what addon.json says differs';
  const own = ownDifference(finished, wanted);
  if (own !== undefined) return own;
  const images = wanted.steps.filter((step) => step.kind === 'image');
  const assets = wanted.steps.filter((step) => step.kind === 'asset');
  const deps = wanted.steps.filter((step) => step.kind === 'os-packages');
  if (wanted.steps.some(({ kind }) => kind === 'container-build')) return 'a container build is always run';
  if (images.length !== lock.images.length || assets.length !== lock.assets.length) return 'the Manifest differs';
  if (deps.length !== lock.deps.length) return 'the Manifest differs';
  const judged = await mapLimited<ImageStep | AssetStep, string | undefined>(
    [...images, ...assets],
    async (step, context) =>
      step.kind === 'image'
        ? imageDifference(step, lock, { ...wanted, ...context, ports })
        : assetDifference(step, lock, { ...wanted, ...context, ports }),
    { width: 16, signal },
  );
  return judged.find((difference) => difference !== undefined);
}

/** Entries that a build makes; all others are the add-on's own. */
function isMade(path: string, os: readonly string[]): boolean {
  const [folder = ''] = path.split('/', 1);
  return path === ADDON_JSON || path === MANIFEST_LOCK || ['images', 'assets', ...os].includes(folder);
}

function ownDifference({ index, addon }: FinishedPackage, { ref, own }: Wanted): string | undefined {
  const prefix = prefixOf(ref);
  const packed = new Map(
    index.entries
      .filter(({ path }) => !isMade(path.slice(prefix.length), addon.os))
      .map(({ path, mode, digest }) => [path.slice(prefix.length), `${mode} ${digest}`]),
  );
  for (const { path, mode, digest } of own) {
    const there = packed.get(path);
    if (there === undefined) return `${path} is new`;
    if (there !== `${mode} ${digest}`) return `${path} differs`;
    packed.delete(path);
  }
  const [gone] = packed.keys();
  return gone === undefined ? undefined : `${gone} is gone`;
}

interface Asking {
  readonly root: string;
  readonly arch: Arch;
  readonly ports: Pick<BuildPorts, 'registry' | 'engine' | 'http' | 'cache'>;
  readonly signal: AbortSignal;
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

async function assetDifference(step: AssetStep, lock: ManifestLock, asking: Asking): Promise<string | undefined> {
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
  const note = await noteOf(ports.cache, step.source);
  if (note?.digest !== locked.digest) return `asset ${step.fileName}: nothing is known of the last download`;
  if (await isCurrent(step, note, ports.http, { signal })) return undefined;
  return `asset ${step.fileName} has changed at its source`;
}
