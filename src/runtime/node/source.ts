/** Where packages come from: an archive that is read by range, or a folder that it was unpacked into. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import { extractEntries, requireExtractable, type ReadEntry } from '../../formats/archive/extract.ts';
import { findEntry, readPayload } from '../../formats/archive/read.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { ADDON_JSON, OMITTED_JSON, ownerOf, prefixOf } from '../../core/layout.ts';
import { OMITTED_JSON_LIMIT, parseOmitted } from '../../core/omitted.ts';
import type { OsId } from '../../core/os.ts';
import {
  ADDON_JSON_LIMIT,
  packageDigest,
  parseAddonJson,
  refOf,
  type AddonJson,
  type PackageFile,
} from '../../core/package.ts';
import { addonRef, formatRef, type AddonRef } from '../../core/ref.ts';

export interface RemotePackage {
  /** Bytes that are to be fetched. */
  readonly size: number;
  /**
   * Brings the package's bytes below an install folder; what an earlier run has brought is gone on with. `onBytes` is told
   * how many are there.
   */
  readonly fetch: (
    directory: string,
    options: {
      readonly onBytes: (bytes: number) => void;
      readonly report: Report;
      readonly signal: AbortSignal;
    },
  ) => Promise<'fetched' | 'there already'>;
}

export interface SourcePackage {
  readonly ref: AddonRef;
  /** Its digest has been compared with the table of contents. */
  readonly addon: AddonJson;
  /** Below the package's prefix; those that were left out are not among them. */
  readonly files: readonly PackageFile[];
  /** Folders of operating systems that a bundle left out of it. */
  readonly omitted: readonly OsId[];
  /** Writes all files into a folder that does not exist yet; every byte is verified, and on disk at the end. */
  readonly extract: (into: string, options: { readonly signal: AbortSignal }) => Promise<void>;
  /**
   * The bytes of one file, by its path below the package's prefix. They are verified as they pass: use them only when the
   * stream has ended.
   */
  readonly read: (path: string, options: { readonly signal: AbortSignal }) => AsyncIterable<Uint8Array>;
  /** For a package that is not on this machine: to be fetched before it is extracted. */
  readonly remote?: RemotePackage;
  /** Absolute path of the folder whose files are moved, not copied; undefined when there is none. */
  readonly movedFrom?: string;
  /** Gives up what it was extracted from; to be called when its files are in place for good. */
  readonly discard?: () => Promise<void>;
}

/** Entries of a table of contents by the package that they belong to; files of the bundle's own are left out. */
export function entriesByPackage<Entry extends { readonly path: string }>(
  entries: readonly Entry[],
): readonly { readonly ref: AddonRef; readonly entries: readonly Entry[] }[] {
  const found = new Map<string, { readonly ref: AddonRef; readonly entries: Entry[] }>();
  for (const entry of entries) {
    const owner = ownerOf(entry.path);
    if (owner === undefined) continue;
    const ref = addonRef(owner.name, owner.version, owner.tree);
    const prefix = prefixOf(ref);
    const group = found.get(prefix) ?? { ref, entries: [] };
    group.entries.push(entry);
    found.set(prefix, group);
  }
  return [...found.values()];
}

export function packageFiles(ref: AddonRef, entries: readonly Omit<PlacedEntry, 'offset'>[]): readonly PackageFile[] {
  const { length } = prefixOf(ref);
  return entries.map(({ path, mode, size, digest }) => ({ path: path.slice(length), mode, size, digest }));
}

/** The texts of a package that say what it is. */
export interface PackageTexts {
  readonly addon: string;
  /** Of its {@link OMITTED_JSON}; undefined for a package that is whole. */
  readonly omitted: string | undefined;
}

