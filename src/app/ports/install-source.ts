/** Where a run takes its packages from: a bundle or an unpacked one; and which of them the spec means. */
import { resolve } from 'node:path';
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import { readIndex, readTocText } from '../../formats/archive/read.ts';
import { parseBundleJson, BUNDLE_JSON_LIMIT, INSTALLER_LIMIT, type BundleJson } from '../../core/bundle.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { ADDON_JSON, BUNDLE_JSON, INSTALLER_YAML, OMITTED_JSON, ownerOf, prefixOf } from '../../core/layout.ts';
import { compareVersions, formatRef, type Arch } from '../../core/ref.ts';
import type { Installer, InstallerAddon } from '../../spec/installer.ts';
import { resolveVersion } from '../../spec/version.ts';
import type { OfferedPackage } from '../../runtime/run/along.ts';
import { judgePlaced } from '../../runtime/node/placed-package.ts';
import type { NotCurrent } from '../../store/release/signed-release.ts';
import type { SourcePackage } from '../../runtime/node/source.ts';
import { folderPackages } from '../../runtime/node/source-folder.ts';
import { judgeArchive } from '../archives/judge-archive.ts';
import { openArchive } from '../archives/open-archive.ts';
import { openBundle } from '../archives/open-bundle.ts';
import { archiveOf } from '../../formats/signing/archive-statement.ts';
import type { Signed, Trust } from './trust.ts';

export interface InstallSource extends AsyncDisposable {
  /** The spec that came with the packages. */
  readonly installerText: string | undefined;
  readonly airgap: boolean;
  /** The release that the packages are of, where that is known. */
  readonly release: string | undefined;
  /** What the store says against that release; absent when it says nothing. */
  readonly notCurrent?: NotCurrent | undefined;
  /** One package for each add-on of the spec, in any order. */
  readonly choose: (installer: Installer) => Promise<readonly SourcePackage[]>;
  /** What may come along beside these packages of the spec. */
  readonly offered: (chosen: readonly SourcePackage[]) => Promise<readonly OfferedPackage[]>;
  /** Notes on this node which version of a signed bundle was seen; for a run, when it has the node's lock. */
  readonly remember?: (() => Promise<void>) | undefined;
}

interface Common {
  readonly cwd: string;
  readonly arch: Arch;
  /** What signatures are held against; undefined when none is asked for. */
  readonly trust: Trust | undefined;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** The index of an archive whose signature holds, where one is asked for: before anything that it says is believed. */
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
    throw new CurlewError('SIGNATURE_INVALID', `verify ${source.name}: it changes while it is read`);
  }
  requireAsSaid(signed, index, source.name);
  return { ...index, signed };
}

/** What an archive is signed as, and what it is, must be the same. */
function requireAsSaid({ statement }: Signed, { entries }: ArchiveIndex, from: string): void {
  if (statement === undefined) return;
  const { role, name } = archiveOf(entries.map(({ path }) => path));
  if (role === statement.role && (name === undefined || name === statement.name)) return;
  throw new CurlewError(
    'SIGNATURE_INVALID',
    `verify ${from}: it is the ${role}${name === undefined ? '' : ` ${name}`}, and signed as the ${statement.role} ${statement.name}`,
    { hint: 'ask who signed it what it is, and to sign it again' },
  );
}

async function nothing(): Promise<void> {}

