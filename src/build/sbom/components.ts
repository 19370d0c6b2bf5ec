/** What a package is made of: what its lock says, held against its files. Pure. */
import type { Digest } from '../../core/digest.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { parseImageRef } from '../../core/image-ref.ts';
import { MANIFEST_LOCK, packagePath, prefixOf } from '../../core/layout.ts';
import { isOsId, type OsId } from '../../core/os.ts';
import { type AddonJson, type PackageFile, refOf } from '../../core/package.ts';
import type { LockedAsset, LockedFile, LockedImage, ManifestLock } from '../../manifest/lock.ts';
import { formatPurl } from './purl.ts';

/** A package whose `addon.json` has been held against its files. */
export interface DescribedPackage {
  readonly addon: AddonJson;
  /** Below the package's prefix. */
  readonly files: readonly PackageFile[];
  /** Folders of operating systems that a bundle left out of it. */
  readonly omitted: readonly OsId[];
  readonly lock: ManifestLock;
}

export interface Component {
  readonly kind: 'image' | 'host package' | 'asset' | 'built file';
  readonly name: string;
  readonly version: string | undefined;
  /** Holds the digest: components of one purl are the same. */
  readonly purl: string;
  /** Of the file; of an image's manifest for the package's platform. */
  readonly digest: Digest;
  /** Where it was fetched from, without user info and query. */
  readonly url: string | undefined;
}

/** A hundred times what the largest real bundles have; an SBOM of more is held in a gigabyte of memory. */
export const MOST_COMPONENTS = 100_000;

/**
 * Images, host packages, assets, and the files that container builds left, in this order, as the lock has them, without
 * those of systems that a bundle left out. A lock that names anything else that is not in the package is `PACKAGE_INVALID`.
 */
export function componentsOf({ addon, files, omitted, lock }: DescribedPackage): readonly Component[] {
  const bad = badLock(addon);
  if (holdsHalves([lock, addon.tool])) throw bad('it holds text that is not valid Unicode');
  const paths = new Set<string>(files.map(({ path }) => path));
  const held = new Set<Digest>(files.map(({ digest }) => digest));
  const requireHeld = (component: Component, isHeld: boolean = held.has(component.digest)): Component => {
    if (!isHeld) throw bad(`${component.name} is not in the package`);
    return component;
  };
  const images = lock.images.map((image) => {
    const component = imageComponent(image, addon, bad);
    // An archive of docker save has a digest of its own, and none of its image.
    return requireHeld(
      component,
      addon.imageFormat === 'oci' ? undefined : paths.has(packagePath.dockerArchive(image.id)),
    );
  });
  const ours = lock.hostPackages.filter(
    ({ os, arch }) => arch === addon.arch && !omitted.some((folder) => folder === os),
  );
  const packages = ours.flatMap(({ os, files: locked }) => locked.map((file) => hostPackageComponent(file, os)));
  const assets = lock.assets.map(assetComponent);
  const fetched = [...packages, ...assets].map((component) => requireHeld(component));
  const found = [...images, ...fetched, ...builtFiles(files, lock)];
  const nameless = found.find(({ name }) => name === '');
  if (nameless !== undefined) throw bad(`a component of the kind ${nameless.kind} has no name`);
  return found;
}

/** True for data with half a character somewhere, which readers of JSON in other languages refuse. */
export function holdsHalves(value: unknown): boolean {
  if (typeof value === 'string') return /[\ud800-\udfff]/u.test(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsHalves);
}

type Bad = (what: string) => CurlewError;

function badLock(addon: AddonJson): Bad {
  const path = `${prefixOf(refOf(addon))}${MANIFEST_LOCK}`;
  return (what) =>
    new CurlewError('PACKAGE_INVALID', `read ${path}: ${what}`, { hint: 'build or fetch the package again' });
}

