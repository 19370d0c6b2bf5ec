/**
 * Pulls images from registries: OCI distribution API, read side. Verifies manifests and configs; layers are delivered
 * unverified, and verified by the caller. Source: OCI distribution-spec 1.1.
 */
import type { Cancellable } from '../../core/cancellable.ts';
import { digestOf, isDigest, type Digest } from '../../core/digest.ts';
import { asError, CurlewError } from '../../core/errors.ts';
import { formatImageRef, imageNames, type ImageRef } from '../../core/image-ref.ts';
import { download } from '../../platform/http/download.ts';
import { succeeded, type Http } from '../../platform/http/http.ts';
import type { HttpRequest } from '../../platform/http/message.ts';
import { createAuth } from './auth.ts';
import type { Credentials } from './credentials.ts';
import { candidates, createEndpoints, trimmed, type Untried, type Endpoint, type Mirrors } from './endpoint.ts';
import {
  formatPlatform,
  type BlobFetchOptions,
  type Descriptor,
  type ImageSource,
  type SendBlob,
} from '../../formats/oci/image.ts';
import { MANIFEST_LIMIT, MANIFEST_TYPES } from '../../formats/oci/manifest.ts';
import { platformImage, type FoundManifest, type ReadSmall } from '../../formats/oci/platform.ts';

export interface RegistryOptions {
  readonly http: Http;
  readonly credentials: Credentials;
  readonly mirrors?: Mirrors | undefined;
  /** Hosts of token services that may receive the credentials of registries that name them. */
  readonly trustRealms?: readonly string[] | undefined;
  /** Images, as `REGISTRY/NAME`, that the user accepts without a platform. */
  readonly anyPlatform?: readonly string[] | undefined;
  readonly now?: (() => number) | undefined;
}

export interface RegistryClient extends ImageSource {
  /** The digest that a reference has now, with as few bytes as the registry allows. Throws the same errors as `resolve`. */
  readonly currentDigest: (ref: ImageRef, options: Cancellable) => Promise<Digest>;
}

/** One repository at one endpoint. */
interface Place {
  readonly endpoint: Endpoint;
  /** Creates a request under `/v2/<repository>/`. */
  readonly request: (doing: string, path: string, headers?: Readonly<Record<string, string>>) => HttpRequest;
}

const ACCEPT = MANIFEST_TYPES.join(', ');
/** Errors that may concern only a mirror, so that the next endpoint is tried. */
const PASSABLE: ReadonlySet<string> = new Set([
  'FETCH_FAILED',
  'AUTH_FAILED',
  'NOT_FOUND',
  'DIGEST_MISMATCH',
  'IMAGE_INVALID',
  'UNSUPPORTED',
]);

/** Fetches a manifest, verified with the requested digest, or else with the one that the registry reports. */
async function readManifest(
  http: Http,
  { request }: Place,
  reference: string,
  doing: string,
  signal: AbortSignal,
): Promise<FoundManifest & { readonly digest: Digest }> {
  const manifestRequest = request(doing, `manifests/${reference}`, { accept: ACCEPT });
  const response = succeeded(
    http,
    manifestRequest,
    await http.small(manifestRequest, { limit: MANIFEST_LIMIT, signal }),
  );
  if (response.headers['content-type']?.startsWith('text/html') === true) {
    throw new CurlewError(
      'FETCH_FAILED',
      `cannot ${doing}: ${response.url} returned a web page instead of a manifest`,
      { hint: 'this is not a registry, or a login page or a proxy responds instead' },
    );
  }
  const digest = digestOf(response.body);
  const named = isDigest(reference) ? reference : response.headers['docker-content-digest'];
  if (named !== undefined && isDigest(named) && named !== digest) {
    throw new CurlewError('DIGEST_MISMATCH', `cannot ${doing}: the manifest is ${digest}, expected ${named}`, {
      hint: 'the registry, or a proxy in between, is broken or hostile',
    });
  }
  return { data: response.body, mediaType: response.headers['content-type'], digest };
}

/** Runs `work` with one endpoint after the other until one succeeds; otherwise throws the most informative error. */
async function firstPlace<One, Result>(
  all: readonly One[],
  work: (one: One) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const errors: CurlewError[] = [];
  for (const one of all) {
    try {
      return await work(one);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof CurlewError) || !PASSABLE.has(error.code)) throw error;
      errors.push(error);
    }
  }
  // An endpoint's refusal says more than an unreachable endpoint. If all were unreachable, the first error counts: behind a
  // mirror, the registry itself is often unreachable on purpose.
  const main = errors.findLast(({ code }) => code !== 'FETCH_FAILED') ?? errors[0];
  if (main === undefined) throw new TypeError('no endpoint');
  const others = errors.filter((error) => error !== main).map(({ message }) => message);
  if (others.length === 0) throw main;
  throw main.with({ message: `${main.message} (other endpoints: ${others.join('; ')})`, cause: main });
}

