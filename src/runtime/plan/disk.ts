/** The space that a run needs on each file system at its peak, and whether it is available. Pure. */
import { CurlewError } from '../../core/errors.ts';
import type { ImageFormat, PackageFile } from '../../core/package.ts';
import type { RunPlan } from './run-plan.ts';

/** A file system that contains some of the requested paths. */
export interface MountFacts {
  /** Identifies the file system: its mounts share their space. */
  readonly device: string;
  readonly mountPoint: string;
  /** Requested paths on it; they need not exist. */
  readonly paths: readonly string[];
  /** Bytes. */
  readonly total: number;
  /** Free bytes, without those that are reserved for root. */
  readonly free: number;
  /** Inodes; undefined if they are not limited. */
  readonly inodes: { readonly total: number; readonly free: number } | undefined;
}

export type DiskUse = 'left-overs' | 'fetched package' | 'package' | 'images';

/** A change of disk usage at one point of a run. */
export interface DiskStep extends DiskNeed {
  /** Absolute; determines the file system. */
  readonly path: string;
}

export interface DiskNeed {
  readonly use: DiskUse;
  /** Empty if it belongs to no add-on. */
  readonly addon: string;
  /** Negative if space is freed. */
  readonly bytes: number;
  readonly files: number;
  /** How the number was determined. */
  readonly because: string;
}

export interface MountPlan extends Pick<MountFacts, 'mountPoint' | 'paths' | 'total' | 'free'> {
  /** Bytes that the run uses at its peak. */
  readonly peak: number;
  /** Bytes that must stay free even then. */
  readonly reserve: number;
  /** Missing bytes; 0 if everything fits. */
  readonly short: number;
  /** Inodes that the run uses at its peak, and free ones; undefined if they are not limited. */
  readonly inodes: { readonly peak: number; readonly free: number; readonly short: number } | undefined;
  /** Parts of the peak, the largest first. */
  readonly needs: readonly DiskNeed[];
}

export interface DiskPlan {
  readonly fits: boolean;
  readonly mounts: readonly MountPlan[];
}

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

/** kubelet removes images if more than 85 % of their disk is used: imageGCHighThresholdPercent. */
const IMAGE_RESERVE = 0.15;

/**
 * Sums up the steps in the order of the run. `mounts` contains the paths of all steps. On mounts with images 15 % must stay
 * free.
 */
export function planDisk(steps: readonly DiskStep[], mounts: readonly MountFacts[]): DiskPlan {
  const plans = mounts.map((mount) => {
    const own = steps.filter(({ path }) => mount.paths.includes(path));
    return planMount(mount, own);
  });
  return { fits: plans.every(({ short, inodes }) => short === 0 && (inodes?.short ?? 0) === 0), mounts: plans };
}

function planMount({ mountPoint, paths, total, free, inodes }: MountFacts, steps: readonly DiskStep[]): MountPlan {
  const atPeak = highest(steps, ({ bytes }) => bytes);
  const filesAtPeak = highest(steps, ({ files }) => files);
  const images = steps.some(({ use, bytes }) => use === 'images' && bytes > 0);
  const reserve = images ? Math.ceil(total * IMAGE_RESERVE) : 0;
  const short = atPeak.sum === 0 ? 0 : Math.max(0, atPeak.sum + reserve - free);
  const limited =
    inodes === undefined
      ? undefined
      : { peak: filesAtPeak.sum, free: inodes.free, short: Math.max(0, filesAtPeak.sum - inodes.free) };
  return {
    mountPoint,
    paths,
    total,
    free,
    peak: atPeak.sum,
    reserve,
    short,
    inodes: limited,
    needs: liveAt(steps.slice(0, atPeak.count)),
  };
}

/** The highest sum of the steps, at least 0, and the number of steps to reach it. */
function highest(
  steps: readonly DiskStep[],
  of: (step: DiskStep) => number,
): { readonly sum: number; readonly count: number } {
  let now = 0;
  let best = { sum: 0, count: 0 };
  for (const [index, step] of steps.entries()) {
    now += of(step);
    if (now > best.sum) best = { sum: now, count: index + 1 };
  }
  return best;
}

/** Disk usage after these steps, by use and add-on. */
function liveAt(steps: readonly DiskStep[]): readonly DiskNeed[] {
  const live = new Map<string, DiskNeed>();
  for (const { use, addon, bytes, files, because } of steps) {
    const key = `${use} ${addon}`;
    const before = live.get(key);
    const reasons = before === undefined || bytes < 0 ? (before?.because ?? because) : `${before.because}; ${because}`;
    const sums = { bytes: (before?.bytes ?? 0) + bytes, files: (before?.files ?? 0) + files };
    live.set(key, { use, addon, ...sums, because: reasons });
  }
  return [...live.values()].filter(({ bytes }) => bytes > 0).toSorted((a, b) => b.bytes - a.bytes);
}

