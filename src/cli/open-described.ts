/** What an archive is made of, read from its small files: nothing else of it is asked for, however large it is. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../archive/entry.ts';
import { findEntry } from '../archive/read.ts';
import { withoutKurlFolder } from '../bundle/kurl-layout.ts';
import { BUNDLE_JSON_LIMIT, parseBundleJson, type BundleJson } from '../core/bundle.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import {
  ADDON_JSON,
  BUNDLE_JSON,
  BUNDLED_TOOL,
  MANIFEST_LOCK,
  OMITTED_JSON,
  ownerOf,
  prefixOf,
} from '../core/layout.ts';
import { addonRef } from '../core/ref.ts';
import { LOCK_LIMIT, parseLock } from '../manifest/lock.ts';
import { archivePackages, textOf, type SourcePackage } from '../runtime/source.ts';
import { holdsHalves, type DescribedPackage } from '../sbom/components.ts';
import type { Described } from '../sbom/described.ts';
import { openBundle } from './open-bundle.ts';

/** Most bytes of all locks together: they are held in memory as data, which is some ten times as much. */
const ALL_LOCKS_LIMIT = 64 << 20;

export interface DescribeOptions {
  /** The install folder, which has what a delta lacks. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

/** A package, or a bundle; of a delta, the bundle that it makes. Anything else is `PACKAGE_INVALID`. */
export async function describeArchive(
  source: RangeSource,
  { index: given, directory, signal }: DescribeOptions & { readonly index: ArchiveIndex },
): Promise<Described> {
  const { index: whole, read, requireAll } = await openBundle(source, given, { directory, signal });
  const entry = findEntry(whole, BUNDLE_JSON);
  if (entry !== undefined) await requireAll([entry]);
  const text = entry && (await textOf(source.name, entry, { read, limit: BUNDLE_JSON_LIMIT, signal }));
  const json = text === undefined ? undefined : parseBundleJson(text, source.name);
  const index = json?.layout === 'kurl' ? withoutKurlFolder(whole) : whole;
  await requireAll(index.entries.filter(isDocument));
  const found = await archivePackages(source, index, { read, signal });
  const locks = found.flatMap(({ files }) => files.filter(({ path }) => path === MANIFEST_LOCK));
  if (locks.reduce((sum, { size }) => sum + size, 0) > ALL_LOCKS_LIMIT) {
    throw new CurlewError('PACKAGE_INVALID', `${source.name}: its locks are larger than ${ALL_LOCKS_LIMIT} bytes`);
  }
  const packages: DescribedPackage[] = [];
  for (const one of found) packages.push(await describePackage(one, source.name, { signal }));
  const contents = whole.tocDigest;
  if (json !== undefined) {
    requireListed(packages, json, source.name);
    return { contents, packages, bundle: { json, tool: findEntry(index, BUNDLED_TOOL)?.digest } };
  }
  const [only, another] = packages;
  if (only === undefined || another !== undefined || index.entries.some(({ path }) => ownerOf(path) === undefined)) {
    throw new CurlewError(
      'PACKAGE_INVALID',
      `${source.name}: neither one package nor a bundle with its ${BUNDLE_JSON}`,
      {
        hint: 'curlew build makes packages, curlew bundle makes bundles',
      },
    );
  }
  return { contents, packages: [only], bundle: undefined };
}

async function describePackage(
  { addon, files, omitted, ref, read }: SourcePackage,
  from: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<DescribedPackage> {
  const path = `${prefixOf(ref)}${MANIFEST_LOCK}`;
  if ((files.find((file) => file.path === MANIFEST_LOCK)?.size ?? 0) > LOCK_LIMIT) {
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${path} is larger than ${LOCK_LIMIT} bytes`);
  }
  const parts: Uint8Array[] = [];
  for await (const chunk of read(MANIFEST_LOCK, { signal })) parts.push(chunk);
  return { addon, files, omitted, lock: parseLock(Buffer.concat(parts).toString(), `${from}: ${prefixOf(ref)}`) };
}

function isDocument({ path }: PlacedEntry): boolean {
  const owner = ownerOf(path);
  if (owner === undefined) return false;
  return [ADDON_JSON, OMITTED_JSON, MANIFEST_LOCK].includes(path.slice(prefixOf(owner).length));
}

/** What is there, and what the bundle says, must be the same packages. */
function requireListed(packages: readonly DescribedPackage[], json: BundleJson, from: string): void {
  if (holdsHalves(json)) {
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${BUNDLE_JSON} holds text that is not valid Unicode`);
  }
  const listed = new Map<string, Digest>();
  for (const { name, version, tree, digest } of [...json.packages, ...(json.beside ?? [])]) {
    listed.set(prefixOf(addonRef(name, version, tree)), digest);
  }
  const wrong = packages.find(({ addon }) => listed.get(prefixOf(addon)) !== addon.digest);
  if (wrong === undefined && listed.size === packages.length) return;
  const what = wrong === undefined ? 'not all of its packages are there' : `${prefixOf(wrong.addon)} is not the one`;
  throw new CurlewError('PACKAGE_INVALID', `${from}: ${what} that ${BUNDLE_JSON} names`, {
    hint: 'make or fetch the bundle again',
  });
}
