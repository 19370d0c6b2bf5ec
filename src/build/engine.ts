/** Images that only a Docker engine has, through its API. The only place that talks to it for a build. */
import { createWriteStream } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import Docker from 'dockerode';
import { isDigest } from '../core/digest.ts';
import { asError, CurlewError, errnoOf, fileError } from '../core/errors.ts';
import { formatImageRef, type ImageRef } from '../core/image-ref.ts';
import { imageNames } from '../registry/image.ts';
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
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return fileError(doing, error);
  if (errno === 'ENOENT' || errno === 'ECONNREFUSED' || errno === 'EACCES') {
    return new CurlewError('FETCH_FAILED', `${doing}: the Docker engine does not answer`, {
      hint: 'start it, or name its socket in DOCKER_HOST (unix:///path or tcp://host:port)',
      cause: error,
    });
  }
  return new CurlewError('FETCH_FAILED', `${doing}: ${asError(error).message}`, { cause: error });
}

/** What is used of dockerode's connection: its own calls for one image cannot all be cancelled. */
interface Modem {
  readonly dial: (request: object, done: (error: unknown, answer: unknown) => void) => void;
}

async function get(modem: Modem, path: string, isStream: boolean, signal: AbortSignal): Promise<unknown> {
  const statusCodes = { 200: true, 404: 'no such image', 500: 'server error' };
  return new Promise((resolve, reject) => {
    modem.dial({ path, method: 'GET', isStream, statusCodes, abortSignal: signal }, (error, answer) => {
      if (answer === undefined || answer === null) reject(asError(error ?? 'an empty answer'));
      else resolve(answer);
    });
  });
}

/** Connects to the engine that `DOCKER_HOST` names, the local one by default. Nothing is asked until it is needed. */
export function createImageEngine(env: Readonly<Record<string, string | undefined>>): ImageEngine {
  const { modem } = new Docker(connection(env['DOCKER_HOST'])) as { readonly modem: Modem };
  return {
    identify: async (ref, { signal }) => {
      try {
        const answer = await get(modem, `/images/${engineName(ref)}/json`, false, signal);
        const id = typeof answer === 'object' && answer !== null && 'Id' in answer ? answer.Id : undefined;
        return typeof id === 'string' && isDigest(id) ? id : undefined;
      } catch (error) {
        signal.throwIfAborted();
        if (statusOf(error) === 404) return undefined;
        throw engineError(`look up ${formatImageRef(ref)} in the Docker engine`, error);
      }
    },
    export: async (ref, { folder, arch, signal }) => {
      const reference = formatImageRef(ref);
      const path = join(await mkdtemp(join(folder, 'engine-')), 'image.tar');
      try {
        const archive = (await get(modem, `/images/${engineName(ref)}/get`, true, signal)) as Readable;
        await pipeline(archive, createWriteStream(path), { signal });
      } catch (error) {
        signal.throwIfAborted();
        throw engineError(`export ${reference} from the Docker engine`, error);
      }
      // An image that was pulled by its digest has no name in the archive.
      const names = imageNames(ref);
      return { ...(await openImageArchive(path, { id: reference, arch, names, scratch: folder, signal })), reference };
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