/** Where a layer may be outside the registry. */
function addressesOf({ urls = [] }: Descriptor): readonly URL[] {
  return urls.filter((url) => URL.canParse(url)).map((url) => new URL(url));
}

/** Creates a client, which caches tokens and schemes of registries. */
export function createRegistryClient(options: RegistryOptions): RegistryClient {
  const { http, credentials, mirrors = new Map(), trustRealms = [], anyPlatform = [], now = Date.now } = options;
  const auth = createAuth({ http, credentials, trustRealms, now });
  const settle = createEndpoints(http);

  const placeAt = async (candidate: Untried, ref: ImageRef, doing: string, signal: AbortSignal): Promise<Place> => {
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
    places: readonly (Untried | URL)[],
    descriptor: Descriptor,
    { from, write, skip = 0, signal }: BlobFetchOptions,
  ): ReturnType<SendBlob> => {
    const { digest, size } = descriptor;
    const doing = `fetch layer ${digest} of ${formatImageRef(ref)}`;
    let wrong = 0;
    let at = from;
    let writeError: unknown;
    const counted = (chunk: Uint8Array): Promise<void> | undefined => {
      try {
        at += chunk.byteLength;
        const writing = write(chunk);
        writing?.catch((error: unknown) => {
          writeError = error;
        });
        return writing;
      } catch (error) {
        writeError = error;
        throw error;
      }
    };
    try {
      await firstPlace(
        places.slice(skip),
        async (candidate) => {
          // An error of the writer is no error of an endpoint: try no other endpoint.
          if (writeError !== undefined) return;
          // If several endpoints sent a part, any of them may be wrong: the last may still send the whole blob.
          wrong = places.indexOf(candidate) + (at === 0 ? 1 : 0);
          const request =
            candidate instanceof URL
              ? { doing, url: candidate.href, via: `https://${ref.registry}/` }
              : (await placeAt(candidate, ref, doing, signal)).request(doing, `blobs/${digest}`);
          const body = { from: at, expectedSize: size, immutable: true, write: counted };
          await download(http, { ...request, ...body }, { signal });
        },
        signal,
      );
    } catch (error) {
      writeError ??= error;
    }
    if (writeError !== undefined) throw asError(writeError);
    return wrong < places.length ? wrong : undefined;
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
            const configRequest = place.request(`${doing}: config`, `blobs/${descriptor.digest}`);
            const response = succeeded(http, configRequest, await http.small(configRequest, { limit, signal }));
            return { data: response.body, mediaType: undefined };
          };
          const name = formatImageRef({ ...ref, tag: undefined, digest: undefined });
          const asked = { platform, name, anyPlatform: anyPlatform.includes(name), from: doing };
          const image = await platformImage(first, read, asked);
          return {
            ...image,
            reference,
            names: imageNames(ref),
            resolved: first.digest,
            digest: digestOf(image.manifest),
            platform: formatPlatform(platform),
            fetch: async (descriptor, fetchOptions) =>
              fetchBlob(ref, [...places, ...addressesOf(descriptor)], descriptor, fetchOptions),
          };
        },
        signal,
      );
    },
    currentDigest: async (ref, { signal }) => {
      const doing = `look up image ${formatImageRef(ref)}`;
      return firstPlace(
        candidates(ref.registry, mirrors),
        async (candidate) => {
          const place = await placeAt(candidate, ref, doing, signal);
          const reference = ref.digest ?? ref.tag ?? 'latest';
          const request: HttpRequest = {
            ...place.request(doing, `manifests/${reference}`, { accept: ACCEPT }),
            method: 'HEAD',
          };
          const head = await http.small(request, { limit: 0, signal });
          const named = head.headers['docker-content-digest'];
          // Some registries do not support HEAD, or return no digest; GET also returns an error message.
          const usable = named !== undefined && isDigest(named) && named === (ref.digest ?? named);
          if (head.status === 200 && usable) return named;
          return (await readManifest(http, place, reference, doing, signal)).digest;
        },
        signal,
      );
    },
  };
}
