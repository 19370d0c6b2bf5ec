/** Describes the contents of an archive from its small files; reads nothing else of it. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import { findEntry } from '../../formats/archive/read.ts';
import { wholeFile } from '../../core/bytes.ts';
import { CurlewError } from '../../core/errors.ts';
import {
  ADDON_JSON,
  BUNDLE_JSON,
  BUNDLED_TOOL,
  KURL_FOLDER,
  MANIFEST_LOCK,
  OMITTED_JSON,
  ownerOf,
  prefixOf,
} from '../../core/layout.ts';
import { LOCK_LIMIT, parseLock } from '../../manifest/lock.ts';
import type { SourcePackage } from '../../runtime/node/source.ts';
import { hasLoneSurrogates, type DescribedPackage } from '../../build/sbom/components.ts';
import type { Described } from '../../build/sbom/described.ts';
import { checkArchive } from './check-archive.ts';
import { openBundle } from './open-bundle.ts';

/** Maximum total bytes of all locks; as data in memory they take about ten times as much. */
const ALL_LOCKS_LIMIT = 64 << 20;

export interface DescribeOptions {
  /** The install folder, which has the payloads that are not in a delta. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

/** Describes a package or a bundle; for a delta, the bundle that it creates. Anything else is `PACKAGE_INVALID`. */
export async function describeArchive(
  source: RangeSource,
  { index: archiveIndex, directory, signal }: DescribeOptions & { readonly index: ArchiveIndex },
): Promise<Described> {
  const { index: whole, read, requireAll } = await openBundle(source, archiveIndex, { directory, signal });
  await requireAll(whole.entries.filter(isDocument));
  const { index, packages: archived, bundle: json } = await checkArchive(source, whole, { read, signal });
  const locks = archived.flatMap(({ files }) => files.filter(({ path }) => path === MANIFEST_LOCK));
  if (locks.reduce((sum, { size }) => sum + size, 0) > ALL_LOCKS_LIMIT) {
    throw new CurlewError('PACKAGE_INVALID', `${source.name}: its locks are larger than ${ALL_LOCKS_LIMIT} bytes`);
  }
  const packages: DescribedPackage[] = [];
  for (const one of archived) packages.push(await describePackage(one, source.name, { signal }));
  const contents = whole.tocDigest;
  if (json !== undefined) {
    if (hasLoneSurrogates(json)) {
      throw new CurlewError(
        'PACKAGE_INVALID',
        `${source.name}: ${BUNDLE_JSON} contains text that is not valid Unicode`,
      );
    }
    return { contents, packages, bundle: { json, tool: findEntry(index, BUNDLED_TOOL)?.digest } };
  }
  const [only, another] = packages;
  if (only === undefined || another !== undefined || index.entries.some(({ path }) => ownerOf(path) === undefined)) {
    throw new CurlewError(
      'PACKAGE_INVALID',
      `${source.name}: neither one package nor a bundle with its ${BUNDLE_JSON}`,
      { hint: 'curlew build creates packages, curlew bundle creates bundles' },
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
  const { size = 0 } = files.find((file) => file.path === MANIFEST_LOCK) ?? {};
  const bytes = await wholeFile(from, { path, size }, LOCK_LIMIT, () => read(MANIFEST_LOCK, { signal }));
  return { addon, files, omitted, lock: parseLock(bytes.toString(), `${from}: ${prefixOf(ref)}`) };
}

/** Small files that describe an archive; in a bundle for kURL's own scripts, inside its folder. */
function isDocument({ path }: PlacedEntry): boolean {
  if (path === BUNDLE_JSON) return true;
  const below = path.startsWith(KURL_FOLDER) ? path.slice(KURL_FOLDER.length) : path;
  const owner = ownerOf(below);
  return owner !== undefined && [ADDON_JSON, OMITTED_JSON, MANIFEST_LOCK].includes(below.slice(prefixOf(owner).length));
}
