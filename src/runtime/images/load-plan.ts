/** Plans image loads without performing them. */
import type { Digest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { SourcePackage } from '../node/source.ts';
import { sourceFiles } from './folder-files.ts';
import { blobsOf, bytesOf, type ImageRuntime } from './image-runtime.ts';
import { createFailures, type Failures } from './failed-images.ts';
import { findMissing } from './missing-images.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import { packageImages, type RequiredImage } from './required-images.ts';

export interface ImageNeeds {
  /** References of the images that the node does not have. */
  readonly missing: readonly string[];
  /** Bytes that would be sent to the runtime. Blobs that two packages need count only for the first. */
  readonly bytes: number;
}

export interface PlannedImages extends ImageNeeds {
  readonly addon: string;
}

const FORMS_AT_ONCE = 4;

/**
 * The missing images of each package, in their order; all images if there is no container runtime yet. Manifests and configs are
 * read from the packages, which need not be extracted.
 */
export async function planImages(
  runtime: ImageRuntime | undefined,
  packages: readonly SourcePackage[],
  { signal }: Cancellable,
): Promise<readonly PlannedImages[]> {
  const rows = packages.map((source) => packageImages(sourceFiles(source), source.addon));
  const needs = await planNeeds(runtime, rows, { failures: createFailures(), signal });
  return needs.map((need, at) => ({ addon: packages[at]?.ref.name ?? '', ...need }));
}

/** Like {@link planImages}, for lists of images. `failures` gets those that cannot be read, which count as missing. */
export async function planNeeds(
  runtime: ImageRuntime | undefined,
  lists: readonly (readonly RequiredImage[])[],
  { failures, signal }: Cancellable & { readonly failures: Failures },
): Promise<readonly ImageNeeds[]> {
  const all = lists.flat();
  const missing = runtime === undefined ? new Set(all) : (await findMissing(runtime, all, { signal })).images;
  const missingBlobs = runtime === undefined || missing.size === 0 ? blobsOf : await runtime.listContent({ signal });
  const counted = new Set<Digest>();
  const planned: ImageNeeds[] = [];
  for (const images of lists) {
    const own = images.filter((image) => missing.has(image));
    const form = async (image: RequiredImage, within: Cancellable) =>
      failures.keep(image, async () => image.form(within));
    const forms = await mapLimited(own, form, { width: FORMS_AT_ONCE, signal });
    let bytes = 0;
    for (const form of forms) {
      if (form === undefined) continue;
      if (form.kind === 'archive') {
        bytes += form.bytes;
        continue;
      }
      const blobs = new Set([...missingBlobs(form)].filter((digest) => !counted.has(digest)));
      for (const digest of blobs) counted.add(digest);
      bytes += bytesOf(form, blobs);
    }
    planned.push({ missing: own.map(({ reference }) => reference), bytes });
  }
  return planned;
}
