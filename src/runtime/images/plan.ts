/** What loading would do, without doing it. */
import { mapLimited } from '../../core/each.ts';
import type { SourcePackage } from '../source.ts';
import { sourceFiles } from './folder-files.ts';
import { blobsOf, bytesOf, type ImageRuntime } from './image-runtime.ts';
import { findLacking } from './lacking.ts';
import { packageImages, type Cancellable } from './wanted.ts';

export interface PlannedImages {
  readonly addon: string;
  /** References of the images that the node lacks. */
  readonly missing: readonly string[];
  /** Bytes that would go to the runtime. What two packages lack counts for the first of them. */
  readonly bytes: number;
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
  const rows = packages.map((source) => ({ source, images: packageImages(sourceFiles(source), source.addon) }));
  const all = rows.flatMap(({ images }) => images);
  const missing = runtime === undefined ? new Set(all) : (await findLacking(runtime, all, { signal })).images;
  const stock = runtime === undefined || missing.size === 0 ? blobsOf : await runtime.stock({ signal });
  const counted = new Set<string>();
  const planned: PlannedImages[] = [];
  for (const { source, images } of rows) {
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
    planned.push({ addon: source.ref.name, missing: here.map(({ reference }) => reference), bytes });
  }
  return planned;
}
