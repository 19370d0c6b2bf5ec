/** Finds a platform's manifest from a reference's first manifest, for registries and archives alike. */
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { formatPlatform, type Descriptor, type Platform, type ResolvedImage } from './image.ts';
import { ARCHES } from '../../core/ref.ts';
import {
  CONFIG_LIMIT,
  DOCKER_CONFIG,
  DOCKER_LIST,
  MANIFEST_LIMIT,
  OCI_INDEX,
  parseConfig,
  parseImageManifest,
  parseOciObject,
  UNTYPED_CONFIG,
  type ImageConfig,
  type IndexEntry,
} from './manifest.ts';

export interface FoundManifest {
  readonly data: Uint8Array;
  /** The type that the source reports, if any. */
  readonly mediaType: string | undefined;
}

/** Reads a whole manifest or config of at most `limit` bytes. */
export type ReadSmall = (descriptor: Descriptor, kind: 'manifest' | 'config', limit: number) => Promise<FoundManifest>;

export type PlatformImage = Pick<ResolvedImage, 'mediaType' | 'manifest' | 'config' | 'layers'>;

const DEEPEST_INDEX = 3;

/** Variants that run on every machine of an architecture, the most generic first. */
const VARIANTS: Readonly<Record<Platform['arch'], readonly (string | undefined)[]>> = {
  amd64: [undefined, 'v1'],
  arm64: ['v8', undefined],
};

/** True for the media types of indexes. */
export function isIndexType(mediaType: unknown): boolean {
  return mediaType === OCI_INDEX || mediaType === DOCKER_LIST;
}

/** The entries to visit, best first: those of the platform by variant, otherwise indexes without a platform. */
function chooseEntries(entries: readonly IndexEntry[], { os, arch }: Platform): readonly IndexEntry[] {
  const fitting = entries.filter(({ platform }) => platform?.os === os && platform.arch === arch);
  const byVariant = VARIANTS[arch].flatMap((variant) =>
    fitting.filter(({ platform }) => platform?.variant === variant),
  );
  const nested = entries.filter((entry) => entry.platform === undefined && isIndexType(entry.descriptor.mediaType));
  const [only] = entries;
  const unnamed = entries.length === 1 && only !== undefined && only.platform === undefined ? [only] : [];
  return byVariant.length > 0 ? byVariant.slice(0, 1) : [...new Set([...nested, ...unnamed])];
}

function platformsOf(entries: readonly IndexEntry[]): string {
  const names = entries.flatMap(({ platform }) =>
    platform === undefined || platform.os === 'unknown'
      ? []
      : [[platform.os, platform.arch, platform.variant].filter((part) => part !== undefined).join('/')],
  );
  return [...new Set(names)].join(', ').slice(0, 200);
}

/** Throws unless the bytes match the descriptor. */
function checkBytes({ digest, size }: Descriptor, data: Uint8Array, from: string): void {
  if (data.byteLength !== size) {
    throw new CurlewError('DIGEST_MISMATCH', `${from}: ${data.byteLength} bytes, expected ${size}`);
  }
  const actual = digestOf(data);
  if (actual !== digest) throw new CurlewError('DIGEST_MISMATCH', `${from}: is ${actual}, expected ${digest}`);
}

/**
 * The proof of an image's platform if its config has none: `index` lists it for the platform, `user` accepts images without a
 * platform. An index takes precedence over an architecture in a config: some builders write that of the build machine.
 */
export type PlatformSource = 'index' | 'user' | undefined;

type PlatformNames = Pick<ImageConfig, 'os' | 'arch'>;

/** True if an image with this config runs on a platform. A build and a node decide by the same rule. */
export function isFor({ os, arch }: PlatformNames, platform: Platform, by: PlatformSource): boolean {
  if (os !== '' && os !== platform.os) return false;
  return arch === platform.arch || by === 'index' || (by === 'user' && arch === '');
}

interface PlatformImageOptions {
  readonly platform: Platform;
  /** The name of the image without its tag, and whether the user accepts it without a platform. */
  readonly name: string;
  readonly anyPlatform: boolean;
  /** Whether the source has a manifest of an index: docker saves the platforms that it has, and the whole index. */
  readonly has?: (digest: Digest) => boolean;
  /** Starts messages. */
  readonly from: string;
}

/**
 * Walks from a manifest or index to the platform's image and reads its config; verifies everything read by digest. Throws
 * `UNSUPPORTED` if the platform is missing, `IMAGE_INVALID` and `DIGEST_MISMATCH` for invalid content.
 */
