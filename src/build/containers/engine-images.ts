/** Images of containers: pulled if the engine does not have them, and then removed at the end. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Reporting } from '../../core/cancellable.ts';
import { isDigest, type Digest } from '../../core/digest.ts';
import { asError, CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { formatImageRef, parseImageRef, type ImageRef } from '../../core/image-ref.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import type { RegistryClient } from '../registry/client.ts';
import { callError, engineName, type Engine } from './docker.ts';
import { markPull, removeImage, tidy } from './left-overs.ts';
import { linesOf } from '../../platform/process/program-lines.ts';
import { createKeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';

export interface ImageOptions extends Reporting {
  /** The step of progress lines. */
  readonly id: string;
}

export interface EngineImages {
  /** Ensures that the engine has the image; returns its id. */
  readonly bring: (reference: string, options: ImageOptions) => Promise<string>;
  /** The current digest of the reference: the registry's if known, or else the engine's id. Pulls nothing. */
  readonly identify: (reference: string, options: { readonly signal: AbortSignal }) => Promise<Digest>;
  /** Removes pulled images that nothing else uses. */
  readonly release: (signal: AbortSignal) => Promise<void>;
}

interface Inspected {
  readonly id: Digest;
  readonly repoDigests: readonly string[];
}

/** Parses an image reference, or an image id, which no registry knows. */
function readReference(reference: string): ImageRef | Digest {
  if (isDigest(reference)) return reference;
  const ref = parseImageRef(reference);
  if (typeof ref !== 'string') return ref;
  throw new CurlewError('USAGE', `image ${JSON.stringify(reference.slice(0, 200))}: ${ref}`);
}

function shownName(ref: ImageRef | Digest): string {
  return typeof ref === 'string' ? ref : formatImageRef(ref);
}

function nameOf(ref: ImageRef | Digest): string {
  return typeof ref === 'string' ? ref : engineName(ref);
}

/** The engine's data about an image by reference or id; undefined if it does not have the image. */
export async function inspectImage(
  engine: Engine,
  ref: ImageRef | Digest,
  signal: AbortSignal,
): Promise<Inspected | undefined> {
  const doing = `look up ${shownName(ref)} in the Docker engine`;
  const request = { doing, method: 'GET', path: `/images/${nameOf(ref)}/json`, code: 'FETCH_FAILED' } as const;
  const { status, value } = await engine.request({ ...request, expected: [404] }, { signal });
  if (status === 404) return undefined;
  const { Id: id, RepoDigests: digests } = fieldsOf(value);
  if (!isDigest(id)) {
    throw new CurlewError('FETCH_FAILED', `cannot ${doing}: the response has no id`);
  }
  return { id, repoDigests: Array.isArray(digests) ? digests.filter((text) => typeof text === 'string') : [] };
}

/** The digest of the image in the reference's repository; its id if it has none. */
function digestOf({ id, repoDigests }: Inspected, ref: ImageRef | Digest): Digest {
  if (typeof ref === 'string') return id;
  const repository = engineName({ ...ref, tag: undefined, digest: undefined });
  const known = repoDigests.map((text) => parseImageRef(text)).flatMap((one) => (typeof one === 'string' ? [] : [one]));
  const own = known.filter((one) => engineName({ ...one, tag: undefined, digest: undefined }) === repository);
  const [first] = own.flatMap(({ digest }) => (digest === undefined ? [] : [digest])).toSorted();
  return first ?? id;
}

function reasonText(reason: unknown): string {
  return typeof reason === 'string' ? reason.slice(0, 1000) : 'refused';
}

