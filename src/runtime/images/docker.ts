/** A Docker engine through its client, which uses the machine's own configuration to find the engine. */
import { isDigest, type Digest } from '../../core/digest.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { fieldsOf, isTexts, jsonIn } from '../../core/json.ts';
import { createKeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { blobsOf, type ImageRuntime, type KnownName } from './image-runtime.ts';
import { runClient, runClientOrThrow, feed, loadError, type Env } from './program.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import type { OciForm } from './required-images.ts';

const IDS_AT_ONCE = 500;

export function docker(env: Env, width: number): ImageRuntime {
  const list = async ({ signal }: Cancellable): Promise<ReadonlyMap<string, KnownName>> => {
    const command = ['docker', 'image', 'list', '--no-trunc', '--digests', '--format', '{{json .}}'] as const;
    return parseList(await runClientOrThrow('list the images of docker', command, { env, signal }));
  };
  return {
    name: 'docker',
    width,
    loads: createSemaphore(width),
    layers: createKeyedMutex(),
    lookUp: async (names, options) => {
      const all = await list(options);
      return new Map(names.flatMap((name) => [...pair(name, all.get(name))]));
    },
    // Docker sets a name with a digest only for images that it pulled itself. Every image has an ID.
    namesOf: async (image, options) => {
      const tags = image.names.filter((name) => !name.includes('@'));
      if (tags.length > 0) return tags;
      const form = await image.form(options);
      return [form.kind === 'oci' ? form.image.config.descriptor.digest : form.config];
    },
    isImage: async ({ id }, image, options) => {
      const form = await image.form(options);
      return id === image.digest || id === (form.kind === 'oci' ? form.image.config.descriptor.digest : form.config);
    },
    listContent: async ({ signal }) => {
      const ids = [...new Set([...(await list({ signal })).values()].map(({ id }) => id))];
      const chains = new Set<string>();
      for (let at = 0; at < ids.length; at += IDS_AT_ONCE) {
        const command = ['docker', 'image', 'inspect', '--format', '{{json .RootFS.Layers}}'] as const;
        // If an image is removed meanwhile, docker fails, but still prints the others.
        const some = [...command, ...ids.slice(at, at + IDS_AT_ONCE)] as const;
        const stdout = await runClient(some, { env, signal }, (answer) => answer.stdout);
        for (const line of stdout.split('\n')) for (const chain of chainsOf(parseLayers(line))) chains.add(chain);
      }
      return (form) => missingBlobs(form, chains);
    },
    importTar: async (doing, bytes, { signal }) => feed(doing, ['docker', 'load', '--quiet'], bytes, { env, signal }),
    alias: async (name, alias, { signal }) => {
      await runClientOrThrow(`tag ${name} as ${alias}`, ['docker', 'tag', name, alias], { env, signal });
    },
    remove: async (names, { signal }) => {
      const known = await list({ signal });
      const removed: string[] = [];
      const used: string[] = [];
      for (const name of names.filter((one) => known.has(one))) {
        await runClient(['docker', 'image', 'rm', name], { env, signal }, ({ status, stderr }) => {
          if (status === 0) removed.push(name);
          // By any container, even a stopped one.
          else if (/conflict|in use/i.test(stderr)) used.push(name);
          else throw loadError(`remove image ${name}`, stderr.trim());
        });
      }
      return { removed, used };
    },
  };
}

function pair<Value>(key: string, value: Value | undefined): readonly (readonly [string, Value])[] {
  return value === undefined ? [] : [[key, value]];
}

/** Rows of `docker image list` by full name with tag, full name with digest, and ID. */
function parseList(text: string): ReadonlyMap<string, KnownName> {
  const known = new Map<string, KnownName>();
  for (const line of text.split('\n')) {
    const { ID: id, Repository: repository, Tag: tag, Digest: digest } = fieldsOf(jsonIn(line));
    if (typeof id !== 'string' || !isDigest(id)) continue;
    const image = { id, ready: true, complete: true };
    known.set(id, image);
    if (typeof repository !== 'string') continue;
    for (const written of [`${repository}:${String(tag)}`, `${repository}@${String(digest)}`]) {
      const ref = parseImageRef(written);
      // `<none>` is not a valid tag or repository.
      if (typeof ref !== 'string') known.set(formatImageRef(ref), image);
    }
  }
  return known;
}

function parseLayers(line: string): readonly string[] {
  const value = jsonIn(line);
  return isTexts(value) ? value : [];
}

/** Docker identifies a layer by its chain: the layer and all layers below it. */
function chainsOf(diffIds: readonly string[]): readonly string[] {
  return diffIds.map((_, index) => diffIds.slice(0, index + 1).join(' '));
}

function missingBlobs(form: OciForm, chains: ReadonlySet<string>): ReadonlySet<Digest> {
  const own = chainsOf(form.diffIds);
  const missing = new Set(blobsOf(form));
  const needed = new Set(
    form.image.layers.filter((_, index) => !chains.has(own[index] ?? '')).map(({ digest }) => digest),
  );
  // Manifest and config stay: they are small, and Docker requires them in every tar.
  for (const { digest } of form.image.layers) if (!needed.has(digest)) missing.delete(digest);
  return missing;
}
