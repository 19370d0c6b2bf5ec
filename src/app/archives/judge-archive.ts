/** What an archive is before anything of it is used: the one judgement of all commands that read packages and bundles. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import type { ReadEntry } from '../../formats/archive/extract.ts';
import { findEntry } from '../../formats/archive/read.ts';
import { withoutKurlFolder } from '../../bundle/kurl-layout.ts';
import { BUNDLE_JSON_LIMIT, INSTALLER_LIMIT, parseBundleJson, type BundleJson } from '../../core/bundle.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { BUNDLE_JSON, INSTALLER_YAML, prefixOf } from '../../core/layout.ts';
import { addonRef } from '../../core/ref.ts';
import { archivePackages, readEntryText, type SourcePackage } from '../../runtime/node/source.ts';

export interface JudgedArchive {
  /** With packages where they are in any bundle, also in one for kURL's own scripts. */
  readonly index: ArchiveIndex;
  readonly packages: readonly SourcePackage[];
  /** Absent in a package that is no bundle. */
  readonly bundle: BundleJson | undefined;
  /** The text of the spec that came with the packages, unjudged; undefined when none did. */
  readonly installerText: () => Promise<string | undefined>;
}

interface JudgeOptions {
  readonly read: ReadEntry;
  /** Whether a payload is at hand; default: all are. What is not at hand is not judged. */
  readonly has?: ((entry: PlacedEntry) => boolean) | undefined;
  /** Throws for a bundle that the caller has no use for, before its packages are read. */
  readonly accept?: ((bundle: BundleJson | undefined) => void) | undefined;
  readonly signal: AbortSignal;
}

/**
 * Reads the small files that say what an archive is, and holds them against its index and each other. Anything that does not
 * fit, is hostile or too large is `PACKAGE_INVALID`, `DIGEST_MISMATCH` or, of another format, `UNSUPPORTED`.
 */
export async function judgeArchive(
  source: RangeSource,
  given: ArchiveIndex,
  { read, has = () => true, accept, signal }: JudgeOptions,
): Promise<JudgedArchive> {
  const root = async (name: string, limit: number): Promise<string | undefined> => {
    const entry = findEntry(given, name);
    if (entry === undefined || !has(entry)) return undefined;
    return readEntryText(source.name, entry, { read, limit, signal });
  };
  const text = await root(BUNDLE_JSON, BUNDLE_JSON_LIMIT);
  const bundle = text === undefined ? undefined : parseBundleJson(text, source.name);
  accept?.(bundle);
  const index = bundle?.layout === 'kurl' ? withoutKurlFolder(given) : given;
  const packages = await archivePackages(source, index, { read, has, signal });
  if (bundle !== undefined) requireListed(packages, bundle, index, source.name);
  return { index, packages, bundle, installerText: async () => root(INSTALLER_YAML, INSTALLER_LIMIT) };
}

/** What is there, and what the bundle says, must be the same packages. */
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
    new CurlewError(code, `${from}: ${what} that ${BUNDLE_JSON} names`, { hint: 'make or fetch the bundle again' });
  const wrong = packages.find(({ ref, addon }) => listed.get(prefixOf(ref)) !== addon.digest);
  if (wrong !== undefined) {
    const prefix = prefixOf(wrong.ref);
    throw bad(listed.has(prefix) ? 'DIGEST_MISMATCH' : 'PACKAGE_INVALID', `${prefix} is not the one`);
  }
  for (const prefix of listed.keys()) {
    if (!entries.some(({ path }) => path.startsWith(prefix)))
      throw bad('PACKAGE_INVALID', 'not all of its packages are there');
  }
}
