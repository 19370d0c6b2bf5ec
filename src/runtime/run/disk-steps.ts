/** What the actions of a plan take and give back on disk, in their order. Pure. */
import type { ImageFormat, PackageFile } from '../../core/package.ts';
import { sizeOnDisk, type DiskStep } from './plan-disk.ts';
import type { RunPlan } from './run-plan.ts';

/** What a package means for the disk. */
export interface PackageRoom {
  readonly addon: string;
  readonly files: readonly PackageFile[];
  readonly imageFormat: ImageFormat;
  /** Bytes of its file that have to be fetched; 0 for what is here. */
  readonly fetched: number;
  /** Its files get a second name in the install folder instead of being copied. */
  readonly moved: boolean;
}

export interface ImageRoom {
  /** Absolute path of the folder where the container runtime keeps images. */
  readonly root: string;
  /** Bytes of image data, as they lie in the package, that the runtime lacks; by add-on. */
  readonly missing: ReadonlyMap<string, number>;
}

export interface RoomPlaces {
  /** The install folder. */
  readonly directory: string;
  /** Bytes in it that an interrupted run has left, and that go away or are gone on with. */
  readonly leftOvers: number;
  /** Undefined when no images are loaded. */
  readonly images: ImageRoom | undefined;
}

/** Layers of real images are two to three times as large once they are unpacked. */
const UNPACKED = 2.5;
/** Of the bytes in the package: what a runtime keeps as it came, and what it unpacks. */
const IMAGE_FACTOR: Readonly<Record<ImageFormat, number>> = {
  oci: 1 + UNPACKED,
  // Layers of a docker archive are not compressed: they are kept that way as well.
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
    // The file that was fetched goes away when all that it holds is in place.
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
  // tar has written files that occur more than once as one file with many names; those are copied.
  const wanted = moved ? files.filter(occursTwice(files)) : files;
  const because = moved
    ? 'its files are moved, not copied'
    : 'extracted beside what is in place, which stays until the new one is complete';
  return { path, use: 'package', addon, ...sizeOnDisk(wanted), because };
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
  const because = `an estimate: ${factor} times what the package holds of them, kept and unpacked`;
  return [{ path: root, use: 'images', addon, bytes: Math.ceil(packed * factor), files: 0, because }];
}