/** Layers of real images are two to three times as large once they are unpacked. */
const UNPACKED = 2.5;
/** Factor for the bytes in the package: a runtime keeps them as they are and unpacked. */
const IMAGE_FACTOR: Readonly<Record<ImageFormat, number>> = {
  oci: 1 + UNPACKED,
  // Layers of a docker archive are not compressed, and are kept uncompressed.
  'docker-archive': 2 * UNPACKED,
};

/** The disk space that the actions of a plan use and free, in their order. */
export function diskSteps(
  { actions }: Pick<RunPlan, 'actions'>,
  packages: readonly PackageRoom[],
  { directory, leftOvers, images }: RoomPlaces,
): readonly DiskStep[] {
  const steps = actions.flatMap(({ kind, addon }): readonly DiskStep[] => {
    const facts = packages.find((one) => one.addon === addon);
    if (facts === undefined) return [];
    const fetched = fetchStep(facts, directory);
    if (kind === 'fetch') return [fetched];
    // The fetched file is removed when its package is in place.
    if (kind === 'extract') {
      const extracted = extractStep(facts, directory);
      return fetched.bytes === 0 ? [extracted] : [extracted, { ...fetched, bytes: -fetched.bytes, files: -1 }];
    }
    return kind === 'images' && images !== undefined ? imageSteps(facts, images) : [];
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

/** The images of one add-on. */
export function imageSteps(
  { addon, imageFormat }: Pick<PackageRoom, 'addon' | 'imageFormat'>,
  { root, missing }: ImageRoom,
): readonly DiskStep[] {
  const packed = missing.get(addon) ?? 0;
  if (packed === 0) return [];
  const factor = IMAGE_FACTOR[imageFormat];
  const because = `an estimate: ${factor} times the missing bytes in the package, kept and unpacked`;
  return [{ path: root, use: 'images', addon, bytes: Math.ceil(packed * factor), files: 0, because }];
}

const BLOCK = 4096;

/** Bytes and inodes that these files use: whole blocks, including their folders. */
export function sizeOnDisk(files: readonly Pick<PackageFile, 'path' | 'size'>[]): {
  readonly bytes: number;
  readonly files: number;
} {
  const folders = new Set<string>(['']);
  let bytes = 0;
  for (const { path, size } of files) {
    bytes += Math.ceil(size / BLOCK) * BLOCK;
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1))
      folders.add(path.slice(0, end));
  }
  return { bytes: bytes + folders.size * BLOCK, files: files.length + folders.size };
}

/** Throws `NO_SPACE` if a plan does not fit, with the missing space on each file system. `option` names another install folder. */
export function requireRoom(plan: DiskPlan, option: string): void {
  if (plan.fits) return;
  const lacking = plan.mounts.filter(({ short, inodes }) => short > 0 || (inodes?.short ?? 0) > 0);
  const lines = shortages(plan);
  const isElsewhere = lacking.every(({ needs }) => needs.every(({ use }) => use === 'images'));
  const way = isElsewhere ? ' there, such as by removing unused images' : `, or use another folder with ${option}`;
  // A trial may be one of `dev`, which has no dry run.
  const details = option === '--root' ? '' : '; --dry-run shows the details';
  throw new CurlewError('NO_SPACE', `the disk is too small for this run; nothing was changed\n${lines.join('\n')}`, {
    hint: `free that much${way}${details}`,
  });
}

/** What is missing on each file system; empty if the plan fits. */
export function shortages({ mounts }: DiskPlan): readonly string[] {
  return mounts.flatMap((mount) => [...shortagesOn(mount)]);
}

function* shortagesOn({ mountPoint, free, peak, reserve, short, inodes, total }: MountPlan): Generator<string> {
  if (short > 0) {
    const reserved = reserve === 0 ? '' : `, and ${bytesText(reserve)} (15% of ${bytesText(total)}) must stay free`;
    yield `${mountPoint}: ${bytesText(short)} more needed: the run needs ${bytesText(peak)}${reserved}; ${bytesText(free)} are free`;
  }
  if (inodes !== undefined && inodes.short > 0) {
    yield `${mountPoint}: ${inodes.short} more inodes needed: the run creates ${inodes.peak} files; ${inodes.free} inodes are free`;
  }
}

/** Whole megabytes, for comparison with `df`. */
function bytesText(bytes: number): string {
  return `${Math.ceil(bytes / 1e6)} MB`;
}
