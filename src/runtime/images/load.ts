/** Loads images into a container runtime: only missing images, and of those only missing blobs. */
import { eachLimited, mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { sendTar, sentBytes, type SentEntry } from '../../formats/archive/send-tar.ts';
import { formatImageLayout } from '../../formats/oci/oci-layout.ts';
import type { Digest } from '../../core/digest.ts';
import { blobsOf, bytesOf, type ImageRuntime } from './image-runtime.ts';
import { createFailures, type Failures } from './failed-images.ts';
import { findMissing, imageProblem, type MissingImages } from './missing-images.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import type { ImageForm, OciForm, RequiredImage } from './required-images.ts';

export interface LoadRequest {
  /** Starts the message of errors, such as `load images of demo-1.0`. */
  readonly doing: string;
  readonly images: readonly RequiredImage[];
  /** The missing ones among them, if known; otherwise the runtime is queried. */
  readonly missing?: MissingImages;
  /** Called while bytes are sent to the runtime: the number so far, and the total. */
  readonly progress?: ((bytes: number, total: number) => void) | undefined;
  readonly note?: ((text: string) => void) | undefined;
}

export interface LoadedImages {
  /** References of the images that were missing. */
  readonly references: readonly string[];
  /** Bytes of blobs and archives that were sent, including repeated ones. */
  readonly bytes: number;
}

/**
 * Loads missing images, several at once, and checks each afterwards: name, digest, unpacked layers. If the runtime removes a
 * blob between the query and the load, the complete image is sent again. Throws {@link FailedImages} after the load of the
 * others; `IMAGE_LOAD_FAILED` and `NO_SPACE` at once if no image can be loaded any more. Loaded images stay.
 */
export async function loadImages(
  runtime: ImageRuntime,
  { doing, images, missing: missingImages, progress, note }: LoadRequest,
  { signal }: Cancellable,
): Promise<LoadedImages> {
  const failures = createFailures();
  const { images: missing, aliases, listed } = missingImages ?? (await findMissing(runtime, images, { signal }));
  const load: Load = { runtime, doing: `${doing} into ${runtime.name}`, bytes: 0, sent: 0, total: 0, progress };
  if (missing.size > 0) {
    const { width } = runtime;
    const planned = await planLoads(runtime, [...missing], failures, { signal });
    load.total = planned.reduce((sum, { bytes }) => sum + bytes, 0);
    const one = async ({ image, form, layers }: PlannedLoad, within: Cancellable): Promise<void> => {
      const perform = async (): Promise<void> => {
        await failures.keep(image, async () => loadOne(load, image, form, within));
        const failure = failures.of(image);
        if (failure === undefined) noteUnnamed(runtime, image, note);
        else if (await isResponding(runtime, within)) await removeUnfinished(runtime, image, listed, within);
        else throw failure;
      };
      await runtime.layers.run(layers, async () => runtime.loads.run(perform, within), within);
    };
    // All start at once: `layers` and `loads` determine which image is next.
    await eachLimited(planned, one, { width: Math.max(width, planned.length), signal });
  }
  const failed = new Set([...missing].filter((image) => failures.of(image)).flatMap(({ names }) => names));
  if (aliases.length > 0) {
    const known = await runtime.lookUp(
      aliases.map(({ alias }) => alias),
      { signal },
    );
    for (const { of, alias } of aliases.filter((one) => !failed.has(one.of)))
      if (!known.has(alias)) await runtime.alias(of, alias, { signal });
  }
  failures.check();
  return { references: [...missing].map(({ reference }) => reference), bytes: load.bytes };
}

interface PlannedLoad {
  readonly image: RequiredImage;
  readonly form: ImageForm;
  /** Blobs that it sends: no other load may send them at the same time. */
  readonly layers: readonly Digest[];
  /** A blob that several images need counts only for the first. */
  readonly bytes: number;
}

const FORMS_AT_ONCE = 4;

async function planLoads(
  runtime: ImageRuntime,
  images: readonly RequiredImage[],
  failures: Failures,
  { signal }: Cancellable,
): Promise<readonly PlannedLoad[]> {
  const missingBlobs = await runtime.listContent({ signal });
  const limits = { width: FORMS_AT_ONCE, signal };
  const forms = await mapLimited(
    images,
    async (image, within) => ({ image, form: await failures.keep(image, async () => image.form(within)) }),
    limits,
  );
  const counted = new Set<Digest>();
  return forms.flatMap(({ image, form }) => {
    if (form === undefined) return [];
    if (form.kind === 'archive') return { image, form, layers: [], bytes: form.bytes };
    const layers = [...missingBlobs(form)];
    const bytes = bytesOf(form, new Set(layers.filter((digest) => !counted.has(digest))));
    for (const digest of layers) counted.add(digest);
    return { image, form, layers, bytes };
  });
}

/** The progress of one call. */
interface Load {
  readonly runtime: ImageRuntime;
  readonly doing: string;
  /** Bytes of blobs and archives that were loaded. */
  bytes: number;
  /** Bytes of all tars sent so far. */
  sent: number;
  total: number;
  readonly progress: LoadRequest['progress'];
}

function noteUnnamed({ name }: ImageRuntime, { names }: RequiredImage, note: LoadRequest['note']): void {
  if (name !== 'docker') return;
  for (const pinned of names.filter((one) => one.includes('@'))) {
    note?.(`docker cannot set the name ${pinned}: pods that refer to it by digest will pull it`);
  }
}

async function loadOne(load: Load, image: RequiredImage, form: ImageForm, { signal }: Cancellable): Promise<void> {
  if (form.kind === 'archive') {
    // The archive may contain several images and may have been loaded for another one.
    if ((await findProblem(load, image, false, { signal })) === undefined) return;
    await send(load, form.open({ signal }), { signal });
    load.bytes += form.bytes;
    await check(load, image, { signal });
    return;
  }
  const missing = (await load.runtime.listContent({ signal }))(form);
  try {
    await sendLayout(load, form, missing, { signal });
    await check(load, image, { signal });
  } catch (error) {
    const all = blobsOf(form);
    if (missing.size === all.size || !(await isResponding(load.runtime, { signal }))) throw error;
    await sendLayout(load, form, all, { signal });
    await check(load, image, { signal });
  }
}

/** After a failure: true if the runtime still responds, so that a retry makes sense. */
async function isResponding(runtime: ImageRuntime, { signal }: Cancellable): Promise<boolean> {
  try {
    await runtime.listContent({ signal });
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

/**
 * containerd may take a stream that was cut between two entries as the whole image, and list it. Names that it had before stay, and those
 * of images that another program has completed meanwhile. What cannot be removed changes nothing about the failure.
 */
async function removeUnfinished(
  runtime: ImageRuntime,
  image: RequiredImage,
  listed: ReadonlySet<string>,
  { signal }: Cancellable,
): Promise<void> {
  try {
    const names = (await runtime.namesOf(image, { signal })).filter((name) => !listed.has(name));
    const known = await runtime.lookUp(names, { signal });
    const unfinished = names.filter((name) => known.get(name)?.complete === false);
    if (unfinished.length > 0) await runtime.remove(unfinished, { signal });
  } catch {
    signal.throwIfAborted();
  }
}

async function findProblem(
  { runtime }: Load,
  image: RequiredImage,
  complete: boolean,
  { signal }: Cancellable,
): ReturnType<typeof imageProblem> {
  const names = await runtime.namesOf(image, { signal });
  const known = await runtime.lookUp(names, { signal });
  return imageProblem(runtime, image, { names, known, complete, signal });
}

async function check(load: Load, image: RequiredImage, { signal }: Cancellable): Promise<void> {
  const problem = await findProblem(load, image, true, { signal });
  if (problem === undefined) return;
  const code = problem.kind === 'another' ? 'DIGEST_MISMATCH' : 'IMAGE_LOAD_FAILED';
  throw new CurlewError(code, `${load.doing}: after the load, ${problem.text}`, {
    hint: 'find out which program changes images on this machine, then run the same command again',
  });
}

/** Sends one image as an OCI layout with only the given blobs. */
async function sendLayout(
  load: Load,
  { image, blob }: OciForm,
  selected: ReadonlySet<Digest>,
  { signal }: Cancellable,
): Promise<void> {
  const { files, blobs } = formatImageLayout([{ id: image.reference, image }]);
  const isSelected = (path: string): boolean => {
    const [, hex] = /^blobs\/sha256\/([0-9a-f]{64})$/.exec(path) ?? [];
    return hex === undefined || selected.has(`sha256:${hex}`);
  };
  const entries: SentEntry[] = [
    ...files.filter(({ path }) => isSelected(path)).map(({ path, data }) => sentBytes(path, data)),
    ...blobs
      .filter(({ path }) => isSelected(path))
      .map(({ path, descriptor }): SentEntry => {
        const open = (): AsyncIterable<Uint8Array> => blob(descriptor, { signal });
        return { kind: 'file', path, mode: 0o644, size: descriptor.size, content: { kind: 'stream', open } };
      }),
  ];
  await send(load, sendTar(entries, { signal }), { signal });
  load.bytes += bytesOf({ kind: 'oci', image, blob, diffIds: [] }, selected);
}

async function send(load: Load, bytes: AsyncIterable<Uint8Array>, { signal }: Cancellable): Promise<void> {
  const { runtime, doing, progress } = load;
  const counted = async function* counted(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of bytes) {
      yield chunk;
      load.sent += chunk.byteLength;
      // Capped: tar headers add bytes, and an archive is decompressed while it is sent.
      progress?.(Math.min(load.sent, load.total), load.total);
    }
  };
  await runtime.importTar(doing, counted(), { signal });
}