/** A bundle, a delta or a single package, as one file or in parts. `directory` is the install folder, which has what a delta lacks. */
export async function bundleSource(
  path: string,
  { cwd, arch, trust, report, signal, directory }: Common & { readonly directory: string },
): Promise<InstallSource> {
  const source = await openArchive(resolve(cwd, path), { signal });
  try {
    const checked = await checkedIndex(source, source.whole, { trust, signal });
    const { index, read, requireAll } = await openBundle(source, checked, { directory, signal });
    await requireAll(index.entries.filter(isDocument));
    const accept = (bundle: BundleJson | undefined): void => refuseKurl(bundle, source.name, index !== checked);
    const { packages, bundle, installerText } = await judgeArchive(source, index, { read, accept, signal });
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
          // What is in place already is not extracted.
          if ((await judgePlaced(directory, one, { signal })).digest === undefined) prefixes.push(prefixOf(one.ref));
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

/** What is read of a bundle before anything is chosen. */
function isDocument({ path }: PlacedEntry): boolean {
  const owner = ownerOf(path);
  const own = owner === undefined ? [INSTALLER_YAML, BUNDLE_JSON] : [ADDON_JSON, OMITTED_JSON];
  return own.includes(owner === undefined ? path : path.slice(prefixOf(owner).length));
}

/** A bundle that tar has unpacked. `directory` is the install folder, where an earlier run may have moved packages to. */
export async function unpackedSource(
  path: string,
  { cwd, arch, trust, report, signal, directory }: Common & { readonly directory: string },
): Promise<InstallSource> {
  const folder = resolve(cwd, path);
  let signed: Signed | undefined;
  const check: Trust['check'] | undefined = trust && (async (...about) => (signed = await trust.check(...about)));
  const asked = check && { check };
  const { packages, readRoot } = await folderPackages(folder, { directory, trust: asked, signal });
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

/** What was asked for when the bundle was made waits until a spec names it. */
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
    hint: `${isDelta ? 'make the whole of it with curlew apply, ' : ''}unpack it and run the install.sh in it, or make one without --layout kurl`,
  });
}

interface ChooseOptions {
  readonly bundle: BundleJson | undefined;
  readonly arch: Arch;
  readonly from: string;
  readonly report: Report;
}

/** All add-ons of the spec that cannot be found are told at once. */
function chooseAll(
  installer: Installer,
  packages: readonly SourcePackage[],
  options: ChooseOptions,
): readonly SourcePackage[] {
  for (const listed of [...(options.bundle?.packages ?? []), ...(options.bundle?.beside ?? [])]) {
    const found = packages.find(({ ref }) => formatRef(ref) === formatRef(listed) && ref.tree === listed.tree);
    if (found === undefined || found.addon.digest === listed.digest) continue;
    throw new CurlewError(
      'DIGEST_MISMATCH',
      `${options.from}: ${formatRef(listed)} is not the one of its ${BUNDLE_JSON}`,
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
    hint: first.error.hint ?? 'make a bundle that holds them, or take them out of the spec',
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

/** Without a network only what the bundle holds can be meant: it was made of that package, or takes its place. */
function noteOverride({ name, s3Override }: InstallerAddon, { from, report }: ChooseOptions): void {
  if (s3Override === undefined) return;
  const text = `${name}: the package of ${from} is installed; its s3Override is not fetched`;
  report({ type: 'note', level: 'info', text });
}

/** `listed`: the version that the bundle was made with, whose files an unpacked one loses to the node that installs it. */
function missing(
  { name, requested, s3Override }: InstallerAddon,
  what: string,
  listed: string | undefined,
): CurlewError {
  if (listed !== undefined) {
    return new CurlewError('NOT_FOUND', what, {
      hint: 'its files were moved to the install folder when it was installed from here: unpack the bundle again with tar',
    });
  }
  if (s3Override === undefined) return new CurlewError('NOT_FOUND', what);
  return new CurlewError('NOT_FOUND', `${what}, and its s3Override is not fetched in an airgap install`, {
    hint: `make a bundle that holds ${name} ${requested}, or install with --from`,
  });
}

function chooseOne(
  wanted: InstallerAddon,
  packages: readonly SourcePackage[],
  { bundle, arch, from }: ChooseOptions,
): SourcePackage {
  const { name, requested } = wanted;
  const named = packages.filter(({ ref }) => ref.name === name);
  const listed = bundle?.packages.find((one) => one.name === name && one.requested === requested)?.version;
  if (named.length === 0) throw missing(wanted, `${from}: it holds no package of ${name}`, listed);
  const usable = named.filter(({ addon }) => addon.arch === arch);
  if (usable.length === 0) throw new CurlewError('UNSUPPORTED', `${from}: ${name} is not there for ${arch}`);
  const versions = usable.map(({ ref }) => ref.version).toSorted((a, b) => compareVersions(b, a));
  const version = listed ?? resolveVersion(name, requested, versions).version;
  const found = usable.find(({ ref }) => ref.version === version);
  if (found === undefined) throw missing(wanted, `${from}: it holds no package ${name} ${version}`, listed);
  return found;
}
