/** The components of a package: the entries of its lock, checked against its files. Pure. */
import type { Digest } from '../../core/digest.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { parseImageRef } from '../../core/image-ref.ts';
import { MANIFEST_LOCK, packagePath, prefixOf } from '../../core/layout.ts';
import { isOsId, type OsId } from '../../core/os.ts';
import { type AddonJson, type PackageFile, refOf } from '../../core/package.ts';
import type { LockedAsset, LockedFile, LockedImage, ManifestLock } from '../../manifest/lock.ts';
import { formatPurl } from './purl.ts';

/** A package whose `addon.json` is checked against its files. */
export interface DescribedPackage {
  readonly addon: AddonJson;
  /** Relative to the package's prefix. */
  readonly files: readonly PackageFile[];
  /** Folders of operating systems that a bundle leaves out. */
  readonly omitted: readonly OsId[];
  readonly lock: ManifestLock;
}

export interface Component {
  readonly kind: 'image' | 'host package' | 'asset' | 'built file';
  readonly name: string;
  readonly version: string | undefined;
  /** Contains the digest: components with the same purl are equal. */
  readonly purl: string;
  /** Digest of the file; for an image, of its manifest for the package's platform. */
  readonly digest: Digest;
  /** Source address, without user info and query. */
  readonly url: string | undefined;
}

/** A hundred times as many as in the largest real bundles; a larger SBOM would need a gigabyte of memory. */
export const MAX_COMPONENTS = 100_000;

/**
 * Images, host packages, assets, and the output of container builds, in this order, by the lock, without those of systems that
 * a bundle leaves out. `PACKAGE_INVALID` for a lock that names anything else that is not in the package.
 */
export function componentsOf({ addon, files, omitted, lock }: DescribedPackage): readonly Component[] {
  const bad = badLock(addon);
  if (hasLoneSurrogates([lock, addon.tool])) throw bad('it contains text that is not valid Unicode');
  const paths = new Set<string>(files.map(({ path }) => path));
  const digests = new Set<Digest>(files.map(({ digest }) => digest));
  const requireIncluded = (component: Component, isIncluded: boolean = digests.has(component.digest)): Component => {
    if (!isIncluded) throw bad(`${component.name} is not in the package`);
    return component;
  };
  const images = lock.images.map((image) => {
    const component = imageComponent(image, addon, bad);
    // An archive of docker save has its own digest, not that of its image.
    return requireIncluded(
      component,
      addon.imageFormat === 'oci' ? undefined : paths.has(packagePath.dockerArchive(image.id)),
    );
  });
  const ours = lock.hostPackages.filter(
    ({ os, arch }) => arch === addon.arch && !omitted.some((folder) => folder === os),
  );
  const packages = ours.flatMap(({ os, files: locked }) => locked.map((file) => hostPackageComponent(file, os)));
  const assets = lock.assets.map(assetComponent);
  const fetched = [...packages, ...assets].map((component) => requireIncluded(component));
  const components = [...images, ...fetched, ...builtFiles(files, lock)];
  const nameless = components.find(({ name }) => name === '');
  if (nameless !== undefined) throw bad(`a component of the kind ${nameless.kind} has no name`);
  return components;
}

/** True for data with lone surrogates, which JSON parsers in other languages reject. */
export function hasLoneSurrogates(value: unknown): boolean {
  if (typeof value === 'string') return /[\ud800-\udfff]/u.test(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(hasLoneSurrogates);
}

type Bad = (what: string) => CurlewError;

function badLock(addon: AddonJson): Bad {
  const path = `${prefixOf(refOf(addon))}${MANIFEST_LOCK}`;
  return (what) =>
    new CurlewError('PACKAGE_INVALID', `cannot read ${path}: ${what}`, { hint: 'build or fetch the package again' });
}

function imageComponent({ id, reference, platforms }: LockedImage, { arch }: AddonJson, bad: Bad): Component {
  const [platform, packed] = Object.entries(platforms).find(([name]) => name.split('/')[1] === arch) ?? [];
  if (platform === undefined || packed === undefined) throw bad(`the image ${id} is missing for ${arch}`);
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
  // An epoch is part of a Debian version, but a separate field of an rpm.
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

/** Files of container builds are directly in the folder of their system; host packages are in subfolders, Deps has only names. */
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
  /** `ID` of the repositories that the packages come from, not of the system that installs them. */
  readonly id: string;
  /** `VERSION_ID`; for rebuilds, only the major version. */
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

/** Undefined for an unknown folder. */
function distroOf(os: string): Distro | undefined {
  return isOsId(os) ? DISTROS[os] : undefined;
}
