/**
 * kURL's form of an image: one archive in the format of `docker save`, for `docker load` and containerd's import. The planner is
 * pure; equal images give equal lists. Layers keep their compression: all readers detect it from the bytes.
 */
import { canonicalJson, hexOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, parseText, shallowJson } from '../../core/json.ts';
import type { Descriptor, ResolvedImage } from './image.ts';
import type { BadArchive } from './unpacked.ts';

export interface ArchiveFile {
  readonly path: string;
  readonly size: number;
  /** The bytes themselves, or the blob that holds them. */
  readonly content:
    | { readonly kind: 'data'; readonly data: Uint8Array }
    | { readonly kind: 'blob'; readonly descriptor: Descriptor };
}

function dataFile(path: string, data: Uint8Array): ArchiveFile {
  return { path, size: data.byteLength, content: { kind: 'data', data } };
}

function extensionOf({ mediaType }: Descriptor): string {
  if (mediaType.endsWith('gzip')) return 'tar.gz';
  return mediaType.endsWith('zstd') ? 'tar.zst' : 'tar';
}

/**
 * The files of the archive in tar order: `manifest.json` first, so that readers know the content in advance, the config, the
 * layers from the lowest, each once. Throws `UNSUPPORTED` for an image without a tag to load it under.
 */
export function planDockerArchive(image: ResolvedImage): readonly ArchiveFile[] {
  const tags = image.names.filter((name) => !name.includes('@'));
  if (tags.length === 0) {
    throw new CurlewError('UNSUPPORTED', `${image.reference}: an archive in docker's format requires a tag`, {
      hint: 'write name:tag@sha256:…, or use the OCI format',
    });
  }
  const configPath = `${hexOf(image.config.descriptor.digest)}.json`;
  const layerPath = (layer: Descriptor): string => `${hexOf(layer.digest)}.${extensionOf(layer)}`;
  const layers = new Map<string, ArchiveFile>(
    image.layers.map((descriptor) => [
      layerPath(descriptor),
      {
        path: layerPath(descriptor),
        size: descriptor.size,
        content: { kind: 'blob', descriptor },
      },
    ]),
  );
  const manifest = [{ Config: configPath, RepoTags: tags, Layers: image.layers.map(layerPath) }];
  return [
    dataFile('manifest.json', Buffer.from(`${canonicalJson(manifest)}\n`)),
    dataFile(configPath, image.config.data),
    ...layers.values(),
  ];
}

/** The rows of an archive's `manifest.json`; what has another form is left out. */
export function readDockerManifest(
  data: Uint8Array,
  bad: BadArchive,
): readonly {
  readonly config: string | undefined;
  readonly tags: readonly string[];
  readonly layers: readonly string[];
}[] {
  const list = parseText(Buffer.from(data).toString(), shallowJson, (what, cause) =>
    bad(`manifest.json: ${what}`, cause),
  );
  return (Array.isArray(list) ? (list as readonly unknown[]) : []).map((row) => {
    const { Config: config, RepoTags: tags, Layers: layers } = fieldsOf(row);
    return { config: typeof config === 'string' ? config : undefined, tags: textsIn(tags), layers: textsIn(layers) };
  });
}

/** The texts of a list; none of anything else. */
export function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
