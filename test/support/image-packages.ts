/** Packages with images, unpacked into a folder as a node has them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { dirname, join } from 'node:path';
import { hexOf, type Digest } from '../../src/core/digest.ts';
import { formatImageRef, imageNames, parseImageRef, type ImageRef } from '../../src/core/image-ref.ts';
import type { PackageImage } from '../../src/core/package.ts';
import type { ResolvedImage } from '../../src/formats/oci/image.ts';
import { planDockerArchive } from '../../src/formats/oci/docker-archive.ts';
import { formatImageLayout } from '../../src/formats/oci/oci-layout.ts';
import { folderFiles } from '../../src/runtime/images/folder-files.ts';
import { packageImages, type RequiredImage } from '../../src/runtime/images/required-images.ts';
import { plainTar, type Image } from './images.ts';

export interface ImagePackage {
  /** Holds `images/`. */
  readonly folder: string;
  readonly images: readonly PackageImage[];
  readonly wanted: () => readonly RequiredImage[];
}

/** References to images. */
export type Images = Readonly<Record<string, Image>>;

export const NODE_PLATFORM = 'linux/amd64';

function refOf(text: string): ImageRef {
  const ref = parseImageRef(text);
  if (typeof ref === 'string') throw new Error(ref);
  return ref;
}

function resolved(reference: string, { manifest, manifestType, config, layers }: Image): ResolvedImage {
  const ref = refOf(reference);
  const descriptor = {
    mediaType: 'application/vnd.oci.image.config.v1+json',
    digest: config.digest,
    size: config.data.byteLength,
  };
  return {
    reference: formatImageRef(ref),
    names: imageNames(ref),
    resolved: manifest.digest,
    digest: manifest.digest,
    mediaType: manifestType,
    manifest: manifest.data,
    config: { descriptor, data: config.data },
    layers: layers.map(({ mediaType, digest, data }) => ({ mediaType, digest, size: data.byteLength })),
    platform: NODE_PLATFORM,
    fetch: async () => undefined,
  };
}

function listed(reference: string, id: string, image: Image): PackageImage {
  return { id, reference: formatImageRef(refOf(reference)), digest: image.manifest.digest, platform: NODE_PLATFORM };
}

/** Works like `build`: one OCI layout. */
export async function writeLayout(folder: string, images: Images): Promise<ImagePackage> {
  const rows = Object.entries(images).map(([reference, image], at) => ({ id: `image${at}`, reference, image }));
  const layout = formatImageLayout(rows.map(({ id, reference, image }) => ({ id, image: resolved(reference, image) })));
  const layers = rows.flatMap(({ image }) =>
    image.layers.map(({ digest, data }) => ({ path: blobPath(digest), data })),
  );
  for (const { path, data } of [...layout.files, ...layers]) {
    await mkdir(dirname(join(folder, 'images', path)), { recursive: true });
    await writeFile(join(folder, 'images', path), data);
  }
  const list = rows.map(({ id, reference, image }) => listed(reference, id, image));
  return {
    folder,
    images: list,
    wanted: () => packageImages(folderFiles(folder), { images: list, imageFormat: 'oci' }, NODE_PLATFORM),
  };
}

export function blobPath(digest: Digest): string {
  return `blobs/sha256/${hexOf(digest)}`;
}

/** Works like `build --image-format docker-archive`. */
export async function writeArchives(folder: string, images: Images): Promise<ImagePackage> {
  const list: PackageImage[] = [];
  await mkdir(join(folder, 'images'), { recursive: true });
  for (const [reference, image] of Object.entries(images)) {
    const id = `image${list.length}`;
    const blobs = new Map(image.layers.map(({ digest, data }) => [digest, data]));
    const files = planDockerArchive(resolved(reference, image)).map(
      ({ path, content }) =>
        [path, content.kind === 'data' ? content.data : (blobs.get(content.descriptor.digest) ?? '')] as const,
    );
    await writeFile(join(folder, `images/${id}.tar.gz`), gzipSync(plainTar(Object.fromEntries(files)), { level: 1 }));
    list.push(listed(reference, id, image));
  }
  return {
    folder,
    images: list,
    wanted: () => packageImages(folderFiles(folder), { images: list, imageFormat: 'docker-archive' }, NODE_PLATFORM),
  };
}
