/** Finds a platform's manifest from a reference's first manifest, for registries and archives alike. */
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { formatPlatform, type Descriptor, type Platform } from './image.ts';
import {
  CONFIG_LIMIT,
  DOCKER_LIST,
  MANIFEST_LIMIT,
  OCI_INDEX,
  parseConfig,
  parseManifest,
  type IndexEntry,
} from './manifest.ts';

export interface FoundManifest {
  readonly data: Uint8Array;
  /** The type that the source reports, if any. */
  readonly mediaType: string | undefined;
}

/** Reads a whole manifest or config of at most `limit` bytes. */
export type ReadSmall = (descriptor: Descriptor, kind: 'manifest' | 'config', limit: number) => Promise<FoundManifest>;

export interface PlatformImage {
  readonly mediaType: string;
  readonly manifest: Uint8Array;
  readonly config: { readonly descriptor: Descriptor; readonly data: Uint8Array };
  readonly layers: readonly Descriptor[];
}

const DEEPEST_INDEX = 3;

/** Variants that run on every machine of an architecture, the most generic first. */
const VARIANTS: Readonly<Record<Platform['arch'], readonly (string | undefined)[]>> = {
  amd64: [undefined, 'v1'],
  arm64: ['v8', undefined],
};

function isIndexType({ descriptor }: IndexEntry): boolean {
  return descriptor.mediaType === OCI_INDEX || descriptor.mediaType === DOCKER_LIST;
}

/** The entries to visit, best first: those of the platform by variant, otherwise indexes without a platform. */
function chooseEntries(entries: readonly IndexEntry[], { os, arch }: Platform): readonly IndexEntry[] {
  const fitting = entries.filter(({ platform }) => platform?.os === os && platform.arch === arch);
  const byVariant = VARIANTS[arch].flatMap((variant) =>
    fitting.filter(({ platform }) => platform?.variant === variant),
  );
  const nested = entries.filter((entry) => entry.platform === undefined && isIndexType(entry));
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
  const found = digestOf(data);
  if (found !== digest) throw new CurlewError('DIGEST_MISMATCH', `${from}: is ${found}, expected ${digest}`);
}

/**
 * Walks from a manifest or index to the platform's image and reads its config; verifies everything read by digest. Throws
 * `UNSUPPORTED` if the platform is missing, `IMAGE_INVALID` and `DIGEST_MISMATCH` for invalid content.
 */
export async function platformImage(
  first: FoundManifest,
  read: ReadSmall,
  platform: Platform,
  from: string,
): Promise<PlatformImage> {
  const required = formatPlatform(platform);
  let seen = '';
  let budget = 16;
  const visit = async (found: FoundManifest, depth: number, named: boolean): Promise<PlatformImage | undefined> => {
    const parsed = parseManifest(found.data, found.mediaType, from);
    if (parsed.kind === 'image') return finish(found.data, parsed, named);
    if (depth >= DEEPEST_INDEX) throw new CurlewError('IMAGE_INVALID', `${from}: indexes are nested too deeply`);
    seen = [seen, platformsOf(parsed.manifests)].filter((text) => text !== '').join(', ');
    for (const { descriptor, platform: known } of chooseEntries(parsed.manifests, platform)) {
      budget -= 1;
      if (budget < 0 || descriptor.size > MANIFEST_LIMIT) {
        throw new CurlewError('IMAGE_INVALID', `${from}: too many or too large manifests in its index`);
      }
      const next = await read(descriptor, 'manifest', MANIFEST_LIMIT);
      checkBytes(descriptor, next.data, `${from}: manifest`);
      const image = await visit({ ...next, mediaType: descriptor.mediaType }, depth + 1, known !== undefined);
      if (image !== undefined) return image;
    }
    return undefined;
  };
  const finish = async (
    manifest: Uint8Array,
    { mediaType, config, layers }: Extract<ReturnType<typeof parseManifest>, { kind: 'image' }>,
    named: boolean,
  ): Promise<PlatformImage> => {
    const { data } = await read(config, 'config', CONFIG_LIMIT);
    checkBytes(config, data, `${from}: config`);
    const { os, arch } = parseConfig(data, layers.length, `${from}: config`);
    // An index takes precedence over a config: some builders write the build machine's platform into the config.
    if (!named && (os !== platform.os || arch !== platform.arch)) {
      throw otherPlatform(from, required, [os, arch].filter((part) => part !== '').join('/'));
    }
    return { mediaType, manifest, config: { descriptor: config, data }, layers };
  };
  const image = await visit(first, 0, false);
  if (image === undefined) throw otherPlatform(from, required, seen);
  return image;
}

export function otherPlatform(from: string, required: string, found: string): CurlewError {
  const what = found === '' ? 'without a platform' : `for ${found.slice(0, 200)}`;
  return new CurlewError('UNSUPPORTED', `${from}: not for ${required}, but ${what}`, {
    hint: 'choose the platform with --arch, or another image',
  });
}
