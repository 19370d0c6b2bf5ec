/** containerd through its client `ctr`, in the namespace of Kubernetes. `CONTAINERD_ADDRESS` names its socket. */
import { isDigest, type Digest } from '../../core/digest.ts';
import { MANIFEST_LIMIT, parseManifest } from '../../formats/oci/manifest.ts';
import { createKeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { blobsOf, type ImageRuntime, type KnownName } from './image-runtime.ts';
import { ask, askSurely, feed, loadError, type Env, type Words } from './program.ts';
import type { Cancellable } from './archive.ts';

const CTR: Words = ['ctr', '--namespace', 'k8s.io'];
/** Names in one question: far below what a command line may hold. */
const NAMES_AT_ONCE = 500;

export function containerd(env: Env, width: number): ImageRuntime {
  const question = async (doing: string, words: readonly string[], { signal }: Cancellable): Promise<string> =>
    askSurely(`${doing} of containerd`, [...CTR, ...words], { env, signal });
  const survey: ImageRuntime['survey'] = async (names, options) => {
    const known = new Map<string, KnownName>();
    for (let at = 0; at < names.length; at += NAMES_AT_ONCE) {
      // Names were parsed: none holds a quote.
      const filters = names.slice(at, at + NAMES_AT_ONCE).map((name) => `name=="${name}"`);
      const text = await question('ask for the images', ['images', 'check', ...filters], options);
      for (const [name, found] of parseCheck(text)) known.set(name, found);
    }
    return known;
  };
  return {
    name: 'containerd',
    width,
    loads: createSemaphore(width),
    layers: createKeyedMutex(),
    survey,
    namesOf: async ({ names }) => names,
    isImage: async ({ id }, image, options) => {
      if (image.digest !== undefined) return image.digest === id;
      const form = await image.form(options);
      if (form.kind === 'oci') return form.image.digest === id;
      return (await configOf(id, { env, ...options })) === form.config;
    },
    stock: async (options) => {
      const text = await question('ask for the content', ['content', 'list', '--quiet'], options);
      const there = new Set<string>(text.split('\n'));
      return (form) => new Set([...blobsOf(form)].filter((digest) => !there.has(digest)));
    },
    take: async (doing, bytes, { signal }) => feed(doing, [...CTR, 'images', 'import', '-'], bytes, { env, signal }),
    alias: async (name, alias, { signal }) => {
      const { status, stderr } = await ask([...CTR, 'images', 'tag', name, alias], { env, signal });
      if (status !== 0 && !stderr.includes('already exists'))
        throw loadError(`name ${name} also ${alias}`, stderr.trim());
    },
    remove: async (names, options) => {
      const known = columns(await question('ask for the images', ['images', 'list'], options), 3);
      const containers = columns(await question('ask for the containers', ['containers', 'list'], options), 2);
      const targets = new Map(known.map(([name = '', , digest = '']) => [name, digest] as const));
      const inUse = new Set(containers.map(([, image = '']) => targets.get(image)));
      const there = names.filter((name) => targets.has(name));
      const used = there.filter((name) => inUse.has(targets.get(name)));
      const removed = there.filter((name) => !used.includes(name));
      const all = removed.flatMap((name) => [name, ...criNames(name, targets, removed)]);
      for (let at = 0; at < all.length; at += NAMES_AT_ONCE)
        await question('remove images', ['images', 'remove', ...all.slice(at, at + NAMES_AT_ONCE)], options);
      return { removed, used };
    },
  };
}

/** The first words of each row of a table, without its head. */
function columns(text: string, count: number): readonly (readonly string[])[] {
  const rows = text.split('\n').slice(1);
  return rows.map((line) => line.trim().split(/\s+/, count)).filter((words) => words.length === count);
}

/** Kubernetes' part of containerd names an image by its id and its digest, too: they go with the last name of the image. */
function criNames(name: string, targets: ReadonlyMap<string, string>, removed: readonly string[]): readonly string[] {
  const same = [...targets].flatMap(([other, digest]) => (digest === targets.get(name) ? [other] : []));
  const isCri = (other: string): boolean => other.startsWith('sha256:') || other.includes('@sha256:');
  const isKept = same.some((other) => !isCri(other) && !removed.includes(other));
  return isKept ? [] : same.filter((other) => isCri(other) && !removed.includes(other));
}

/** The rows of `ctr images check`: name, media type, digest, status, sizes, and whether it is unpacked. */
function parseCheck(text: string): readonly (readonly [string, KnownName])[] {
  return text.split('\n').flatMap((line) => {
    const words = line.trim().split(/\s+/);
    const [name = '', , id = '', status] = words;
    if (!isDigest(id)) return [];
    return [[name, { id, ready: words.at(-1) === 'true', whole: status === 'complete' }] as const];
  });
}

/** Of an image that was made from an archive: containerd made the manifest, but the config is the archive's own. */
async function configOf(
  manifest: Digest,
  { env, signal }: Cancellable & { readonly env: Env },
): Promise<Digest | undefined> {
  const { status, stdout } = await ask([...CTR, 'content', 'get', manifest], { env, signal });
  if (status !== 0 || stdout.length > MANIFEST_LIMIT) return undefined;
  try {
    const parsed = parseManifest(Buffer.from(stdout), undefined, manifest);
    return parsed.kind === 'image' ? parsed.config.digest : undefined;
  } catch {
    // Somebody else's image, of a form that none of ours has.
    return undefined;
  }
}
