/**
 * Pulls images from registries: OCI distribution API, read side. Manifests and configs are verified here; layers are
 * delivered as they come and verified by whoever keeps them. Source: OCI distribution-spec 1.1.
 */
import { digestOf, isDigest, type Digest } from '../core/digest.ts';
import { asError, CurlewError } from '../core/errors.ts';
import { formatImageRef, imageNames, type ImageRef } from '../core/image-ref.ts';
import { download } from '../platform/http/download.ts';
import { succeeded, type Http } from '../platform/http/http.ts';
import type { HttpRequest } from '../platform/http/message.ts';
import { createAuth } from './auth.ts';
import type { Credentials } from './credentials.ts';
import { candidates, createEndpoints, trimmed, type Candidate, type Endpoint, type Mirrors } from './endpoint.ts';
import {
  formatPlatform,
  type BlobFetchOptions,
  type Descriptor,
  type ImageSource,
  type SendBlob,
} from '../formats/oci/image.ts';
import { MANIFEST_LIMIT, MANIFEST_TYPES } from '../formats/oci/manifest.ts';
import { platformImage, type FoundManifest, type ReadSmall } from '../formats/oci/platform.ts';

export interface RegistryOptions {
  readonly http: Http;
  readonly credentials: Credentials;
  readonly mirrors?: Mirrors | undefined;
  /** Hosts of token services that may get the credentials of registries that name them. */
  readonly trustRealms?: readonly string[] | undefined;
  readonly now?: (() => number) | undefined;
}

export interface HeadManifest {
  readonly digest: Digest;
  readonly mediaType: string | undefined;
  readonly size: number | undefined;
}

export interface RegistryClient extends ImageSource {
  /** What a reference names now, with as few bytes as the registry allows. Throws as `resolve` does. */
  readonly headManifest: (ref: ImageRef, options: { readonly signal: AbortSignal }) => Promise<HeadManifest>;
}

/** One repository at one endpoint. */
interface Place {
  readonly endpoint: Endpoint;
  /** A request below `/v2/<repository>/`. */
  readonly request: (doing: string, path: string, headers?: Readonly<Record<string, string>>) => HttpRequest;
}

const ACCEPT = MANIFEST_TYPES.join(', ');
/** Failures that a mirror may have alone, so that the next place is asked. */
const PASSABLE: ReadonlySet<string> = new Set([
  'FETCH_FAILED',
  'AUTH_FAILED',
  'NOT_FOUND',
  'DIGEST_MISMATCH',
  'IMAGE_INVALID',
  'UNSUPPORTED',
]);

/** The body of a manifest, checked against the digest asked for, or else against the one that the registry names. */
async function readManifest(
  http: Http,
  { request }: Place,
  reference: string,
  doing: string,
  signal: AbortSignal,
): Promise<FoundManifest & { readonly digest: Digest }> {
  const asked = request(doing, `manifests/${reference}`, { accept: ACCEPT });
  const response = succeeded(http, asked, await http.small(asked, { limit: MANIFEST_LIMIT, signal }));
  if (response.headers['content-type']?.startsWith('text/html') === true) {
    throw new CurlewError('FETCH_FAILED', `${doing}: ${response.url} answered with a web page, not with a manifest`, {
      hint: 'this is no registry, or a login page or a proxy answers in its place',
    });
  }
  const digest = digestOf(response.body);
  const named = isDigest(reference) ? reference : response.headers['docker-content-digest'];
  if (named !== undefined && isDigest(named) && named !== digest) {
    throw new CurlewError('DIGEST_MISMATCH', `${doing}: the manifest is ${digest}, wanted was ${named}`, {
      hint: 'the registry or something on the way to it is broken or hostile',
    });
  }
  return { data: response.body, mediaType: response.headers['content-type'], digest };
}

/** Runs `work` at one place after the other until one succeeds; otherwise throws the error that tells most. */
async function firstPlace<Result>(
  all: readonly Candidate[],
  work: (candidate: Candidate) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const errors: CurlewError[] = [];
  for (const candidate of all) {
    try {
      return await work(candidate);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof CurlewError) || !PASSABLE.has(error.code)) throw error;
      errors.push(error);
    }
  }
  // A place that answered "no" says more than one that could not be reached. Where none could, the first counts: behind
  // a mirror, the registry itself is often out of reach, and is meant to be.
  const told = errors.findLast(({ code }) => code !== 'FETCH_FAILED') ?? errors[0];
  if (told === undefined) throw new TypeError('no place to ask');
  const others = errors.filter((error) => error !== told).map(({ message }) => message);
  if (others.length === 0) throw told;
  throw new CurlewError(told.code, `${told.message} (elsewhere: ${others.join('; ')})`, {
    hint: told.hint,
    cause: told,
  });
}

