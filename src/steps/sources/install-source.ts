/** Package sources of runs: a bundle, packed or unpacked; and the choice of packages for a spec. */
import { resolve } from 'node:path';
import type { Reporting } from '../../core/cancellable.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import { readIndex, readTocText } from '../../formats/archive/read.ts';
import { parseBundleJson, BUNDLE_JSON_LIMIT, INSTALLER_LIMIT, type BundleJson } from '../../core/bundle.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { nearest } from '../../core/nearest.ts';
import { ADDON_JSON, BUNDLE_JSON, INSTALLER_YAML, OMITTED_JSON, ownerOf, prefixOf } from '../../core/layout.ts';
import { compareVersions, formatRef, type Arch } from '../../core/ref.ts';
import type { Installer, InstallerAddon } from '../../spec/installer.ts';
import { resolveVersion } from '../../spec/version.ts';
import type { OfferedPackage, SourcePackage } from '../../runtime/node/source.ts';
import { checkPlaced } from '../../runtime/node/placed-package.ts';
import type { NotCurrent } from '../../ship/release/signed-release.ts';
import { folderPackages, type FolderOptions, type FolderPackages } from '../../runtime/node/source-folder.ts';
import { checkArchive } from '../archives/check-archive.ts';
import { openArchive } from '../../ship/bundle/open-archive.ts';
import { openBundle } from '../archives/open-bundle.ts';
import { archiveOf } from '../../formats/signing/archive-statement.ts';
import type { Signed, Trust } from '../open/trust.ts';

export interface InstallSource extends AsyncDisposable {
  /** The spec in the source. */
  readonly installerText: string | undefined;
  readonly airgap: boolean;
  /** The release of the packages, if known. */
  readonly release: string | undefined;
  /** Set if the release is not the current one of the store. */
  readonly notCurrent?: NotCurrent | undefined;
  /** One package for each add-on of the spec, in any order. */
  readonly choose: (installer: Installer) => Promise<readonly SourcePackage[]>;
  /** Companion packages for these packages of the spec. */
  readonly offered: (chosen: readonly SourcePackage[]) => Promise<readonly OfferedPackage[]>;
  /** Records the version of a signed bundle on this node; call it only with the node's lock. */
  readonly remember?: (() => Promise<void>) | undefined;
}

export interface Common extends Reporting {
  readonly cwd: string;
  readonly arch: Arch;
  /** Verifies signatures; undefined if none are required. */
  readonly trust: Trust | undefined;
}

/** The index of an archive, after its signature is verified if one is required. */
export async function checkedIndex(
  source: RangeSource,
  path: string,
  { trust, signal }: Pick<Common, 'trust' | 'signal'>,
): Promise<ArchiveIndex & { readonly signed: Signed | undefined }> {
  if (trust === undefined) return { ...(await readIndex(source, { signal })), signed: undefined };
  const text = await readTocText(source, { signal });
  const signed = await trust.check(source.name, text, path);
  const index = await readIndex(source, { signal });
  if (index.tocDigest !== digestOf(text)) {
    throw new CurlewError('SIGNATURE_INVALID', `cannot verify ${source.name}: it changed while it was being read`);
  }
  requireSignedRole(signed, index, source.name);
  return { ...index, signed };
}

/** Role and name in the signature must be those of the archive. */
function requireSignedRole({ statement }: Signed, { entries }: ArchiveIndex, from: string): void {
  if (statement === undefined) return;
  const { role, name } = archiveOf(entries.map(({ path }) => path));
  if (role === statement.role && (name === undefined || name === statement.name)) return;
  throw new CurlewError(
    'SIGNATURE_INVALID',
    `cannot verify ${from}: it is the ${role}${name === undefined ? '' : ` ${name}`}, but signed as the ${statement.role} ${statement.name}`,
    { hint: 'ask the signer to check it and sign it again' },
  );
}

async function nothing(): Promise<void> {}