/** Reads an addon.json and compares it with the place it stands in, the files beside it, and those left out. */
export function checkedAddon(
  texts: PackageTexts,
  ref: AddonRef,
  files: readonly PackageFile[],
  from: string,
): Pick<SourcePackage, 'addon' | 'omitted'> {
  const addon = parseAddonJson(texts.addon, `${from}: ${formatRef(ref)}`);
  const named = refOf(addon);
  if (prefixOf(named) !== prefixOf(ref)) {
    throw new CurlewError(
      'PACKAGE_INVALID',
      `${from}: ${prefixOf(ref)}${ADDON_JSON} is the one of ${formatRef(named)}`,
      { hint: 'build or fetch the package again' },
    );
  }
  const omitted = texts.omitted === undefined ? undefined : parseOmitted(texts.omitted, `${from}: ${formatRef(ref)}`);
  const stray = files.find(({ path }) => omitted?.folders.some((folder) => path.startsWith(`${folder}/`)));
  if (stray !== undefined) {
    throw new CurlewError(
      'PACKAGE_INVALID',
      `${from}: ${prefixOf(ref)}${stray.path} is there, and its folder left out`,
      {
        hint: 'make the bundle again',
      },
    );
  }
  const whole =
    omitted === undefined ? files : [...files.filter(({ path }) => path !== OMITTED_JSON), ...omitted.files];
  if (packageDigest(whole) !== addon.digest) {
    throw new CurlewError(
      'DIGEST_MISMATCH',
      `${from}: the files of ${formatRef(ref)} are not those of its ${ADDON_JSON}`,
      {
        hint: 'build or fetch the package again',
      },
    );
  }
  return { addon, omitted: omitted?.folders ?? [] };
}

/** A package promised a file that is not in it. */
export function missingFile(from: string, ref: AddonRef, path: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${from}: ${prefixOf(ref)}${path} is missing`, {
    hint: 'build or fetch the package again',
  });
}

export interface ArchiveOptions {
  /** The unpacked bytes of a payload, proved; default: those in the archive itself. */
  readonly read?: ReadEntry | undefined;
  /** Whether the payload of an entry is at hand; a package whose notes are not is left out. Default: all are. */
  readonly has?: ((entry: PlacedEntry) => boolean) | undefined;
  readonly signal: AbortSignal;
}

/**
 * All packages of an archive: one package, or a bundle of many. What could not be extracted, and a package that is not what its
 * addon.json says, is `PACKAGE_INVALID` or `DIGEST_MISMATCH`.
 */
export async function archivePackages(
  source: RangeSource,
  index: ArchiveIndex,
  { read = (entry, options) => readPayload(source, entry, options), has = () => true, signal }: ArchiveOptions,
): Promise<readonly SourcePackage[]> {
  requireExtractable(source.name, index);
  const packages: SourcePackage[] = [];
  for (const { ref, entries } of entriesByPackage(index.entries)) {
    const prefix = prefixOf(ref);
    const entry = findEntry(index, `${prefix}${ADDON_JSON}`);
    if (entry === undefined)
      throw new CurlewError('PACKAGE_INVALID', `${source.name}: ${prefix}${ADDON_JSON} is missing`);
    const files = packageFiles(ref, entries);
    const note = findEntry(index, `${prefix}${OMITTED_JSON}`);
    if (!has(entry) || (note !== undefined && !has(note))) continue;
    const texts = {
      addon: await textOf(source.name, entry, { read, limit: ADDON_JSON_LIMIT, signal }),
      omitted: note && (await textOf(source.name, note, { read, limit: OMITTED_JSON_LIMIT, signal })),
    };
    packages.push({
      ref,
      ...checkedAddon(texts, ref, files, source.name),
      files,
      extract: async (into, options) => {
        const select = ({ path }: PlacedEntry): string | undefined =>
          path.startsWith(prefix) ? path.slice(prefix.length) : undefined;
        await extractEntries(source, index, { into, select, read, sync: true, signal: options.signal });
      },
      read: (path, options) => {
        const found = findEntry(index, `${prefix}${path}`);
        if (found === undefined) throw missingFile(source.name, ref, path);
        return read(found, options);
      },
    });
  }
  return packages;
}

/** The text of an entry with a payload of its own; more than `limit` bytes is `PACKAGE_INVALID`. `from` is the archive. */
export async function textOf(
  from: string,
  entry: PlacedEntry,
  { read, limit, signal }: { readonly read: ReadEntry; readonly limit: number; readonly signal: AbortSignal },
): Promise<string> {
  if (entry.size > limit)
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${entry.path} is larger than ${limit} bytes`);
  const parts: Uint8Array[] = [];
  for await (const chunk of read(entry, { signal })) parts.push(chunk);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts));
  } catch (error) {
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${entry.path} is not UTF-8 text`, { cause: error });
  }
}