export async function platformImage(
  first: FoundManifest,
  read: ReadSmall,
  { platform, name, anyPlatform, has = () => true, from }: PlatformImageOptions,
): Promise<PlatformImage> {
  const required = formatPlatform(platform);
  let seen = '';
  let budget = 16;
  const visit = async (manifest: FoundManifest, depth: number, named: boolean): Promise<PlatformImage | undefined> => {
    const parsed = parseImageManifest(manifest.data, manifest.mediaType, from);
    if (parsed.kind === 'image') return finish(manifest.data, parsed, named);
    if (depth >= DEEPEST_INDEX) throw new CurlewError('IMAGE_INVALID', `${from}: indexes are nested too deeply`);
    const present = parsed.manifests.filter(({ descriptor }) => has(descriptor.digest));
    // None is the error of the missing manifest, not of the platform.
    const entries = present.length > 0 ? present : parsed.manifests;
    seen = [seen, platformsOf(entries)].filter((text) => text !== '').join(', ');
    for (const { descriptor, platform: known } of chooseEntries(entries, platform)) {
      budget -= 1;
      if (budget < 0 || descriptor.size > MANIFEST_LIMIT) {
        throw new CurlewError('IMAGE_INVALID', `${from}: too many or too large manifests in its index`);
      }
      const next = await read(descriptor, 'manifest', MANIFEST_LIMIT);
      checkBytes(descriptor, next.data, `${from}: manifest`);
      const image = await visit({ ...next, mediaType: descriptor.mediaType }, depth + 1, named || known !== undefined);
      if (image !== undefined) return image;
    }
    return undefined;
  };
  const finish = async (
    manifest: Uint8Array,
    { mediaType, config, layers }: Extract<ReturnType<typeof parseImageManifest>, { kind: 'image' }>,
    named: boolean,
  ): Promise<PlatformImage> => {
    const { data } = await read(config, 'config', CONFIG_LIMIT);
    checkBytes(config, data, `${from}: config`);
    const imageConfig = parseConfig(data, layers.length, `${from}: config`);
    const by = named ? 'index' : anyPlatform ? 'user' : undefined;
    if (!isFor(imageConfig, platform, by)) throw otherPlatform(from, required, imageConfig, name);
    const typed = withConfigType(manifest, config, from);
    return { mediaType, manifest: typed.manifest, config: { descriptor: typed.config, data }, layers };
  };
  const image = await visit(first, 0, false);
  if (image !== undefined) return image;
  if (seen !== '') throw notFor(from, required, seen);
  throw new CurlewError('UNSUPPORTED', `${from}: its index lists no image for ${required}`, {
    hint: `use another image${name === '' ? '' : `, or one of its manifests: ${name}@sha256:…`}`,
  });
}

/** Names the type of a config that has none, as containerd does when it pulls: what it imports without one it does not unpack. */
function withConfigType(
  manifest: Uint8Array,
  config: Descriptor,
  from: string,
): { readonly manifest: Uint8Array; readonly config: Descriptor } {
  if (config.mediaType !== UNTYPED_CONFIG) return { manifest, config };
  const typed = { ...config, mediaType: DOCKER_CONFIG };
  return { manifest: Buffer.from(canonicalJson({ ...parseOciObject(manifest, from), config: typed })), config: typed };
}

/** The error for an image with this config; `name` is that of the image without its tag. */
export function otherPlatform(from: string, required: string, { os, arch }: PlatformNames, name: string): CurlewError {
  if (arch !== '' || (os !== '' && os !== 'linux'))
    return notFor(from, required, [os, arch].filter((part) => part !== '').join('/'));
  return new CurlewError('UNSUPPORTED', `${from}: not for ${required}, but without a platform`, {
    hint: `if it contains only data, or runs everywhere, accept it by name: --any-platform ${name}`,
  });
}

function notFor(from: string, required: string, platforms: string): CurlewError {
  const others = ARCHES.map((arch) => `linux/${arch}`).filter((one) => one !== required);
  const isPackaged = platforms.split(', ').some((one) => others.some((other) => one.startsWith(other)));
  return new CurlewError('UNSUPPORTED', `${from}: not for ${required}, but for ${platforms.slice(0, 200)}`, {
    hint: isPackaged ? 'choose the platform with --arch, or another image' : 'use another image',
  });
}
