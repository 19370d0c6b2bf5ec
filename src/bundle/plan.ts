/**
 * A bundle as an ordered list of bytes and ranges. Pure: the plan is made from the indexes of the packages alone, and
 * equal plans give equal bytes, whoever carries them out.
 */
import { basename } from 'node:path';
import type { ArchiveIndex } from '../formats/archive/entry.ts';
import { planSplice, type SplicePart, type SplicePlan } from '../formats/archive/splice.ts';
import {
  formatBundleJson,
  BUNDLE_FORMAT,
  type BundledSystems,
  type BundleJson,
  type DeltaJson,
} from '../core/bundle.ts';
import { digestOf, hexOf, type Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import {
  BUNDLE_JSON,
  BUNDLED_TOOL,
  BUNDLED_TOOL_SUM,
  INSTALLER_YAML,
  KURL_FOLDER,
  ownerOf,
  packedExecutableName,
  prefixOf,
} from '../core/layout.ts';
import { osFolderOf } from '../core/omitted.ts';
import { OS_IDS, type OsId } from '../core/os.ts';
import { packageDigest } from '../core/package.ts';
import { formatRef, type Arch } from '../core/ref.ts';
import type { ResolvedBeside } from './beside.ts';
import { keptPart, type RootFile } from './other-systems.ts';
import type { ResolvedPackage } from './resolve.ts';

export interface BundleInputs {
  readonly release: string;
  readonly arch: Arch;
  /** Bytes of the spec, as they are. */
  readonly installer: Uint8Array;
  /** Scripts; they come first, in this order. */
  readonly rootFiles: readonly RootFile[];
  /** Of the archive that holds the tool for nodes of this architecture: it comes next. Absent for kURL's own scripts. */
  readonly executable: ArchiveIndex | undefined;
  /** In the order of installation, with the index of each. */
  readonly packages: readonly InputPackage<ResolvedPackage>[];
  /** Those that the spec does not name. */
  readonly beside?: readonly InputPackage<ResolvedBeside>[] | undefined;
  /** Folders of operating systems that stay; the others are left out. Undefined: all stay. */
  readonly os?: readonly OsId[] | undefined;
  readonly tool: string;
}

interface InputPackage<Resolved> {
  readonly resolved: Resolved;
  readonly index: ArchiveIndex;
  readonly etag?: string | undefined;
}

/** An archive that ranges are copied from. */
export interface PlannedSource {
  /** In the store; the file's name for that of the tool for nodes. */
  readonly key: string;
  readonly size: number;
  readonly tocDigest: Digest;
  /** In the store of the plan, for packages. */
  readonly etag?: string | undefined;
}

export interface BundlePlan {
  readonly bundle: BundleJson;
  readonly packages: readonly ResolvedPackage[];
  /** Those that the spec does not name. */
  readonly beside: readonly ResolvedBeside[];
  /** By the numbers that ranges have: the packages, those beside the spec, the archive of the tool for nodes. */
  readonly sources: readonly PlannedSource[];
  /** What is in no source. */
  readonly files: readonly RootFile[];
  readonly splice: SplicePlan;
}

/** Lays out a bundle. A package that is not what the catalogue says is `DIGEST_MISMATCH` or `PACKAGE_INVALID`. */
export function planBundle({
  release,
  arch,
  installer,
  rootFiles,
  executable,
  packages,
  beside = [],
  os,
  tool,
}: BundleInputs): BundlePlan {
  const all = [...packages, ...beside];
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
    ...(beside.length === 0 ? {} : { beside: beside.map(({ resolved }) => described(resolved)) }),
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
    beside: beside.map(({ resolved }) => resolved),
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

function described<Resolved extends ResolvedPackage>(resolved: Resolved): Omit<Resolved, 'because' | 'key' | 'toc'> {
  const { because: _because, key: _key, toc: _toc, ...rest } = resolved;
  return rest;
}

/** What `sha256sum --check` is given beside the tool. */
function sumOf(executable: ArchiveIndex): string {
  const entry = executable.entries.find(({ path }) => path === BUNDLED_TOOL);
  if (entry === undefined) throw new CurlewError('PACKAGE_INVALID', `the tool for nodes: there is no ${BUNDLED_TOOL}`);
  return `${hexOf(entry.digest)}  ${basename(BUNDLED_TOOL)}\n`;
}

/**
 * The index must be that of the package that the catalogue names: the digest over its table of contents is the package's
 * identity, and no entry may lie outside its prefix, where it would pass for another package's or the bundle's own.
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
  throw new CurlewError('DIGEST_MISMATCH', `${resolved.key}: not the ${formatRef(resolved)} of the catalogue`, {
    hint: 'the object in the store was replaced or damaged: publish the add-on again in a new release',
  });
}

/** The systems that any package of the bundle has something for. */
export function systemsOfPlan({ bundle, splice }: BundlePlan): ReadonlySet<OsId> {
  const below = bundle.layout === 'kurl' ? KURL_FOLDER : '';
  const found = splice.index.entries.flatMap(({ path }) => {
    const owner = path.startsWith(below) ? ownerOf(path.slice(below.length)) : undefined;
    return owner === undefined ? [] : (osFolderOf(path.slice(below.length + prefixOf(owner).length)) ?? []);
  });
  return new Set(found);
}

/** A plan in numbers and without bytes, for people and scripts. */
export interface PlanSummary {
  readonly release: string;
  readonly arch: Arch;
  readonly packages: readonly ResolvedPackage[];
  readonly beside: readonly ResolvedBeside[];
  /** Bytes of the whole bundle. */
  readonly size: number;
  /** Bytes made anew: root files, changed headers, table of contents. */
  readonly fresh: number;
  /** Unpacked bytes that are there only as hard links. */
  readonly linked: number;
  /** Of a bundle without the folders of some systems. */
  readonly os?: BundledSystems | undefined;
  /** Of a delta: the bundle that it makes. */
  readonly delta?: DeltaJson | undefined;
  /** What is copied, in order; `key` in the store, or the file of the tool for nodes. */
  readonly ranges: readonly { readonly key: string; readonly offset: number; readonly length: number }[];
}

export function summarise({ bundle, packages, beside, sources, splice }: BundlePlan): PlanSummary {
  const { release, arch } = bundle;
  const ranges = splice.segments.flatMap((segment) =>
    segment.kind === 'range'
      ? [
          {
            key: sources[segment.source]?.key ?? '',
            offset: segment.offset,
            length: segment.length,
          },
        ]
      : [],
  );
  const copied = ranges.reduce((sum, { length }) => sum + length, 0);
  const linked = splice.index.entries.reduce((sum, { size, linkTo }) => sum + (linkTo === undefined ? 0 : size), 0);
  const { size } = splice;
  return {
    release,
    arch,
    packages,
    beside,
    size,
    fresh: size - copied,
    linked,
    os: bundle.os,
    delta: bundle.delta,
    ranges,
  };
}
