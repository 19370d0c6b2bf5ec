/** Package sources: an archive that is read by range, or a folder that a bundle was unpacked into. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import { wholeFile } from '../../core/bytes.ts';
import { extractEntries, requireExtractable, type ReadEntry } from '../../formats/archive/extract.ts';
import { findEntry, nameOf, readPayload } from '../../formats/archive/read.ts';
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
  /** Bytes to fetch. */
  readonly size: number;
  /**
   * Downloads the package below an install folder, or resumes the download of an earlier run. `onBytes` is called with the
   * number of bytes that are on disk.
   */
  readonly fetch: (
    directory: string,
    options: {
      readonly onBytes: (bytes: number) => void;
      readonly report: Report;
      readonly signal: AbortSignal;
    },
  ) => Promise<'fetched' | 'already fetched'>;
}

export interface SourcePackage {
  readonly ref: AddonRef;
  /** Its digest has been compared with the table of contents. */
  readonly addon: AddonJson;
  /** Paths are relative to the package's prefix. Omitted files are not listed. */
  readonly files: readonly PackageFile[];
  /** Folders of operating systems that the bundle omitted. */
  readonly omitted: readonly OsId[];
  /** Writes all files into a folder that does not exist yet. Verifies every byte; all files are synced when it returns. */
  readonly extract: (into: string, options: { readonly signal: AbortSignal }) => Promise<void>;
  /**
   * The bytes of one file, by its path relative to the package's prefix. They are verified while they are read: use them only
   * after the stream has ended.
   */
  readonly read: (path: string, options: { readonly signal: AbortSignal }) => AsyncIterable<Uint8Array>;
  /** Only for a package that must be fetched before it is extracted. */
  readonly remote?: RemotePackage;
  /** Absolute path of the folder that the files are moved from; undefined if they are copied. */
  readonly movedFrom?: string;
  /** Removes the files that it was extracted from. Call it when the package is in place. */
  readonly discard?: () => Promise<void>;
}

/** A companion package that a source offers. */
export interface OfferedPackage {
  readonly source: SourcePackage;
  readonly role: 'step' | 'machine';
}

/** Entries of a table of contents, grouped by package; files in the bundle's root are left out. */
export function entriesByPackage<Entry extends { readonly path: string }>(
  entries: readonly Entry[],
): readonly { readonly ref: AddonRef; readonly entries: readonly Entry[] }[] {
  const groups = new Map<string, { readonly ref: AddonRef; readonly entries: Entry[] }>();
  for (const entry of entries) {
    const owner = ownerOf(entry.path);
    if (owner === undefined) continue;
    const ref = addonRef(owner.name, owner.version, owner.tree);
    const prefix = prefixOf(ref);
    const group = groups.get(prefix) ?? { ref, entries: [] };
    group.entries.push(entry);
    groups.set(prefix, group);
  }
  return [...groups.values()];
}

export function packageFiles(ref: AddonRef, entries: readonly Omit<PlacedEntry, 'offset'>[]): readonly PackageFile[] {
  const { length } = prefixOf(ref);
  return entries.map(({ path, mode, size, digest }) => ({ path: path.slice(length), mode, size, digest }));
}

/** The metadata texts of a package. */
export interface PackageTexts {
  readonly addon: string;
  /** Digest of its {@link OMITTED_JSON}; undefined if the package is whole. */
  readonly omitted: string | undefined;
}

/** Parses an addon.json and compares it with its place, with the package's files, and with the omitted ones. */
export function checkedAddon(
  texts: PackageTexts,
  ref: AddonRef,
  files: readonly PackageFile[],
  from: string,
): Pick<SourcePackage, 'addon' | 'omitted'> {
  const addon = parseAddonJson(texts.addon, `${from}: ${formatRef(ref)}`);
  const named = refOf(addon);
  if (prefixOf(named) !== prefixOf(ref)) {
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${prefixOf(ref)}${ADDON_JSON} describes ${formatRef(named)}`, {
      hint: 'build or fetch the package again',
    });
  }
  const omitted = texts.omitted === undefined ? undefined : parseOmitted(texts.omitted, `${from}: ${formatRef(ref)}`);
  const stray = files.find(({ path }) => omitted?.folders.some((folder) => path.startsWith(`${folder}/`)));
  if (stray !== undefined) {
    throw new CurlewError(
      'PACKAGE_INVALID',
      `${from}: ${prefixOf(ref)}${stray.path} exists, but its folder is listed as omitted`,
      { hint: 'create the bundle again' },
    );
  }
  const whole =
    omitted === undefined ? files : [...files.filter(({ path }) => path !== OMITTED_JSON), ...omitted.files];
  if (packageDigest(whole) !== addon.digest) {
    throw new CurlewError('DIGEST_MISMATCH', `${from}: the files of ${formatRef(ref)} do not match its ${ADDON_JSON}`, {
      hint: 'build or fetch the package again',
    });
  }
  return { addon, omitted: omitted?.folders ?? [] };
}

/** The error for a file that a package lists but does not contain. */
export function missingFile(from: string, ref: AddonRef, path: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${from}: ${prefixOf(ref)}${path} is missing`, {
    hint: 'build or fetch the package again',
  });
}

interface ArchiveOptions {
  /** Reads and verifies the unpacked bytes of a payload; default: from the archive itself. */
  readonly read?: ReadEntry | undefined;
  /** Whether the payload of an entry is available; a package without its metadata is left out. Default: all are. */
  readonly has?: ((entry: PlacedEntry) => boolean) | undefined;
  readonly signal: AbortSignal;
}

/**
 * All packages of an archive: one package, or a bundle of many. `PACKAGE_INVALID` or `DIGEST_MISMATCH` if an entry could not be
 * extracted, or a package does not match its addon.json.
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
    const from = nameOf(source, entry);
    const texts = {
      addon: await readEntryText(from, entry, { read, limit: ADDON_JSON_LIMIT, signal }),
      omitted: note && (await readEntryText(from, note, { read, limit: OMITTED_JSON_LIMIT, signal })),
    };
    packages.push({
      ref,
      ...checkedAddon(texts, ref, files, from),
      files,
      extract: async (into, options) => {
        const select = ({ path }: PlacedEntry): string | undefined =>
          path.startsWith(prefix) ? path.slice(prefix.length) : undefined;
        await extractEntries(source, index, { into, select, read, sync: true, signal: options.signal });
      },
      read: (path, options) => {
        const placed = findEntry(index, `${prefix}${path}`);
        if (placed === undefined) throw missingFile(source.name, ref, path);
        return read(placed, options);
      },
    });
  }
  return packages;
}

/** The text of an entry with its own payload; more than `limit` bytes is `PACKAGE_INVALID`. `from` names the archive. */
export async function readEntryText(
  from: string,
  entry: PlacedEntry,
  { read, limit, signal }: { readonly read: ReadEntry; readonly limit: number; readonly signal: AbortSignal },
): Promise<string> {
  const bytes = await wholeFile(from, entry, limit, () => read(entry, { signal }));
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${entry.path} is not UTF-8 text`, { cause: error });
  }
}
