/** Exports images from a Docker engine. */
import { createWriteStream } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { formatImageRef, imageNames } from '../../core/image-ref.ts';
import { openImageArchive } from '../../formats/oci/read-image-archive.ts';
import { callError, connectDocker, engineName } from './docker.ts';
import { inspectImage } from './engine-images.ts';
import type { ImageEngine } from '../ports.ts';

/** Connects to the engine of `DOCKER_HOST`, by default the local one. Connects lazily. */
export function createImageEngine(env: Readonly<Record<string, string | undefined>>): ImageEngine {
  const engine = connectDocker(env);
  return {
    identify: async (ref, { signal }) => (await inspectImage(engine, ref, signal))?.id,
    export: async (ref, { folder, arch, signal }) => {
      const reference = formatImageRef(ref);
      const doing = `export ${reference} from the Docker engine`;
      const path = join(await mkdtemp(join(folder, 'engine-')), 'image.tar');
      const request = { doing, method: 'GET', path: `/images/${engineName(ref)}/get`, code: 'FETCH_FAILED' } as const;
      const { body } = await engine.open(request, { signal });
      try {
        await pipeline(body, createWriteStream(path), { signal });
      } catch (error) {
        throw callError(doing, error, signal);
      }
      // An image that was pulled by digest has no name in the archive.
      const names = imageNames(ref);
      return { ...(await openImageArchive(path, { id: reference, arch, names, scratch: folder, signal })), reference };
    },
  };
}
