/** Pulls from registries as a build does. */
import { parseImageRef, type ImageRef } from '../../src/core/image-ref.ts';
import type { Arch } from '../../src/core/ref.ts';
import { createRegistryClient, type RegistryClient, type RegistryOptions } from '../../src/build/registry/client.ts';
import { ANONYMOUS } from '../../src/build/registry/credentials.ts';
import type { Descriptor, ResolvedImage } from '../../src/formats/oci/image.ts';
import { collector, quickHttp } from './client.ts';

export function ref(text: string): ImageRef {
  const parsed = parseImageRef(text);
  if (typeof parsed === 'string') throw new Error(parsed);
  return parsed;
}

export async function client(options: Partial<RegistryOptions> = {}): Promise<RegistryClient & AsyncDisposable> {
  const http = options.http ?? (await quickHttp());
  const made = createRegistryClient({ credentials: ANONYMOUS, ...options, http });
  return { ...made, [Symbol.asyncDispose]: http.close };
}

export async function resolve(
  of: RegistryClient,
  text: string,
  signal: AbortSignal,
  arch: Arch = 'amd64',
): Promise<ResolvedImage> {
  return of.resolve(ref(text), { platform: { os: 'linux', arch }, signal });
}

export async function layerBytes(
  image: ResolvedImage,
  layer: Descriptor,
  signal: AbortSignal,
  from = 0,
): Promise<Buffer> {
  const { write, body } = collector();
  await image.fetch(layer, { from, write, signal });
  return body();
}