/** A bundle, a delta or a single package, as one file or in parts. `directory` is the install folder, the base of a delta. */
export async function bundleSource(
  path: string,
  { cwd, arch, trust, report, signal, directory }: Common & { readonly directory: string },
): Promise<InstallSource> {
  const source = await openArchive(resolve(cwd, path), { signal, shown: path, folders: ['--dir', '--from'] });
  try {
    const checked = await checkedIndex(source, source.whole, { trust, signal });
    const { index, read, requireAll } = await openBundle(source, checked, { directory, signal });
    await requireAll(index.entries.filter(isDocument));
    const accept = (bundle: BundleJson | undefined): void => refuseKurl(bundle, source.name, index !== checked);
    const { packages, bundle, installerText } = await checkArchive(source, index, { read, accept, signal });
    const offered = offeredOf(bundle, packages, arch);
    return {
      installerText: await installerText(),
      airgap: true,
      release: bundle?.release,
      choose: async (installer) => {
        const chosen = chooseAll(installer, packages, { bundle, arch, from: source.name, report });
        if (index === checked) return chosen;
        const prefixes: string[] = [];
        for (const one of [...chosen, ...offered.map(({ source }) => source)]) {
          // Packages that are in place are not extracted.
          if ((await checkPlaced(directory, one, { signal })).digest === undefined) prefixes.push(prefixOf(one.ref));
        }
        await requireAll(index.entries.filter((entry) => prefixes.some((prefix) => entry.path.startsWith(prefix))));
        return chosen;
      },
      offered: async () => offered,
      remember: checked.signed?.remember,
      [Symbol.asyncDispose]: async () => source[Symbol.asyncDispose](),
    };
  } catch (error) {
    await source[Symbol.asyncDispose]();
    throw error;
  }
}

/** Metadata of a bundle, which is read before packages are chosen. */
function isDocument({ path }: PlacedEntry): boolean {
  const owner = ownerOf(path);
  const own = owner === undefined ? [INSTALLER_YAML, BUNDLE_JSON] : [ADDON_JSON, OMITTED_JSON];
  return own.includes(owner === undefined ? path : path.slice(prefixOf(owner).length));
}

/** The packages of an unpacked bundle, after its signature is verified if one is required. */
export async function openUnpacked(
  folder: string,
  { trust, ...options }: Omit<FolderOptions, 'trust'> & Pick<Common, 'trust'>,
): Promise<FolderPackages & { readonly signed: Signed | undefined }> {
  const signed: Signed[] = [];
  const check: Trust['check'] | undefined =
    trust &&
    (async (...about) => {
      const one = await trust.check(...about);
      signed.push(one);
      return one;
    });
  const opened = await folderPackages(folder, { ...options, trust: check && { check } });
  for (const one of signed) requireSignedRole(one, opened.index, folder);
  return { ...opened, signed: signed[0] };
}

/**
 * A bundle that was unpacked with tar. An earlier run may have moved packages to `directory`, the install folder; `stays`: this one
 * moves none.
 */
export async function unpackedSource(
  path: string,
  { cwd, arch, trust, report, signal, directory, stays }: Common & Pick<FolderOptions, 'directory' | 'stays'>,
): Promise<InstallSource> {
  const folder = resolve(cwd, path);
  const { packages, readRoot, signed } = await openUnpacked(folder, { directory, stays, trust, signal });
  const text = await readRoot(BUNDLE_JSON, BUNDLE_JSON_LIMIT);
  const bundle = text === undefined ? undefined : parseBundleJson(text, folder);
  refuseKurl(bundle, folder, false);
  return {
    installerText: await readRoot(INSTALLER_YAML, INSTALLER_LIMIT),
    airgap: true,
    release: bundle?.release,
    choose: async (installer) => chooseAll(installer, packages, { bundle, arch, from: folder, report }),
    offered: async () => offeredOf(bundle, packages, arch),
    remember: signed?.remember,
    [Symbol.asyncDispose]: nothing,
  };
}

/** Companion packages of a bundle. Packages that were added with `--with` are used only if a spec names them. */
function offeredOf(
  bundle: BundleJson | undefined,
  packages: readonly SourcePackage[],
  arch: Arch,
): readonly OfferedPackage[] {
  return (bundle?.beside ?? []).flatMap((listed) => {
    const { role } = listed;
    const source = packages.find(({ ref }) => prefixOf(ref) === prefixOf(listed));
    if (role === 'asked' || source?.addon.arch !== arch) return [];
    return [{ source, role }];
  });
}

function refuseKurl(bundle: BundleJson | undefined, from: string, isDelta: boolean): void {
  if (bundle?.layout === undefined) return;
  throw new CurlewError('UNSUPPORTED', `${from}: this bundle is for kURL's own scripts`, {
    hint: `${isDelta ? 'create the whole bundle with curlew apply, ' : ''}unpack it and run its install.sh, or create a bundle without --layout kurl`,
  });
}