/** Makes a client; it remembers tokens and schemes of registries as long as it lives. */
export function createRegistryClient(options: RegistryOptions): RegistryClient {
  const { http, credentials, mirrors = new Map(), trustRealms = [], now = Date.now } = options;
  const auth = createAuth({ http, credentials, trustRealms, now });
  const settle = createEndpoints(http);

  const placeAt = async (candidate: Candidate, ref: ImageRef, doing: string, signal: AbortSignal): Promise<Place> => {
    const endpoint = await settle(candidate, doing, { signal });
    const { base, project, host } = endpoint;
    const repository = `${project}${ref.repository}`;
    const request: Place['request'] = (what, path, headers) => ({
      doing: what,
      url: `${trimmed(base)}/v2/${repository}/${path}`,
      headers,
      authorize: auth({ doing: what, base, host, repository }),
    });
    return { endpoint, request };
  };

  const fetchBlob = async (
    ref: ImageRef,
    places: readonly Candidate[],
    descriptor: Descriptor,
    { from, write, signal }: BlobFetchOptions,
  ): ReturnType<SendBlob> => {
    const { digest, size } = descriptor;
    const doing = `fetch layer ${digest} of ${formatImageRef(ref)}`;
    let others: readonly Candidate[] = [];
    let at = from;
    let ours: unknown;
    const counted = (chunk: Uint8Array): Promise<void> | undefined => {
      try {
        at += chunk.byteLength;
        const writing = write(chunk);
        writing?.catch((error: unknown) => {
          ours = error;
        });
        return writing;
      } catch (error) {
        ours = error;
        throw error;
      }
    };
    try {
      await firstPlace(
        places,
        async (candidate) => {
          // The writer's failure is no place's fault: nobody else is asked.
          if (ours !== undefined) return;
          // Where several gave a part, any of them may be the wrong one: the last may still give the whole.
          others = places.slice(places.indexOf(candidate) + (at === 0 ? 1 : 0));
          const { request } = await placeAt(candidate, ref, doing, signal);
          const asked = { ...request(doing, `blobs/${digest}`), from: at, expectedSize: size, immutable: true };
          await download(http, { ...asked, write: counted }, { signal });
        },
        signal,
      );
    } catch (error) {
      ours ??= error;
    }
    if (ours !== undefined) throw asError(ours);
    if (others.length === 0) return undefined;
    return async (options) => fetchBlob(ref, others, descriptor, options);
  };

  return {
    resolve: async (ref, { platform, signal }) => {
      const reference = formatImageRef(ref);
      const doing = `fetch image ${reference}`;
      const all = candidates(ref.registry, mirrors);
      return firstPlace(
        all,
        async (candidate) => {
          const places = [candidate, ...all.filter((other) => other !== candidate)];
          const place = await placeAt(candidate, ref, doing, signal);
          const first = await readManifest(http, place, ref.digest ?? ref.tag ?? 'latest', doing, signal);
          const read: ReadSmall = async (descriptor, kind, limit) => {
            if (kind === 'manifest') return readManifest(http, place, descriptor.digest, doing, signal);
            const asked = place.request(`${doing}: config`, `blobs/${descriptor.digest}`);
            const response = succeeded(http, asked, await http.small(asked, { limit, signal }));
            return { data: response.body, mediaType: undefined };
          };
          const image = await platformImage(first, read, platform, doing);
          return {
            ...image,
            reference,
            names: imageNames(ref),
            resolved: first.digest,
            digest: digestOf(image.manifest),
            platform: formatPlatform(platform),
            fetch: async (descriptor, fetchOptions) => fetchBlob(ref, places, descriptor, fetchOptions),
          };
        },
        signal,
      );
    },
    headManifest: async (ref, { signal }) => {
      const doing = `look up image ${formatImageRef(ref)}`;
      return firstPlace(
        candidates(ref.registry, mirrors),
        async (candidate) => {
          const place = await placeAt(candidate, ref, doing, signal);
          const wanted = ref.digest ?? ref.tag ?? 'latest';
          const asked: HttpRequest = {
            ...place.request(doing, `manifests/${wanted}`, { accept: ACCEPT }),
            method: 'HEAD',
          };
          const head = await http.small(asked, { limit: 0, signal });
          const named = head.headers['docker-content-digest'];
          // Some registries do not answer HEAD, or not with a digest; GET also has the words for what went wrong.
          const usable = named !== undefined && isDigest(named) && named === (ref.digest ?? named);
          if (head.status !== 200 || !usable) {
            const { digest, mediaType, data } = await readManifest(http, place, wanted, doing, signal);
            return { digest, mediaType, size: data.byteLength };
          }
          const length = Number(head.headers['content-length'] ?? Number.NaN);
          const size = Number.isSafeInteger(length) ? length : undefined;
          return { digest: named, mediaType: head.headers['content-type'], size };
        },
        signal,
      );
    },
  };
}
