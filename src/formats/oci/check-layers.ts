/**
 * Compares what layers unpack to with the digests in the config of their image, as container runtimes do when they unpack it: a
 * node would refuse the image. Each blob is unpacked once.
 */
import { ReadableStream } from 'node:stream/web';
import type { Worker } from 'node:worker_threads';
import type { Cancellable } from '../../core/cancellable.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { walkTar } from '../archive/walk-tar.ts';
import type { Descriptor } from './image.ts';
import type { LayerContent } from './layer-content.ts';
import type { LayerRequest, LayerResponse } from './layer-worker.ts';
import { startLayerWorker } from './start-layer-worker.ts';

/** A layer of an image, and where its bytes are. */
export interface Layer {
  /** Begins messages: `image NAME: layer 2 of 5`. */
  readonly title: string;
  readonly descriptor: Descriptor;
  /** What it must unpack to. */
  readonly diffId: Digest;
}

/** Digests of unpacked layers by the digest of the blob, kept between runs. */
export interface LayerMemory {
  readonly find: (blob: Digest) => Promise<Digest | undefined>;
  readonly keep: (blob: Digest, unpacked: Digest) => Promise<void>;
}

export interface LayerCheck extends AsyncDisposable {
  /** Throws `IMAGE_INVALID` for a layer that no runtime would unpack; errors of reading it unchanged. */
  readonly check: (
    layer: Layer,
    read: (options: Cancellable) => AsyncIterable<Uint8Array>,
    options: Cancellable,
  ) => Promise<void>;
}

/** Dispose of it to end its thread, which starts with the first layer. */
export function createLayerCheck(memory?: LayerMemory): LayerCheck {
  const contents = createSingleFlightCache<LayerContent>({ failures: 'own' });
  const thread = new Thread();
  return {
    check: async (layer, read, { signal }) => {
      const { digest, size } = layer.descriptor;
      const content = await contents.get(digest, async () => {
        const known = await memory?.find(digest);
        if (known !== undefined) return { digest: known };
        const found = await thread.unpack(read({ signal }), size);
        if ('digest' in found) await memory?.keep(digest, found.digest);
        return found;
      });
      signal.throwIfAborted();
      requireFit(layer, content);
    },
    [Symbol.asyncDispose]: async () => thread.end(),
  };
}

/** The layers of an image, in its order. */
export function layersOf(of: string, layers: readonly Descriptor[], diffIds: readonly Digest[]): readonly Layer[] {
  return layers.flatMap((descriptor, at) => {
    const diffId = diffIds[at];
    return diffId === undefined ? [] : [{ title: `${of}: layer ${at + 1} of ${layers.length}`, descriptor, diffId }];
  });
}

/** Checks the layers in an archive of docker's format; `layersAt` has what a path in it is. */
export async function checkArchiveLayers(
  tar: AsyncIterable<Uint8Array>,
  layersAt: (path: string) => readonly Layer[],
  { check, signal }: Pick<LayerCheck, 'check'> & Cancellable,
): Promise<void> {
  const refuse = (what: string): CurlewError => new CurlewError('IMAGE_INVALID', `the archive of an image: ${what}`);
  const seen = new Set<string>();
  for await (const file of walkTar(tar, { refuse, signal })) {
    const layers = layersAt(file.path);
    // A runtime may take either.
    if (layers.length > 0 && seen.has(file.path)) throw refuse(`two entries named ${JSON.stringify(file.path)}`);
    if (layers.length > 0) seen.add(file.path);
    for (const layer of layers) {
      const descriptor = { ...layer.descriptor, size: file.size };
      await check({ ...layer, descriptor }, () => file.chunks(), { signal });
    }
  }
}

/** Containerd unpacks no layer of this type, whatever its bytes are. */
const NOT_PACKED = /^application\/vnd\.oci\.image\.layer\.(?:nondistributable\.)?v1\.tar$/;
const HINT =
  'container runtimes refuse it when they unpack it: build the image again, or push or save it again with another tool';

function requireFit({ title, descriptor: { digest, mediaType }, diffId }: Layer, content: LayerContent): void {
  const bad = (what: string): CurlewError => new CurlewError('IMAGE_INVALID', `${title}: ${what}`, { hint: HINT });
  if ('problem' in content) throw bad(content.problem);
  if (content.digest !== diffId)
    throw bad(`it unpacks to ${content.digest}, but the config of the image names ${diffId}`);
  if (NOT_PACKED.test(mediaType) && digest !== diffId) throw bad(`it is compressed, but its type is ${mediaType}`);
}

interface Waiting {
  readonly resolve: (content: LayerResponse['content']) => void;
  readonly reject: (error: Error) => void;
}

/** One thread for all layers: zlib itself works in threads of Node. */
class Thread {
  #worker: Worker | undefined;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  #start(): Worker {
    const worker = startLayerWorker({});
    worker.on('message', ({ id, content }: LayerResponse) => {
      this.#waiting.get(id)?.resolve(content);
      this.#waiting.delete(id);
    });
    worker.on('error', (error) => {
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
      this.#worker = undefined;
    });
    return worker;
  }

  async unpack(bytes: AsyncIterable<Uint8Array>, size: number): Promise<LayerContent> {
    this.#worker ??= this.#start();
    this.#last += 1;
    const id = this.#last;
    let failure: { readonly error: unknown } | undefined;
    // Errors lose their class on the way to the thread and back.
    const noted = async function* read(): AsyncGenerator<Uint8Array, void, undefined> {
      try {
        yield* bytes;
      } catch (error) {
        failure = { error };
        throw error;
      }
    };
    const stream = ReadableStream.from(noted());
    const request: LayerRequest = { id, size, bytes: stream };
    const content = await new Promise<LayerResponse['content']>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker?.postMessage(request, [stream]);
    });
    if (failure !== undefined) throw failure.error;
    if ('failed' in content) throw new Error(content.failed);
    return content;
  }

  async end(): Promise<void> {
    await this.#worker?.terminate();
  }
}
