/** Validates an archive before it is used; all commands that read packages and bundles share it. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import type { ReadEntry } from '../../formats/archive/extract.ts';
import { findEntry } from '../../formats/archive/read.ts';
import { withoutKurlFolder } from '../../ship/bundle/kurl-layout.ts';
import { BUNDLE_JSON_LIMIT, INSTALLER_LIMIT, parseBundleJson, type BundleJson } from '../../core/bundle.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { BUNDLE_JSON, INSTALLER_YAML, prefixOf } from '../../core/layout.ts';
import { addonRef } from '../../core/ref.ts';
import { archivePackages, readEntryText, type SourcePackage } from '../../runtime/node/source.ts';

export interface CheckedArchive {
  /** Index with packages at their usual paths, even for a bundle for kURL's own scripts. */
  readonly index: ArchiveIndex;
  readonly packages: readonly SourcePackage[];
  /** Undefined for a single package. */
  readonly bundle: BundleJson | undefined;
  /** The unchecked text of the spec in the archive; undefined if there is none. */
  readonly installerText: () => Promise<string | undefined>;
}

interface JudgeOptions {
  readonly read: ReadEntry;
  /** Whether a payload is available; default: all are. Others are not checked. */
  readonly has?: ((entry: PlacedEntry) => boolean) | undefined;
  /** Throws for a bundle that the caller does not support, before its packages are read. */
  readonly accept?: ((bundle: BundleJson | undefined) => void) | undefined;
  readonly signal: AbortSignal;
}

/**
 * Reads the metadata of an archive, and compares it with its index and with each other. `PACKAGE_INVALID` or `DIGEST_MISMATCH`
 * for anything inconsistent, hostile or too large; `UNSUPPORTED` for another format.
 */
export async function checkArchive(
  source: RangeSource,
  archiveIndex: ArchiveIndex,
  { read, has = () => true, accept, signal }: JudgeOptions,
): Promise<CheckedArchive> {
  const root = async (name: string, limit: number): Promise<string | undefined> => {
    const entry = findEntry(archiveIndex, name);
    if (entry === undefined || !has(entry)) return undefined;
    return readEntryText(source.name, entry, { read, limit, signal });
  };
  const text = await root(BUNDLE_JSON, BUNDLE_JSON_LIMIT);
  const bundle = text === undefined ? undefined : parseBundleJson(text, source.name);
  accept?.(bundle);
  const index = bundle?.layout === 'kurl' ? withoutKurlFolder(archiveIndex) : archiveIndex;
  const packages = await archivePackages(source, index, { read, has, signal });
  if (bundle !== undefined) requireListed(packages, bundle, index, source.name);
  return { index, packages, bundle, installerText: async () => root(INSTALLER_YAML, INSTALLER_LIMIT) };
}

/** The packages in the archive and those in bundle.json must be the same. */
function requireListed(
  packages: readonly SourcePackage[],
  { packages: named, beside = [] }: BundleJson,
  { entries }: ArchiveIndex,
  from: string,
): void {
  const listed = new Map<string, Digest>();
  for (const { name, version, tree, digest } of [...named, ...beside]) {
    listed.set(prefixOf(addonRef(name, version, tree)), digest);
  }
  const bad = (code: 'PACKAGE_INVALID' | 'DIGEST_MISMATCH', what: string): CurlewError =>
    new CurlewError(code, `${from}: ${what} that ${BUNDLE_JSON} lists`, {
      hint: 'create or download the bundle again',
    });
  const wrong = packages.find(({ ref, addon }) => listed.get(prefixOf(ref)) !== addon.digest);
  if (wrong !== undefined) {
    const prefix = prefixOf(wrong.ref);
    throw bad(listed.has(prefix) ? 'DIGEST_MISMATCH' : 'PACKAGE_INVALID', `${prefix} is not the one`);
  }
  for (const prefix of listed.keys()) {
    if (!entries.some(({ path }) => path.startsWith(prefix)))
      throw bad('PACKAGE_INVALID', 'it does not contain all packages');
  }
}
