/**
 * A bundle plan: an ordered list of bytes and ranges. Pure: computed from the indexes of the packages only. Equal plans
 * produce equal bytes.
 */
import { basename } from 'node:path';
import type { ArchiveIndex } from '../../formats/archive/entry.ts';
import { planSplice, type SplicePart, type SplicePlan } from '../../formats/archive/splice.ts';
import {
  formatBundleJson,
  BUNDLE_FORMAT,
  type BundledSystems,
  type BundleJson,
  type DeltaJson,
  type BundledPackage,
} from '../../core/bundle.ts';
import { digestOf, hexOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import {
  BUNDLE_JSON,
  BUNDLED_TOOL,
  BUNDLED_TOOL_SUM,
  INSTALLER_YAML,
  KURL_FOLDER,
  ownerOf,
  packedExecutableName,
  prefixOf,
} from '../../core/layout.ts';
import { osFolderOf } from '../../core/omitted.ts';
import { OS_IDS, type OsId } from '../../core/os.ts';
import { packageDigest } from '../../core/package.ts';
import { formatRef, type Arch } from '../../core/ref.ts';
import type { ResolvedExtra } from './extras.ts';
import { keptPart } from './other-systems.ts';
import type { RootFile } from '../../own/root-files.ts';
import { channelOf } from '../../spec/version.ts';
import type { ResolvedPackage } from './resolve.ts';

export interface BundleInputs {
  readonly release: string;
  readonly arch: Arch;
  /** The spec, unchanged. */
  readonly installer: Uint8Array;
  /** Scripts, which come first, in this order. */
  readonly rootFiles: readonly RootFile[];
  /** Index of the archive with the tool for nodes, which comes next. Absent for kURL's own scripts. */
  readonly executable: ArchiveIndex | undefined;
  /** Packages in the order of installation. */
  readonly packages: readonly InputPackage<ResolvedPackage>[];
  /** Packages in addition to the spec. */
  readonly extras?: readonly InputPackage<ResolvedExtra>[] | undefined;
  /** Operating systems whose folders are included; undefined for all. */
  readonly os?: readonly OsId[] | undefined;
  readonly tool: string;
}

interface InputPackage<Resolved> {
  readonly resolved: Resolved;
  readonly index: ArchiveIndex;
  readonly etag?: string | undefined;
}

/** An archive from which ranges are copied. */
export interface PlannedSource {
  /** Key in the store; the file name for the tool for nodes. */
  readonly key: string;
  readonly size: number;
  readonly tocDigest: Digest;
  /** ETag in the store of the plan, for packages. */
  readonly etag?: string | undefined;
}

export interface BundlePlan {
  readonly bundle: BundleJson;
  readonly packages: readonly ResolvedPackage[];
  /** Packages in addition to the spec. */
  readonly extras: readonly ResolvedExtra[];
  /** Indexed by the source numbers in ranges: packages, extra packages, the archive of the tool for nodes. */
  readonly sources: readonly PlannedSource[];
  /** Files that are not in a source. */
  readonly files: readonly RootFile[];
  readonly splice: SplicePlan;
}

/** Plans a bundle. A package that does not match the catalog is `DIGEST_MISMATCH` or `PACKAGE_INVALID`. */
export function planBundle({
  release,
  arch,
  installer,
  rootFiles,
  executable,
  packages,
  extras = [],
  os,
  tool,
}: BundleInputs): BundlePlan {
  const all = [...packages, ...extras];
  for (const { resolved, index } of all) checkPackage(resolved, index);
  const below = executable === undefined ? KURL_FOLDER : undefined;
  const parts = all.map(({ resolved, index }) => keptPart(resolved, index, { kept: os ?? OS_IDS, below }));
  const omitted = parts.reduce((sum, part) => sum + part.omitted, 0);
  const bundle: BundleJson = {
    format: BUNDLE_FORMAT,
    release,
    arch,
    installer: digestOf(installer),
    packages: packages.map(({ resolved }) => described(resolved)),
    ...(executable === undefined ? { layout: 'kurl' as const } : {}),
    ...(extras.length === 0 ? {} : { beside: extras.map(({ resolved }) => described(resolved)) }),
    ...(os === undefined ? {} : { os: { kept: os, omitted } }),
    tool,
  };
  const own: readonly RootFile[] = [
    ...(executable === undefined
      ? []
      : [{ path: BUNDLED_TOOL_SUM, mode: 0o644 as const, data: Buffer.from(sumOf(executable)) }]),
    { path: INSTALLER_YAML, mode: 0o644, data: installer },
    { path: BUNDLE_JSON, mode: 0o644, data: Buffer.from(formatBundleJson(bundle)) },
  ];
  const splice = planSplice([
    ...rootFiles.map((file): SplicePart => ({ kind: 'file', ...file })),
    ...(executable === undefined ? [] : [{ kind: 'archive' as const, source: all.length, index: executable }]),
    ...own.map((file): SplicePart => ({ kind: 'file', ...file })),
    ...parts.flatMap(({ index, select, notes }, source): readonly SplicePart[] => [
      { kind: 'archive', source, index, select, below },
      ...notes.map((file) => ({ kind: 'file', ...file }) as const),
    ]),
  ]);
  return {
    bundle,
    packages: packages.map(({ resolved }) => resolved),
    extras: extras.map(({ resolved }) => resolved),
    sources: [
      ...all.map(({ resolved: { key }, index, etag }) => {
        return { key, size: index.size, tocDigest: index.tocDigest, etag };
      }),
      ...(executable === undefined
        ? []
        : [{ key: packedExecutableName(arch), size: executable.size, tocDigest: executable.tocDigest }]),
    ],
    files: [...rootFiles, ...own, ...parts.flatMap(({ notes }) => notes)],
    splice,
  };
}

function described<Resolved extends ResolvedPackage>(
  resolved: Resolved,
): Omit<Resolved, 'because' | 'key' | 'toc'> & Pick<BundledPackage, 'because'> {
  const { because, key: _key, toc: _toc, ...rest } = resolved;
  // Other reasons follow from what was requested.
  return channelOf(resolved.requested) === undefined ? rest : { ...rest, because };
}

/** Content of the checksum file of the tool, for `sha256sum --check`. */
function sumOf(executable: ArchiveIndex): string {
  const entry = executable.entries.find(({ path }) => path === BUNDLED_TOOL);
  if (entry === undefined)
    throw new CurlewError('PACKAGE_INVALID', `the tool for nodes does not contain ${BUNDLED_TOOL}`);
  return `${hexOf(entry.digest)}  ${basename(BUNDLED_TOOL)}\n`;
}

/**
 * Checks that an index is that of the package in the catalog: the digest of its table of contents identifies the package, and
 * every entry must be under its prefix. Otherwise an entry could imitate another package's file or one of the bundle's own.
 */
export function checkPackage(resolved: ResolvedPackage, index: ArchiveIndex): void {
  const prefix = prefixOf(resolved);
  const stray = index.entries.find(({ path }) => !path.startsWith(prefix));
  if (stray !== undefined) {
    throw new CurlewError('PACKAGE_INVALID', `${resolved.key}: the entry ${stray.path} does not belong to ${prefix}`);
  }
  const files = index.entries.map(({ path, mode, size, digest }) => ({
    path: path.slice(prefix.length),
    mode,
    size,
    digest,
  }));
  const isSame = resolved.toc === undefined || resolved.toc === index.tocDigest;
  if (isSame && packageDigest(files) === resolved.digest) return;
  throw new CurlewError('DIGEST_MISMATCH', `${resolved.key}: not the ${formatRef(resolved)} in the catalog`, {
    hint: 'the object in the store was replaced or damaged: publish the add-on again in a new release',
  });
}

/** The operating systems for which a package of the bundle has a folder. */
export function systemsOfPlan({ bundle, splice }: BundlePlan): ReadonlySet<OsId> {
  const below = bundle.layout === 'kurl' ? KURL_FOLDER : '';
  const systems = splice.index.entries.flatMap(({ path }) => {
    const owner = path.startsWith(below) ? ownerOf(path.slice(below.length)) : undefined;
    return owner === undefined ? [] : (osFolderOf(path.slice(below.length + prefixOf(owner).length)) ?? []);
  });
  return new Set(systems);
}

/** Summary of a plan, for people and scripts. */
export interface PlanSummary {
  readonly release: string;
  readonly arch: Arch;
  readonly packages: readonly ResolvedPackage[];
  readonly beside: readonly ResolvedExtra[];
  /** Bytes of the whole bundle. */
  readonly size: number;
  /** Generated bytes: root files, changed headers, table of contents. */
  readonly fresh: number;
  /** Unpacked bytes of hard links. */
  readonly linked: number;
  /** Packed bytes of images, of all other files, and of the tool for nodes; headers and the table of contents are the rest. */
  readonly contents: { readonly images: number; readonly files: number; readonly executable: number };
  /** For a bundle without the folders of some systems. */
  readonly os?: BundledSystems | undefined;
  /** For a delta: the bundle that it recreates. */
  readonly delta?: DeltaJson | undefined;
  /** Copied ranges, in order; `key` in the store, or the file of the tool for nodes. */
  readonly ranges: readonly { readonly key: string; readonly offset: number; readonly length: number }[];
}

const IMAGE_FILE = /^(?:kurl\/)?(?:addons|packages)\/[^/]+\/[^/]+\/images\//;

export function summarize({ bundle, packages, extras, sources, splice }: BundlePlan): PlanSummary {
  const { release, arch } = bundle;
  const ranges = splice.segments.flatMap((segment) =>
    segment.kind === 'range'
      ? [{ key: sources[segment.source]?.key ?? '', offset: segment.offset, length: segment.length }]
      : [],
  );
  const copied = ranges.reduce((sum, { length }) => sum + length, 0);
  const linked = splice.index.entries.reduce((sum, { size, linkTo }) => sum + (linkTo === undefined ? 0 : size), 0);
  const { size } = splice;
  const contents = { images: 0, executable: 0, files: 0 };
  for (const { path, packed } of splice.index.entries) {
    contents[path === BUNDLED_TOOL ? 'executable' : IMAGE_FILE.test(path) ? 'images' : 'files'] += packed;
  }
  return {
    release,
    arch,
    packages,
    beside: extras,
    size,
    fresh: size - copied,
    linked,
    contents,
    os: bundle.os,
    delta: bundle.delta,
    ranges,
  };
}