function imageComponent({ id, reference, platforms }: LockedImage, { arch }: AddonJson, bad: Bad): Component {
  const [platform, packed] = Object.entries(platforms).find(([name]) => name.split('/')[1] === arch) ?? [];
  if (platform === undefined || packed === undefined) throw bad(`the image ${id} is not there for ${arch}`);
  const ref = parseImageRef(reference);
  if (typeof ref === 'string') throw bad(`the image ${id}: ${ref}`);
  const { digest } = packed;
  const repository = `${ref.registry}/${ref.repository}`;
  const qualifiers = { arch, repository_url: repository, tag: ref.tag };
  const name = repository.slice(repository.lastIndexOf('/') + 1);
  const purl = formatPurl({ type: 'oci', name, version: digest, qualifiers });
  return { kind: 'image', name: repository, version: ref.tag ?? digest, purl, digest, url: undefined };
}

function hostPackageComponent({ file, name, version, arch, digest, repository }: LockedFile, os: string): Component {
  const type = file.endsWith('.deb') ? 'deb' : 'rpm';
  const distro = distroOf(os);
  // An epoch is part of a Debian version, and of an rpm's a field of its own.
  const [, epoch, rest = version] = type === 'rpm' ? (/^(\d+):(.*)$/s.exec(version) ?? []) : [];
  const purl = formatPurl({
    type,
    namespace: distro?.id,
    name,
    version: rest,
    qualifiers: {
      arch,
      checksum: digest,
      distro: distro === undefined ? os : `${distro.id}-${distro.version}`,
      epoch: epoch === '0' ? undefined : epoch,
    },
  });
  return { kind: 'host package', name, version, purl, digest, url: webUrl(repository) };
}

function assetComponent({ name, source, digest }: LockedAsset): Component {
  const url = webUrl(source);
  const purl = filePurl(name, digest, url);
  return { kind: 'asset', name, version: undefined, purl, digest, url };
}

/** What a build leaves lies flat in the folder of its system; host packages are deeper, names of others stand in Deps. */
function builtFiles(files: readonly PackageFile[], { containerBuilds }: ManifestLock): readonly Component[] {
  const folders = new Set(containerBuilds.map(({ folder }) => folder));
  return files
    .filter(({ path }) => {
      const [folder = '', name, deeper] = path.split('/');
      return folders.has(folder) && name !== undefined && deeper === undefined && path !== packagePath.deps(folder);
    })
    .map(({ path, digest }): Component => {
      return {
        kind: 'built file',
        name: path,
        version: undefined,
        purl: filePurl(path, digest),
        digest,
        url: undefined,
      };
    });
}

function filePurl(name: string, digest: Digest, url?: string): string {
  return formatPurl({ type: 'generic', name, qualifiers: { checksum: digest, download_url: url } });
}

function webUrl(text: string): string | undefined {
  return /^https?:\/\//i.test(text) && URL.canParse(text) ? redact(text) : undefined;
}

interface Distro {
  /** `ID`; the repositories that the packages were fetched from decide, not the system that takes them. */
  readonly id: string;
  /** `VERSION_ID`, of rebuilds only what counts for a whole release. */
  readonly version: string;
}

const DISTROS: Readonly<Record<OsId, Distro>> = {
  'ubuntu-16.04': { id: 'ubuntu', version: '16.04' },
  'ubuntu-18.04': { id: 'ubuntu', version: '18.04' },
  'ubuntu-20.04': { id: 'ubuntu', version: '20.04' },
  'ubuntu-22.04': { id: 'ubuntu', version: '22.04' },
  'ubuntu-24.04': { id: 'ubuntu', version: '24.04' },
  'ubuntu-26.04': { id: 'ubuntu', version: '26.04' },
  'rhel-7': { id: 'centos', version: '7' },
  'rhel-7-force': { id: 'centos', version: '7' },
  'rhel-8': { id: 'rocky', version: '8' },
  'rhel-9': { id: 'rocky', version: '9' },
  'ol-7': { id: 'ol', version: '7' },
  'amazon-2023': { id: 'amzn', version: '2023' },
};

/** Undefined for a folder that this version does not know. */
function distroOf(os: string): Distro | undefined {
  return isOsId(os) ? DISTROS[os] : undefined;
}