async function pull(engine: Engine, ref: ImageRef, { id, report, signal }: ImageOptions): Promise<void> {
  const name = engineName(ref);
  const doing = `pull ${formatImageRef(ref)}`;
  const query = { fromImage: engineName({ ...ref, tag: undefined, digest: undefined }), tag: ref.digest ?? ref.tag };
  report({ type: 'step-log', id, text: doing });
  const request = {
    doing,
    method: 'POST',
    path: '/images/create',
    query,
    expected: [404],
    code: 'FETCH_FAILED',
  } as const;
  const { status, body } = await engine.open(request, { signal });
  try {
    for await (const line of linesOf(body)) {
      const value: unknown = JSON.parse(line);
      if (!isObject(value)) continue;
      const { message, error, status: text, id: layer, progressDetail } = value;
      if (status === 404) throw new CurlewError('NOT_FOUND', `cannot ${doing}: ${reasonText(message)}`);
      if (error !== undefined) throw new CurlewError('FETCH_FAILED', `cannot ${doing}: ${reasonText(error)}`);
      const moving = isObject(progressDetail) && progressDetail['current'] !== undefined;
      if (moving || typeof text !== 'string') continue;
      report({ type: 'step-log', id, text: `${name}: ${typeof layer === 'string' ? `${layer} ` : ''}${text}` });
    }
  } catch (error) {
    throw callError(doing, error, signal);
  }
}

export interface ImagesOptions {
  readonly engine: Engine;
  readonly registry: Pick<RegistryClient, 'currentDigest'>;
  /** Id of the run, for labels. */
  readonly run: string;
  readonly report: Report;
}

/** Time after a canceled pull in which the engine may still tag the image. */
const LATE_MS = 300;

export function createEngineImages({ engine, registry, run, report }: ImagesOptions): EngineImages {
  const pulled = new Map<string, (signal: AbortSignal) => Promise<void>>();
  const pulls = createKeyedMutex();
  const heads = createSingleFlightCache<Digest>();
  let marks = 0;

  const drop = async (name: string, unmark: (signal: AbortSignal) => Promise<void>, later: AbortSignal) => {
    if (!(await removeImage(engine, name, { prune: true, signal: later }))) {
      report({ type: 'note', level: 'info', text: `image ${name} is still in use and stays in the Docker engine` });
    }
    await unmark(later);
  };

  const fetchImage = async (ref: ImageRef, options: ImageOptions): Promise<string> => {
    const name = engineName(ref);
    const unmark = await markPull(engine, { run, name, number: (marks += 1) }, options.signal);
    try {
      await pull(engine, ref, options);
      const pulledImage = await inspectImage(engine, ref, options.signal);
      if (pulledImage === undefined)
        throw new CurlewError('FETCH_FAILED', `cannot pull ${name}: the engine does not have the image after the pull`);
      pulled.set(name, unmark);
      heads.drop(name);
      return pulledImage.id;
    } catch (error) {
      await tidy(report, async (later) => {
        await removeImage(engine, name, { prune: true, signal: later });
        if (options.signal.aborted) {
          await pause(LATE_MS);
          await removeImage(engine, name, { prune: true, signal: later });
        }
        await unmark(later);
      });
      throw error;
    }
  };

  return {
    bring: async (reference, options) => {
      const ref = readReference(reference);
      const name = nameOf(ref);
      const bring = async (): Promise<string> => {
        const existing = await inspectImage(engine, ref, options.signal);
        if (existing !== undefined) return existing.id;
        if (typeof ref === 'string') throw new CurlewError('NOT_FOUND', `image ${ref} is not in the Docker engine`);
        return fetchImage(ref, options);
      };
      // Another add-on may be pulling it; if that one is canceled or fails, this one pulls.
      return pulls.run([name], bring, options);
    },
    identify: async (reference, { signal }) => {
      const ref = readReference(reference);
      const name = nameOf(ref);
      if (typeof ref !== 'string' && ref.digest !== undefined) return ref.digest;
      const existing = await inspectImage(engine, ref, signal).catch((error: unknown) => {
        // Without an engine, the registry may know the digest.
        signal.throwIfAborted();
        if (typeof ref === 'string') throw asError(error);
        return undefined;
      });
      if (existing !== undefined) return digestOf(existing, ref);
      if (typeof ref === 'string') throw new CurlewError('NOT_FOUND', `image ${ref} is not in the Docker engine`);
      return heads.get(name, async () => registry.currentDigest(ref, { signal }));
    },
    release: async (signal) => {
      for (const [name, unmark] of pulled) {
        pulled.delete(name);
        await drop(name, unmark, signal);
      }
    },
  };
}
