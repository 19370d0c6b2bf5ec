/** Loads images into a container runtime: only those that are missing, and of those only the blobs that it lacks. */
import { eachLimited, mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { sendTar, sentBytes, type SentEntry } from '../../formats/archive/send-tar.ts';
import { formatImageLayout } from '../../formats/oci/oci-layout.ts';
import type { Digest } from '../../core/digest.ts';
import { blobsOf, bytesOf, type ImageRuntime } from './image-runtime.ts';
import { findLacking, problemOf, type Lacking } from './lacking.ts';
import type { Cancellable } from './archive.ts';
import type { ImageForm, OciForm, WantedImage } from './wanted.ts';

export interface LoadRequest {
  /** Begins the message of errors, such as `load images of demo-1.0`. */
  readonly doing: string;
  readonly images: readonly WantedImage[];
  /** What is known to be lacking of them; asked when it is left out. */
  readonly lacking?: Lacking;
  /** Told while bytes go to the runtime: how many so far, and of how many. */
  readonly progress?: ((bytes: number, total: number) => void) | undefined;
  readonly note?: ((text: string) => void) | undefined;
}

export interface LoadedImages {
  /** References of the images that were missing. */
  readonly references: readonly string[];
  /** Bytes of blobs and archives that were sent, again counted again. */
  readonly bytes: number;
}

/**
 * Loads what is missing, several at once, and sees that it is there afterwards: by name, digest, and unpacked. A blob
 * that the runtime drops between the question and the load is no failure: the image is sent once more as a whole.
 * Throws `IMAGE_LOAD_FAILED`, `NO_SPACE` or `DIGEST_MISMATCH`; what was loaded until then stays.
 */
export async function loadImages(
  runtime: ImageRuntime,
  { doing, images, lacking, progress, note }: LoadRequest,
  { signal }: Cancellable,
): Promise<LoadedImages> {
  const { images: missing, aliases } = lacking ?? (await findLacking(runtime, images, { signal }));
  const load: Load = { runtime, doing: `${doing} into ${runtime.name}`, bytes: 0, sent: 0, total: 0, progress };
  if (missing.size > 0) {
    const { width } = runtime;
    const planned = await planLoads(runtime, [...missing], { signal });
    load.total = planned.reduce((sum, { bytes }) => sum + bytes, 0);
    const one = async ({ image, form, layers }: PlannedLoad, within: Cancellable): Promise<void> => {
      const work = async (): Promise<void> => loadOne(load, image, form, within);
      await runtime.layers.run(layers, async () => runtime.loads.run(work, within), within);
      noteUnnamed(runtime, image, note);
    };
    // All of them wait at once: whoever comes next depends on which layers are on their way.
    await eachLimited(planned, one, { width: Math.max(width, planned.length), signal });
  }
  if (aliases.length > 0) {
    const known = await runtime.survey(
      aliases.map(({ alias }) => alias),
      { signal },
    );
    for (const { of, alias } of aliases) if (!known.has(alias)) await runtime.alias(of, alias, { signal });
  }
  return { references: [...missing].map(({ reference }) => reference), bytes: load.bytes };
}

interface PlannedLoad {
  readonly image: WantedImage;
  readonly form: ImageForm;
  /** What it would bring: nobody else may bring the same at the same time. */
  readonly layers: readonly Digest[];
  /** A layer that several images lack counts for the first. */
  readonly bytes: number;
}

const FORMS_AT_ONCE = 4;

async function planLoads(
  runtime: ImageRuntime,
  images: readonly WantedImage[],
  { signal }: Cancellable,
): Promise<readonly PlannedLoad[]> {
  const stock = await runtime.stock({ signal });
  const limits = { width: FORMS_AT_ONCE, signal };
  const forms = await mapLimited(images, async (image, within) => ({ image, form: await image.form(within) }), limits);
  const counted = new Set<Digest>();
  return forms.map(({ image, form }) => {
    if (form.kind === 'archive') return { image, form, layers: [], bytes: form.bytes };
    const layers = [...stock(form)];
    const bytes = bytesOf(form, new Set(layers.filter((digest) => !counted.has(digest))));
    for (const digest of layers) counted.add(digest);
    return { image, form, layers, bytes };
  });
}

/** What one call has sent so far. */
interface Load {
  readonly runtime: ImageRuntime;
  readonly doing: string;
  /** Of blobs and archives that arrived. */
  bytes: number;
  /** Of everything, on its way or there. */
  sent: number;
  total: number;
  readonly progress: LoadRequest['progress'];
}

function noteUnnamed({ name }: ImageRuntime, { names }: WantedImage, note: LoadRequest['note']): void {
  if (name !== 'docker') return;
  for (const pinned of names.filter((one) => one.includes('@'))) {
    note?.(`docker does not know ${pinned} by that name: pods that ask for it by digest will pull it`);
  }
}

async function loadOne(load: Load, image: WantedImage, form: ImageForm, { signal }: Cancellable): Promise<void> {
  if (form.kind === 'archive') {
    // An archive may hold several images, and another one of them may have had its turn.
    if ((await seen(load, image, false, { signal })) === undefined) return;
    await send(load, form.open({ signal }), { signal });
    load.bytes += form.bytes;
    await check(load, image, { signal });
    return;
  }
  const lacking = (await load.runtime.stock({ signal }))(form);
  try {
    await sendLayout(load, form, lacking, { signal });
    await check(load, image, { signal });
  } catch (error) {
    const all = blobsOf(form);
    if (lacking.size === all.size || !(await isWell(load.runtime, { signal }))) throw error;
    await sendLayout(load, form, all, { signal });
    await check(load, image, { signal });
  }
}

/** After a failure: whether it is worth to try again. */
async function isWell(runtime: ImageRuntime, { signal }: Cancellable): Promise<boolean> {
  try {
    await runtime.stock({ signal });
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

async function seen(
  { runtime }: Load,
  image: WantedImage,
  whole: boolean,
  { signal }: Cancellable,
): ReturnType<typeof problemOf> {
  const names = await runtime.namesOf(image, { signal });
  const known = await runtime.survey(names, { signal });
  return problemOf(runtime, image, { names, known, whole, signal });
}

async function check(load: Load, image: WantedImage, { signal }: Cancellable): Promise<void> {
  const problem = await seen(load, image, true, { signal });
  if (problem === undefined) return;
  const code = problem.kind === 'another' ? 'DIGEST_MISMATCH' : 'IMAGE_LOAD_FAILED';
  throw new CurlewError(code, `${load.doing}: afterwards ${problem.text}`, {
    hint: 'see who else changes images on this machine, then run the same command again',
  });
}

/** The image alone as an OCI layout, without the blobs that are not asked for. */
async function sendLayout(
  load: Load,
  { image, blob }: OciForm,
  wanted: ReadonlySet<Digest>,
  { signal }: Cancellable,
): Promise<void> {
  const { files, blobs } = formatImageLayout([{ id: image.reference, image }]);
  const isWanted = (path: string): boolean => {
    const [, hex] = /^blobs\/sha256\/([0-9a-f]{64})$/.exec(path) ?? [];
    return hex === undefined || wanted.has(`sha256:${hex}`);
  };
  const entries: SentEntry[] = [
    ...files.filter(({ path }) => isWanted(path)).map(({ path, data }) => sentBytes(path, data)),
    ...blobs
      .filter(({ path }) => isWanted(path))
      .map(({ path, descriptor }): SentEntry => {
        const open = (): AsyncIterable<Uint8Array> => blob(descriptor, { signal });
        return { kind: 'file', path, mode: 0o644, size: descriptor.size, content: { kind: 'stream', open } };
      }),
  ];
  await send(load, sendTar(entries, { signal }), { signal });
  load.bytes += bytesOf({ kind: 'oci', image, blob, diffIds: [] }, wanted);
}

async function send(load: Load, bytes: AsyncIterable<Uint8Array>, { signal }: Cancellable): Promise<void> {
  const { runtime, doing, progress } = load;
  const counted = async function* counted(): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of bytes) {
      yield chunk;
      load.sent += chunk.byteLength;
      // Headers of the tar go with it, and an archive is unpacked on its way.
      progress?.(Math.min(load.sent, load.total), load.total);
    }
  };
  await runtime.take(doing, counted(), { signal });
}
