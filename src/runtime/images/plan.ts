/** What loading would do, without doing it. */
import type { Digest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { SourcePackage } from '../node/source.ts';
import { sourceFiles } from './folder-files.ts';
import { blobsOf, bytesOf, type ImageRuntime } from './image-runtime.ts';
import { findLacking } from './lacking.ts';
import type { Cancellable } from './archive.ts';
import { packageImages, type WantedImage } from './wanted.ts';

export interface ImageNeeds {
  /** References of the images that the node lacks. */
  readonly missing: readonly string[];
  /** Bytes that would go to the runtime. What two packages lack counts for the first of them. */
  readonly bytes: number;
}

export interface PlannedImages extends ImageNeeds {
  readonly addon: string;
}

const FORMS_AT_ONCE = 4;

/**
 * For each package what is missing, in their order; everything when there is no container runtime yet. Manifests and
 * configs are read from where the packages lie: they need not be extracted.
 */
export async function planImages(
  runtime: ImageRuntime | undefined,
  packages: readonly SourcePackage[],
  { signal }: Cancellable,
): Promise<readonly PlannedImages[]> {
  const rows = packages.map((source) => packageImages(sourceFiles(source), source.addon));
  const needs = await planNeeds(runtime, rows, { signal });
  return needs.map((need, at) => ({ addon: packages[at]?.ref.name ?? '', ...need }));
}

/** The same of lists of images, wherever they were found. */
export async function planNeeds(
  runtime: ImageRuntime | undefined,
  lists: readonly (readonly WantedImage[])[],
  { signal }: Cancellable,
): Promise<readonly ImageNeeds[]> {
  const all = lists.flat();
  const missing = runtime === undefined ? new Set(all) : (await findLacking(runtime, all, { signal })).images;
  const stock = runtime === undefined || missing.size === 0 ? blobsOf : await runtime.stock({ signal });
  const counted = new Set<Digest>();
  const planned: ImageNeeds[] = [];
  for (const images of lists) {
    const here = images.filter((image) => missing.has(image));
    const forms = await mapLimited(here, async (image, within) => image.form(within), { width: FORMS_AT_ONCE, signal });
    let bytes = 0;
    for (const form of forms) {
      if (form.kind === 'archive') {
        bytes += form.bytes;
        continue;
      }
      const blobs = new Set([...stock(form)].filter((digest) => !counted.has(digest)));
      for (const digest of blobs) counted.add(digest);
      bytes += bytesOf(form, blobs);
    }
    planned.push({ missing: here.map(({ reference }) => reference), bytes });
  }
  return planned;
}
