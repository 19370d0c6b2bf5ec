/**
 * The files of a package's `images/`: one OCI image layout for all its images, which `docker load` also accepts. Pure; equal
 * images give equal bytes. Source: OCI image-spec 1.1 (image layout), containerd's import (names).
 */
import { canonicalJson, hexOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { compareText } from '../../core/ref.ts';
import type { Descriptor, ResolvedImage } from './image.ts';
import { OCI_INDEX } from './manifest.ts';

/** The data of an image that a layout uses; the caller fetches its layers. */
export type LaidOutImage = Omit<ResolvedImage, 'fetch'>;

export interface LayoutImage<Image extends LaidOutImage = ResolvedImage> {
  /** The id of the Manifest's `image` line, for messages. */
  readonly id: string;
  readonly image: Image;
}

export interface LayoutFile {
  /** Relative to `images/`. */
  readonly path: string;
  readonly data: Uint8Array;
}

export interface LayoutBlob<Image extends LaidOutImage = ResolvedImage> {
  readonly path: string;
  readonly descriptor: Descriptor;
  /** An image that contains it. */
  readonly image: Image;
}

export interface ImageLayout<Image extends LaidOutImage = ResolvedImage> {
  /** All files whose bytes are known: the layout's own files, manifests, configs; sorted by path. */
  readonly files: readonly LayoutFile[];
  /** Layers to fetch, each once, sorted by path. */
  readonly blobs: readonly LayoutBlob<Image>[];
}

function blobPath(digest: Digest): string {
  return `blobs/sha256/${hexOf(digest)}`;
}

function json(value: unknown): Uint8Array {
  return Buffer.from(`${canonicalJson(value)}\n`);
}

interface NamedImage {
  readonly name: string;
  readonly image: LaidOutImage;
}

/** One row per name; throws if two different images have the same name. */
function namedImages(images: readonly LayoutImage<LaidOutImage>[]): readonly NamedImage[] {
  const rows = new Map<string, { readonly id: string; readonly image: LaidOutImage }>();
  for (const { id, image } of images) {
    for (const name of image.names) {
      const other = rows.get(name);
      if (other !== undefined && other.image.digest !== image.digest) {
        throw new CurlewError('IMAGE_INVALID', `images ${other.id} and ${id} are different, but both named ${name}`);
      }
      rows.set(name, { id, image });
    }
  }
  return [...rows].map(([name, { image }]) => ({ name, image })).toSorted((a, b) => compareText(a.name, b.name));
}

function indexOf(named: readonly NamedImage[]): unknown {
  const manifests = named.map(({ name, image }) => {
    const [os = '', architecture = ''] = image.platform.split('/');
    return {
      mediaType: image.mediaType,
      digest: image.digest,
      size: image.manifest.byteLength,
      // containerd reads the first, other tools the second. A bare tag would be imported under an invented name.
      annotations: { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name },
      platform: { os, architecture },
    };
  });
  return { schemaVersion: 2, mediaType: OCI_INDEX, manifests };
}

/** The manifest.json that `docker load` reads; names with digests are not supported there. */
function dockerManifest(named: readonly NamedImage[]): unknown {
  const byDigest = new Map<Digest, { readonly image: LaidOutImage; readonly tags: string[] }>();
  for (const { name, image } of named) {
    const row = byDigest.get(image.digest) ?? { image, tags: [] };
    if (!name.includes('@')) row.tags.push(name);
    byDigest.set(image.digest, row);
  }
  return [...byDigest.values()].map(({ image, tags }) => ({
    Config: blobPath(image.config.descriptor.digest),
    RepoTags: tags,
    Layers: image.layers.map(({ digest }) => blobPath(digest)),
  }));
}

/**
 * Creates the layout. Manifests and configs are kept byte for byte. An image that is pinned by digest is also named
 * `repo@sha256:…` as written, even if that is an index's digest: the name leads to the platform's manifest, since the layout
 * must not point to other platforms' manifests, which it does not contain.
 */
export function formatImageLayout<Image extends LaidOutImage>(
  images: readonly LayoutImage<Image>[],
): ImageLayout<Image> {
  const named = namedImages(images);
  const files = new Map<string, Uint8Array>([
    ['oci-layout', Buffer.from('{"imageLayoutVersion":"1.0.0"}')],
    ['index.json', json(indexOf(named))],
    ['manifest.json', json(dockerManifest(named))],
  ]);
  const blobs = new Map<string, LayoutBlob<Image>>();
  for (const { image } of images) {
    files.set(blobPath(image.digest), image.manifest);
    files.set(blobPath(image.config.descriptor.digest), image.config.data);
    for (const descriptor of image.layers) {
      const path = blobPath(descriptor.digest);
      const known = blobs.get(path);
      if (known !== undefined && known.descriptor.size !== descriptor.size) {
        throw new CurlewError('IMAGE_INVALID', `two images give ${descriptor.digest} different sizes`);
      }
      if (known === undefined) blobs.set(path, { path, descriptor, image });
    }
  }
  return {
    files: [...files].map(([path, data]) => ({ path, data })).toSorted((a, b) => compareText(a.path, b.path)),
    // A hostile manifest may list another manifest as its layer: known bytes are not fetched.
    blobs: [...blobs.values()].filter(({ path }) => !files.has(path)).toSorted((a, b) => compareText(a.path, b.path)),
  };
}
