/** containerd through its client `ctr`, in the namespace of Kubernetes. `CONTAINERD_ADDRESS` names its socket. */
import { access } from 'node:fs/promises';
import { isDigest, type Digest } from '../../core/digest.ts';
import { MANIFEST_LIMIT, parseImageManifest } from '../../formats/oci/manifest.ts';
import { createKeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { blobsOf, type ImageRuntime, type KnownName } from './image-runtime.ts';
import { runClient, runClientOrThrow, feed, loadError, lastWords, type Env, type Argv } from './program.ts';
import type { Cancellable } from '../../core/cancellable.ts';

const CTR: Argv = ['ctr', '--namespace', 'k8s.io'];
/** Names per command, far below the limit of a command line. */
const NAMES_AT_ONCE = 500;
/** The kubernetes package makes it: kubelets of other packages have their own rules about images. */
const CLUSTER = '/etc/kubernetes/curlew';
const PINNED = 'io.cri-containerd.pinned';

export function containerd(env: Env, width: number, cluster = CLUSTER): ImageRuntime {
  const query = async (doing: string, args: readonly string[], { signal }: Cancellable): Promise<string> =>
    runClientOrThrow(`${doing} of containerd`, [...CTR, ...args], { env, signal });
  const lookUp: ImageRuntime['lookUp'] = async (names, options) => {
    const known = new Map<string, KnownName>();
    for (let at = 0; at < names.length; at += NAMES_AT_ONCE) {
      // Names are validated: none contains a quote.
      const filters = names.slice(at, at + NAMES_AT_ONCE).map((name) => `name=="${name}"`);
      const text = await query('list the images', ['images', 'check', ...filters], options);
      for (const [name, state] of parseCheck(text)) known.set(name, state);
    }
    return known;
  };
  const flags = createSingleFlightCache<readonly string[]>({ failures: 'own' });
  /** Imports through containerd's transfer service, the default of later versions, take twice the time. */
  const importFlags = async (options: Cancellable): Promise<readonly string[]> =>
    flags.get('import', async () =>
      runClient([...CTR, 'images', 'import', '--help'], { env, ...options }, ({ stdout }) => {
        return /\s--local\s/.test(stdout) ? ['--local'] : [];
      }),
    );
  return {
    name: 'containerd',
    width,
    loads: createSemaphore(width),
    layers: createKeyedMutex(),
    lookUp,
    namesOf: async ({ names }) => names,
    isImage: async ({ id }, image, options) => {
      if (image.digest !== undefined) return image.digest === id;
      const form = await image.form(options);
      if (form.kind === 'oci') return form.image.digest === id;
      return (await configOf(id, { env, ...options })) === form.config;
    },
    listContent: async (options) => {
      const text = await query('list the content', ['content', 'list', '--quiet'], options);
      const present = new Set<string>(text.split('\n'));
      return (form) => new Set([...blobsOf(form)].filter((digest) => !present.has(digest)));
    },
    importTar: async (doing, bytes, { signal }) =>
      feed(doing, [...CTR, 'images', 'import', ...(await importFlags({ signal })), '-'], bytes, { env, signal }),
    alias: async (name, alias, { signal }) => {
      await runClient([...CTR, 'images', 'tag', name, alias], { env, signal }, ({ status, stderr }) => {
        if (status !== 0 && !stderr.includes('already exists'))
          throw loadError(`tag ${name} as ${alias}`, stderr.trim());
      });
    },
    // Images that no container uses yet, such as those of the next version, are the first that a kubelet removes from a full disk.
    protect: async (names, options) => {
      if (names.length === 0 || !(await exists(cluster))) return;
      const filter = `labels."${PINNED}"!=pinned`;
      const loose = new Set(
        (await query('list the images', ['images', 'list', '--quiet', filter], options)).split('\n'),
      );
      const failed: string[] = [];
      for (const name of new Set(names)) {
        if (!loose.has(name)) continue;
        const command = [...CTR, 'images', 'label', name, `${PINNED}=pinned`] as const;
        await runClient(command, { env, ...options }, ({ status, stderr }) => {
          if (status !== 0) failed.push(`${name}: ${lastWords('ctr', status, stderr)}`);
        });
      }
      if (failed.length > 0) throw loadError('pin images of containerd', failed.join('; '));
    },
    remove: async (names, options) => {
      const known = columns(await query('list the images', ['images', 'list'], options), 3);
      const containers = columns(await query('list the containers', ['containers', 'list'], options), 2);
      const targets = new Map(known.map(([name = '', , digest = '']) => [name, digest] as const));
      const inUse = new Set(containers.map(([, image = '']) => targets.get(image)));
      const present = names.filter((name) => targets.has(name));
      const used = present.filter((name) => inUse.has(targets.get(name)));
      const removed = present.filter((name) => !used.includes(name));
      const all = removed.flatMap((name) => [name, ...criNames(name, targets, removed)]);
      for (let at = 0; at < all.length; at += NAMES_AT_ONCE)
        await query('remove images', ['images', 'remove', ...all.slice(at, at + NAMES_AT_ONCE)], options);
      return { removed, used };
    },
  };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** The first columns of each row of a table, without its header. */
function columns(text: string, count: number): readonly (readonly string[])[] {
  const rows = text.split('\n').slice(1);
  return rows.map((line) => line.trim().split(/\s+/, count)).filter((fields) => fields.length === count);
}

/** Names that containerd's CRI plugin adds for the ID and digest of an image; they are removed with its last other name. */
function criNames(name: string, targets: ReadonlyMap<string, string>, removed: readonly string[]): readonly string[] {
  const same = [...targets].flatMap(([other, digest]) => (digest === targets.get(name) ? [other] : []));
  const isCri = (other: string): boolean => other.startsWith('sha256:') || other.includes('@sha256:');
  const isKept = same.some((other) => !isCri(other) && !removed.includes(other));
  return isKept ? [] : same.filter((other) => isCri(other) && !removed.includes(other));
}

/** Rows of `ctr images check`: name, media type, digest, status, sizes, and whether it is unpacked. */
function parseCheck(text: string): readonly (readonly [string, KnownName])[] {
  return text.split('\n').flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    const [name = '', , id = '', status] = fields;
    if (!isDigest(id)) return [];
    return [[name, { id, ready: fields.at(-1) === 'true', complete: status === 'complete' }] as const];
  });
}

/** The config of an image from an archive: containerd creates the manifest, but the config is that of the archive. */
async function configOf(
  manifest: Digest,
  { env, signal }: Cancellable & { readonly env: Env },
): Promise<Digest | undefined> {
  return runClient([...CTR, 'content', 'get', manifest], { env, signal }, ({ status, stdout }) => {
    if (status !== 0 || stdout.length > MANIFEST_LIMIT) return undefined;
    try {
      const parsed = parseImageManifest(Buffer.from(stdout), undefined, manifest);
      return parsed.kind === 'image' ? parsed.config.digest : undefined;
    } catch {
      // Another program's image in an unknown format.
      return undefined;
    }
  });
}
