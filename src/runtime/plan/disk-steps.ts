/** The disk space that the actions of a plan use and free, in their order. Pure. */
import type { ImageFormat, PackageFile } from '../../core/package.ts';
import { sizeOnDisk, type DiskStep } from './disk.ts';
import type { RunPlan } from './run-plan.ts';

/** A package and its disk usage. */
export interface PackageRoom {
  readonly addon: string;
  readonly files: readonly PackageFile[];
  readonly imageFormat: ImageFormat;
  /** Bytes to fetch; 0 for a package on this machine. */
  readonly fetched: number;
  /** Its files are hard-linked into the install folder, not copied. */
  readonly moved: boolean;
}

export interface ImageRoom {
  /** Absolute path of the container runtime's image folder. */
  readonly root: string;
  /** Bytes of image data that the runtime does not have, in the format of the package; by add-on. */
  readonly missing: ReadonlyMap<string, number>;
}

export interface RoomPlaces {
  /** The install folder. */
  readonly directory: string;
  /** Bytes that an interrupted run has left in it, which are removed or reused. */
  readonly leftOvers: number;
  /** Undefined if no images are loaded. */
  readonly images: ImageRoom | undefined;
}

/** Layers of real images are two to three times as large once they are unpacked. */
const UNPACKED = 2.5;
/** Factor for the bytes in the package: a runtime keeps them as they are and unpacked. */
const IMAGE_FACTOR: Readonly<Record<ImageFormat, number>> = {
  oci: 1 + UNPACKED,
  // Layers of a docker archive are not compressed, and are kept uncompressed.
  'docker-archive': 2 * UNPACKED,
};

export function diskSteps(
  { actions }: Pick<RunPlan, 'actions'>,
  packages: readonly PackageRoom[],
  { directory, leftOvers, images }: RoomPlaces,
): readonly DiskStep[] {
  const steps = actions.flatMap(({ kind, addon }): readonly DiskStep[] => {
    const found = packages.find((one) => one.addon === addon);
    if (found === undefined) return [];
    const fetched = fetchStep(found, directory);
    if (kind === 'fetch') return [fetched];
    // The fetched file is removed when its package is in place.
    if (kind === 'extract') {
      const extracted = extractStep(found, directory);
      return fetched.bytes === 0 ? [extracted] : [extracted, { ...fetched, bytes: -fetched.bytes, files: -1 }];
    }
    return kind === 'images' && images !== undefined ? imageSteps(found, images) : [];
  });
  const because = 'left by a run that was interrupted';
  const before = { path: directory, use: 'left-overs', addon: '', bytes: -leftOvers, files: 0, because } as const;
  return leftOvers === 0 ? steps : [before, ...steps];
}

function fetchStep({ addon, fetched }: PackageRoom, path: string): DiskStep {
  return { path, use: 'fetched package', addon, bytes: fetched, files: 1, because: 'kept until it is extracted' };
}

function extractStep({ addon, files, moved }: PackageRoom, path: string): DiskStep {
  // tar writes equal files as one file with many links; those are copied.
  const copied = moved ? files.filter(occursTwice(files)) : files;
  const because = moved ? 'its files are moved, not copied' : 'the former files stay until the new ones are complete';
  return { path, use: 'package', addon, ...sizeOnDisk(copied), because };
}

function occursTwice(files: readonly PackageFile[]): (file: PackageFile) => boolean {
  const counts = new Map<PackageFile['digest'], number>();
  for (const { digest } of files) counts.set(digest, (counts.get(digest) ?? 0) + 1);
  return ({ digest }) => (counts.get(digest) ?? 0) > 1;
}

function imageSteps({ addon, imageFormat }: PackageRoom, { root, missing }: ImageRoom): readonly DiskStep[] {
  const packed = missing.get(addon) ?? 0;
  if (packed === 0) return [];
  const factor = IMAGE_FACTOR[imageFormat];
  const because = `an estimate: ${factor} times the missing bytes in the package, kept and unpacked`;
  return [{ path: root, use: 'images', addon, bytes: Math.ceil(packed * factor), files: 0, because }];
}
