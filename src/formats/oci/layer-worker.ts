/** Worker thread: unpacks and hashes layers, several at once, so that the thread that reads them does nothing else. */
import type { ReadableStream } from 'node:stream/web';
import { parentPort } from 'node:worker_threads';
import { asError } from '../../core/errors.ts';
import { layerContent, type LayerContent } from './layer-content.ts';
import { createUnpackWork } from './unpacked.ts';

export interface LayerRequest {
  readonly id: number;
  readonly size: number;
  readonly bytes: ReadableStream<Uint8Array>;
}

export interface LayerResponse {
  readonly id: number;
  readonly content: LayerContent | { readonly failed: string };
}

const work = createUnpackWork();
parentPort?.on('message', ({ id, size, bytes }: LayerRequest) => {
  layerContent(bytes, { size, work })
    .catch((error: unknown) => ({ failed: asError(error).message }))
    .then((content) => {
      parentPort?.postMessage({ id, content } satisfies LayerResponse);
    })
    .catch(() => undefined);
});
