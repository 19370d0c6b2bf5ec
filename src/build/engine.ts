/** Images that only a Docker engine has, through its API. The only place that talks to it for a build. */
import { createWriteStream } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import Docker from 'dockerode';
import { isDigest } from '../core/digest.ts';
import { asError, CurlewError, errnoOf } from '../core/errors.ts';
import { formatImageRef, type ImageRef } from '../core/image-ref.ts';
import { openImageArchive } from '../registry/image-archive.ts';
import type { ImageEngine } from './ports.ts';

/** A name as the engine lists it: Docker Hub's parts are left out there. */
function engineName(ref: ImageRef): string {
  return formatImageRef(ref).replace(/^docker\.io\/(?:library\/)?/, '');
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  return typeof error.statusCode === 'number' ? error.statusCode : undefined;
}

function engineError(doing: string, error: unknown): CurlewError {
  const errno = errnoOf(error);
  if (errno === 'ENOENT' || errno === 'ECONNREFUSED' || errno === 'EACCES') {
    return new CurlewError('FETCH_FAILED', `${doing}: the Docker engine does not answer`, {
      hint: 'start it, or name its socket in DOCKER_HOST (unix:///path or tcp://host:port)',
      cause: error,
    });
  }
  return new CurlewError('FETCH_FAILED', `${doing}: ${asError(error).message}`, { cause: error });
}

/** Connects to the engine that `DOCKER_HOST` names, the local one by default. Nothing is asked until it is needed. */
export function createImageEngine(env: Readonly<Record<string, string | undefined>>): ImageEngine {
  const docker = new Docker(connection(env['DOCKER_HOST']));
  return {
    identify: async (ref, { signal }) => {
      try {
        const { Id } = await docker.getImage(engineName(ref)).inspect();
        signal.throwIfAborted();
        return isDigest(Id) ? Id : undefined;
      } catch (error) {
        if (statusOf(error) === 404) return undefined;
        throw engineError(`look up ${formatImageRef(ref)} in the Docker engine`, error);
      }
    },
    export: async (ref, { folder, arch, signal }) => {
      const doing = `export ${formatImageRef(ref)} from the Docker engine`;
      const path = join(await mkdtemp(join(folder, 'engine-')), 'image.tar');
      try {
        await pipeline(await docker.getImage(engineName(ref)).get(), createWriteStream(path), { signal });
      } catch (error) {
        signal.throwIfAborted();
        throw engineError(doing, error);
      }
      const image = await openImageArchive(path, { id: formatImageRef(ref), arch, scratch: folder, signal });
      return { ...image, reference: formatImageRef(ref) };
    },
  };
}

function connection(host: string | undefined): Docker.DockerOptions {
  if (host === undefined || host === '') return {};
  if (host.startsWith('unix://')) return { socketPath: host.slice('unix://'.length) };
  const url = URL.canParse(host) ? new URL(host) : undefined;
  if (url?.protocol !== 'tcp:') {
    throw new CurlewError('USAGE', `DOCKER_HOST: ${host} is neither unix:///path nor tcp://host:port`);
  }
  return { host: url.hostname, port: Number(url.port === '' ? 2375 : url.port), protocol: 'http' };
}
