/** Images of packages into the node's container runtime: only where a name is missing. */
import { execa } from 'execa';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { asError, CurlewError } from '../core/errors.ts';
import { nodePath, packagePath } from '../core/layout.ts';
import type { AddonJson, PackageImage } from '../core/package.ts';
import { formatRef, type AddonRef } from '../core/ref.ts';

interface Cancellable {
  readonly signal: AbortSignal;
}

/** A container runtime that answers. */
export interface ImageRuntime {
  readonly name: 'containerd' | 'docker';
  /** Those of the images whose name the runtime does not know. */
  readonly missing: (images: readonly PackageImage[], options: Cancellable) => Promise<readonly PackageImage[]>;
  /** Takes a tar of an OCI layout or a docker archive on standard input. */
  readonly load: readonly [command: string, ...args: string[]];
}

const ANSWER_MS = 10_000;
const MAX_OUTPUT = 32 << 20;
const CTR = ['-n', 'k8s.io', 'images'] as const;

type Env = Readonly<Record<string, string | undefined>>;

/** containerd first, then docker; undefined when neither answers. */
export async function findImageRuntime({
  env,
  signal,
}: Cancellable & { readonly env: Env }): Promise<ImageRuntime | undefined> {
  const answers = async (command: string, args: readonly string[]): Promise<boolean> => {
    const { exitCode } = await execa(command, args, { ...quiet(env, signal), timeout: ANSWER_MS });
    signal.throwIfAborted();
    return exitCode === 0;
  };
  if (await answers('ctr', ['version'])) return containerd(env);
  if (await answers('docker', ['version', '--format', '{{.Server.Version}}'])) return docker(env);
  return undefined;
}

// The shape is left to inference: execa's result types follow from the literal options.
function quiet(env: Env, cancelSignal: AbortSignal) {
  return { reject: false, stdin: 'ignore', env, extendEnv: false, cancelSignal, maxBuffer: MAX_OUTPUT } as const;
}

function containerd(env: Env): ImageRuntime {
  return {
    name: 'containerd',
    load: ['ctr', ...CTR, 'import', '-'],
    missing: async (images, { signal }) => {
      const { stdout } = await execa('ctr', [...CTR, 'list', '-q'], quiet(env, signal));
      signal.throwIfAborted();
      const known = new Set(stdout.split('\n'));
      return images.filter(({ reference }) => !known.has(reference));
    },
  };
}

function docker(env: Env): ImageRuntime {
  return {
    name: 'docker',
    load: ['docker', 'load', '--quiet'],
    missing: async (images, { signal }) => {
      const missing: PackageImage[] = [];
      for (const image of images) {
        const { exitCode } = await execa('docker', ['image', 'inspect', image.reference], quiet(env, signal));
        signal.throwIfAborted();
        if (exitCode !== 0) missing.push(image);
      }
      return missing;
    },
  };
}

export interface LoadRequest {
  readonly directory: string;
  readonly ref: AddonRef;
  readonly addon: Pick<AddonJson, 'images' | 'imageFormat'>;
  readonly env: Env;
}

/** Loads what is missing of a package's images. Returns the references loaded. */
export async function loadImages(
  runtime: ImageRuntime,
  { directory, ref, addon, env }: LoadRequest,
  { signal }: Cancellable,
): Promise<readonly string[]> {
  const missing = await runtime.missing(addon.images, { signal });
  if (missing.length === 0) return [];
  const folder = join(directory, nodePath.addon(ref));
  if (addon.imageFormat === 'oci') {
    const words = ['-C', join(folder, 'images'), '-cf', '-', '.'];
    const tar = execa('tar', words, { ...quiet(env, signal), buffer: { stdout: false } });
    await feed(runtime, ref, [tar.stdout], { env, signal });
    const { exitCode } = await tar;
    if (exitCode !== 0) throw failed(runtime, ref, `tar ended with status ${exitCode ?? 'unknown'}`);
  } else {
    for (const { id } of missing) {
      const archive = createReadStream(join(folder, packagePath.dockerArchive(id)));
      await feed(runtime, ref, [archive, createGunzip()], { env, signal });
    }
  }
  const still = await runtime.missing(missing, { signal });
  const [first] = still;
  if (first !== undefined) throw failed(runtime, ref, `${first.reference} is still missing afterwards`);
  return missing.map(({ reference }) => reference);
}

async function feed(
  runtime: ImageRuntime,
  ref: AddonRef,
  streams: readonly [NodeJS.ReadableStream, ...NodeJS.ReadWriteStream[]],
  { env, signal }: Cancellable & { readonly env: Env },
): Promise<void> {
  const [command, ...args] = runtime.load;
  const child = execa(command, args, { ...quiet(env, signal), stdin: 'pipe' });
  // A runtime that ends early closes its input; why it did is what it says, not the broken pipe.
  const [piped, { exitCode, stderr }] = await Promise.all([
    pipeline([...streams, child.stdin], { signal }).then(
      () => undefined,
      (error: unknown) => asError(error),
    ),
    child,
  ]);
  signal.throwIfAborted();
  const said = stderr.trim().split('\n').slice(-3).join('; ');
  if (exitCode !== 0)
    throw failed(runtime, ref, said === '' ? `${command} ended with status ${exitCode ?? '?'}` : said);
  if (piped !== undefined) throw failed(runtime, ref, piped.message, piped);
}

function failed({ name }: ImageRuntime, ref: AddonRef, why: string, cause?: unknown): CurlewError {
  return new CurlewError('IMAGE_LOAD_FAILED', `load images of ${formatRef(ref)} into ${name}: ${why}`, {
    hint: `see that ${name} is well and has space, then run the same command again`,
    cause,
  });
}
