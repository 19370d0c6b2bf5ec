/**
 * The inputs of an add-on's build: enough to decide later, and elsewhere, whether another build would produce the same
 * package. A package contains most of them, except what servers reported about files without a digest.
 */
import * as v from 'valibot';
import { digestOf, type Digest } from '../core/digest.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';
import { ADDON_JSON, MANIFEST_LOCK, prefixOf } from '../core/layout.ts';
import { refOf, type ImageFormat, type PackageFile } from '../core/package.ts';
import { byKey, digest, fits, imageFormat } from '../core/schema.ts';
import { checkedLock, type ManifestLock } from '../manifest/lock.ts';
import type { AddonSource } from '../manifest/read-addon.ts';
import type { AssetStep, BuilderStep } from '../manifest/step.ts';
import { aboutAddon, ownFiles } from './package-metadata.ts';
import { checkedNote, type SourceNote } from './asset-note.ts';
import { noteOf } from './assets.ts';
import type { FinishedPackage } from './earlier-package.ts';

export interface PackageInputs {
  readonly imageFormat: ImageFormat;
  /** Digest of the metadata in `addon.json` apart from files and steps. */
  readonly about: Digest;
  /** The add-on's own files: path to mode and digest. */
  readonly own: Readonly<Record<string, string>>;
  readonly lock: ManifestLock;
  /** Assets without a digest, by name: what their servers reported. */
  readonly sources: Readonly<Record<string, SourceNote>>;
}

function rowsOf(files: readonly Pick<PackageFile, 'path' | 'mode' | 'digest'>[]): Readonly<Record<string, string>> {
  return Object.fromEntries(files.map(({ path, mode, digest }) => [path, `${mode.toString(8)} ${digest}`]));
}

/** The current inputs, except for resolved steps. */
export function currentInputs(source: AddonSource): Pick<PackageInputs, 'about' | 'own'> {
  return { about: digestOf(aboutAddon(source)), own: rowsOf(ownFiles(source)) };
}

/** Entries that a build creates; all others belong to the add-on. */
function isGenerated(path: string, os: readonly string[]): boolean {
  const [folder = ''] = path.split('/', 1);
  return path === ADDON_JSON || path === MANIFEST_LOCK || ['images', 'assets', ...os].includes(folder);
}

/** The inputs that a package contains. */
export function inputsOfPackage({ index, addon, lock }: FinishedPackage): PackageInputs {
  const prefix = prefixOf(refOf(addon));
  const own = index.entries
    .map(({ path, mode, digest }) => ({ path: path.slice(prefix.length), mode, digest }))
    .filter(({ path }) => !isGenerated(path, addon.os));
  return { imageFormat: addon.imageFormat, about: digestOf(aboutAddon(addon)), own: rowsOf(own), lock, sources: {} };
}

/** The inputs right after a build, including what servers reported about downloaded files. */
export async function inputsOfBuild(
  source: AddonSource,
  {
    steps,
    imageFormat,
    lock,
    cache,
  }: Pick<PackageInputs, 'imageFormat' | 'lock'> & {
    readonly steps: readonly BuilderStep[];
    readonly cache: string;
  },
  { signal }: { readonly signal: AbortSignal },
): Promise<PackageInputs> {
  const remote = steps.filter((step): step is AssetStep => step.kind === 'asset' && !step.local);
  const noted = await mapLimited(
    remote.filter(({ digest }) => digest === undefined),
    async ({ fileName, source: address }) => [fileName, await noteOf(cache, address)] as const,
    { width: 4, signal },
  );
  const sources = noted.flatMap(([name, note]) => {
    const locked = lock.assets.find((asset) => asset.name === name);
    return note !== undefined && note.digest === locked?.digest ? [[name, note] as const] : [];
  });
  return { imageFormat, ...currentInputs(source), lock, sources: Object.fromEntries(sources) };
}

const recordedInputs = v.object({
  imageFormat: imageFormat,
  about: digest,
  own: byKey(v.unknown()),
  sources: byKey(v.unknown()),
  lock: v.optional(v.unknown()),
});

/** Parses inputs from outside; undefined if they are invalid or from another version of curlew. */
export function parseInputs(value: unknown): PackageInputs | undefined {
  if (!fits(recordedInputs, value)) return undefined;
  const { imageFormat, about, own, sources } = value;
  const rows = Object.entries(own).filter((row): row is [string, string] => typeof row[1] === 'string');
  const notes = Object.entries(sources).flatMap(([name, note]) => {
    const checked = checkedNote(note);
    return checked === undefined ? [] : [[name, checked] as const];
  });
  try {
    const lock = checkedLock(value.lock, 'recorded inputs');
    return { imageFormat, about, own: Object.fromEntries(rows), lock, sources: Object.fromEntries(notes) };
  } catch (error) {
    if (error instanceof CurlewError) return undefined;
    throw error;
  }
}