interface ChooseOptions {
  readonly bundle: BundleJson | undefined;
  readonly arch: Arch;
  readonly from: string;
  readonly report: Report;
}

/** Reports all add-ons of the spec that cannot be found at once. */
export function chooseAll(
  installer: Installer,
  packages: readonly SourcePackage[],
  options: ChooseOptions,
): readonly SourcePackage[] {
  for (const listed of [...(options.bundle?.packages ?? []), ...(options.bundle?.beside ?? [])]) {
    const present = packages.find(({ ref }) => formatRef(ref) === formatRef(listed) && ref.tree === listed.tree);
    if (present === undefined || present.addon.digest === listed.digest) continue;
    throw new CurlewError(
      'DIGEST_MISMATCH',
      `${options.from}: ${formatRef(listed)} is not the package that ${BUNDLE_JSON} lists`,
    );
  }
  const failures: { readonly addon: InstallerAddon; readonly error: CurlewError }[] = [];
  const chosen: SourcePackage[] = [];
  for (const addon of installer.addons) {
    try {
      chosen.push(chooseOne(addon, packages, options));
      noteOverride(addon, options);
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      failures.push({ addon, error });
    }
  }
  const [first] = failures;
  if (first === undefined) return chosen;
  throw new CurlewError(first.error.code, failures.map(({ error }) => error.message).join('; '), {
    hint: first.error.hint ?? 'create a bundle that contains them, or remove them from the spec',
    diagnostics: failures.map(({ addon, error }) => {
      return {
        code: 'installer/unresolved',
        severity: 'error',
        message: error.message,
        place: addon.requestedBy ?? addon.place,
      };
    }),
  });
}

/** An airgap install cannot fetch an s3Override: the package in the bundle replaces it. */
function noteOverride({ name, s3Override }: InstallerAddon, { from, report }: ChooseOptions): void {
  if (s3Override === undefined) return;
  const text = `${name}: the package of ${from} is installed; its s3Override is not fetched`;
  report({ type: 'note', level: 'info', text });
}

/** `listed`: the version in bundle.json; an earlier install may have moved its files away. */
function missing(
  { name, requested, s3Override }: InstallerAddon,
  what: string,
  listed: string | undefined,
  near?: string,
): CurlewError {
  if (listed !== undefined) {
    return new CurlewError('NOT_FOUND', what, {
      hint: 'an install from this folder has moved its files to the install folder: unpack the bundle again with tar',
    });
  }
  if (s3Override === undefined)
    return new CurlewError('NOT_FOUND', what, { hint: near === undefined ? undefined : `did you mean "${near}"?` });
  return new CurlewError('NOT_FOUND', `${what}, and its s3Override is not fetched in an airgap install`, {
    hint: `create a bundle that contains ${name} ${requested}, or install with --from`,
  });
}

function chooseOne(
  requestedAddon: InstallerAddon,
  packages: readonly SourcePackage[],
  { bundle, arch, from }: ChooseOptions,
): SourcePackage {
  const { name, requested } = requestedAddon;
  const named = packages.filter(({ ref }) => ref.name === name);
  const listed = bundle?.packages.find((one) => one.name === name && one.requested === requested)?.version;
  if (named.length === 0) {
    const near = nearest(
      name,
      packages.map(({ ref }) => ref.name),
    );
    throw missing(requestedAddon, `${from}: it has no package of ${name}`, listed, near);
  }
  const usable = named.filter(({ addon }) => addon.arch === arch);
  if (usable.length === 0) {
    throw new CurlewError('UNSUPPORTED', `${from}: it has no package of ${name} for ${arch}`, {
      hint: `use a bundle that was made with --arch ${arch}, or install on a machine that is ${named[0]?.addon.arch ?? ''}`,
    });
  }
  const versions = usable.map(({ ref }) => ref.version).toSorted((a, b) => compareVersions(b, a));
  const version = listed ?? resolveVersion(name, requested, versions).version;
  const chosen = usable.find(({ ref }) => ref.version === version);
  if (chosen === undefined) throw missing(requestedAddon, `${from}: it has no package ${name} ${version}`, listed);
  return chosen;
}
