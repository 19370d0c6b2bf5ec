/** Compares and merges two locks of an add-on. Pure. */
import type { Arch } from '../core/ref.ts';
import type { LockedFile, LockedHostPackages, LockedImage, ManifestLock } from './lock.ts';

/** A difference between two locks. Undefined on the side without the entry. */
export interface LockChange {
  readonly kind: 'image' | 'asset' | 'package' | 'deps' | 'container-build';
  /** An image id, an asset name, a system and package, or the folder of a build. */
  readonly name: string;
  readonly locked: string | undefined;
  readonly now: string | undefined;
}

/**
 * The differences for one architecture, in the order images, assets, host packages, builds; ignores the other architectures
 * of `locked`. Empty if a build of `now` matches `locked`.
 */
export function lockChanges(locked: ManifestLock, now: ManifestLock, arch: Arch): readonly LockChange[] {
  const platform = `linux/${arch}`;
  const ofArch = (one: { readonly arch: string }): boolean => one.arch === arch;
  return [
    ...pairs('image', locked.images, now.images, ({ id }) => id, imageText(platform)),
    ...pairs(
      'asset',
      locked.assets,
      now.assets,
      ({ name }) => name,
      ({ source, digest }) => `${source} ${digest}`,
    ),
    ...hostChanges(locked.hostPackages.filter(ofArch), now.hostPackages.filter(ofArch)),
    ...pairs(
      'container-build',
      locked.containerBuilds.filter(ofArch),
      now.containerBuilds.filter(ofArch),
      ({ folder, dockerfile }) => `${folder} ${dockerfile}`,
      ({ version, inputs }) => `${version} ${inputs}`,
    ),
  ];
}

/**
 * Adds to `made` the entries of `committed` for other architectures, and for other platforms of unchanged images: the lock to
 * commit after a build for one architecture.
 */
export function mergeLocks(committed: ManifestLock | undefined, made: ManifestLock, arch: Arch): ManifestLock {
  if (committed === undefined) return made;
  const others = <One extends { readonly arch: string }>(
    before: readonly One[],
    now: readonly One[],
  ): readonly One[] => [...before.filter((one) => one.arch !== arch), ...now];
  return {
    ...made,
    images: made.images.map((image) => {
      const before = committed.images.find(({ id }) => id === image.id);
      const same = before?.digest === image.digest && before.reference === image.reference;
      return same ? { ...image, platforms: { ...before.platforms, ...image.platforms } } : image;
    }),
    hostPackages: others(committed.hostPackages, made.hostPackages),
    containerBuilds: others(committed.containerBuilds, made.containerBuilds),
  };
}

function imageText(platform: string): (image: LockedImage) => string {
  return ({ reference, digest, platforms }) => {
    const packed = platforms[platform];
    return packed === undefined
      ? `${reference} not resolved for ${platform}`
      : `${reference} ${digest} ${packed.digest}`;
  };
}

function hostChanges(locked: readonly LockedHostPackages[], now: readonly LockedHostPackages[]): readonly LockChange[] {
  const files = (all: readonly LockedHostPackages[]): readonly (LockedFile & { readonly os: string })[] =>
    all.flatMap(({ os, files }) => files.map((file) => ({ ...file, os })));
  const versionText = ({ version, digest }: LockedFile): string => `${version} ${digest}`;
  return [
    ...pairs('package', files(locked), files(now), ({ os, name, arch }) => `${os} ${name}.${arch}`, versionText),
    ...pairs(
      'deps',
      locked,
      now,
      ({ os }) => os,
      ({ required }) => required.join(' '),
    ),
  ];
}

function pairs<One>(
  kind: LockChange['kind'],
  locked: readonly One[],
  now: readonly One[],
  nameOf: (one: One) => string,
  textOf: (one: One) => string,
): readonly LockChange[] {
  const before = new Map(locked.map((one) => [nameOf(one), textOf(one)] as const));
  const after = new Map(now.map((one) => [nameOf(one), textOf(one)] as const));
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const change = { kind, name, locked: before.get(name), now: after.get(name) };
    return change.locked === change.now ? [] : [change];
  });
}
