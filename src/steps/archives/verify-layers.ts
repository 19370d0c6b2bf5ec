/** Unpacks the layers of all images in an archive, and compares them with their images, before a node does. */
import type { Reporting } from '../../core/cancellable.ts';
import { counted } from '../../core/counted.ts';
import { reportStep } from '../../core/events.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { readPayload } from '../../formats/archive/read.ts';
import { checkArchiveLayers, createLayerCheck, layersOf, type LayerCheck } from '../../formats/oci/check-layers.ts';
import { sourceFiles } from '../../runtime/images/folder-files.ts';
import { packageImages, type RequiredImage } from '../../runtime/images/required-images.ts';
import { readDelta } from '../../ship/bundle/delta/delta-read.ts';
import { checkArchive } from './check-archive.ts';

/** Runs as a step with this title, if there are images. A delta has layers in part: they are checked in the bundle it creates. */
export async function verifyLayers(
  source: RangeSource,
  index: ArchiveIndex,
  { title, report, signal }: Reporting & { readonly title: string },
): Promise<void> {
  if ((await readDelta(source, index, { signal })) !== undefined) return;
  const { packages } = await checkArchive(source, index, { read: (...of) => readPayload(source, ...of), signal });
  const images = packages.flatMap((one) => {
    const files = sourceFiles(one);
    return packageImages(files, one.addon, `linux/${one.addon.arch}`).map((image) => ({ files, image }));
  });
  if (images.length === 0) return;
  await using layers = createLayerCheck();
  await reportStep(
    report,
    { id: `${title} layers`, title: `${title}: layers of ${counted(images.length, 'image')}` },
    async () => {
      for (const { files, image } of images) await checkImage(image, files.name, { check: layers.check, signal });
    },
    () => 'unpack',
  );
}

async function checkImage(
  image: RequiredImage,
  name: string,
  { check, signal }: Pick<LayerCheck, 'check'> & Pick<Reporting, 'signal'>,
): Promise<void> {
  const form = await image.form({ signal });
  if (form.kind === 'archive') {
    await checkArchiveLayers(form.open({ signal }), form.layersAt, { check, signal });
    return;
  }
  for (const layer of layersOf(`${name}: image ${image.reference}`, form.image.layers, form.diffIds))
    await check(layer, (options) => form.blob(layer.descriptor, options), { signal });
}
