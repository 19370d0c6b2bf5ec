/** Real images made in memory: layers, config, manifest, and their way into any registry by the distribution API. */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';
import { digestOf, type Digest } from '../../src/core/digest.ts';

export interface Blob {
  readonly digest: Digest;
  readonly data: Uint8Array;
}

export interface Layer extends Blob {
  /** Digest of the uncompressed tar. */
  readonly diffId: Digest;
  readonly mediaType: string;
}

export interface Image {
  readonly config: Blob;
  readonly manifest: Blob;
  readonly manifestType: string;
  readonly layers: readonly Layer[];
}

export type ManifestKind = 'oci' | 'docker';

const TYPES = {
  oci: {
    manifest: 'application/vnd.oci.image.manifest.v1+json',
    config: 'application/vnd.oci.image.config.v1+json',
    layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  },
  docker: {
    manifest: 'application/vnd.docker.distribution.manifest.v2+json',
    config: 'application/vnd.docker.container.image.v1+json',
    layer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
  },
} as const;

/** An uncompressed tar of these files, with nothing of this machine or time in it. */
export function plainTar(files: Readonly<Record<string, Uint8Array | string>>): Buffer {
  const parts: Buffer[] = [];
  for (const [path, content] of Object.entries(files)) {
    const data = Buffer.from(content);
    const block = Buffer.alloc(512);
    const header = new Header({ path, mode: 0o644, uid: 0, gid: 0, size: data.byteLength, type: 'File' });
    header.mtime = new Date(0);
    header.encode(block);
    parts.push(block, data, Buffer.alloc((512 - (data.byteLength % 512)) % 512));
  }
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

export type LayerPacking = 'gzip' | 'zstd' | 'none';

/** A layer of these files. gzip at level 1, zstd in raw blocks: what counts is that it is one, not how small. */
export function makeLayer(
  files: Readonly<Record<string, Uint8Array | string>>,
  kind: ManifestKind = 'oci',
  packing: LayerPacking = 'gzip',
): Layer {
  const tar = plainTar(files);
  const data = { gzip: () => gzipSync(tar, { level: 1 }), zstd: () => rawZstd(tar), none: () => tar }[packing]();
  const gzip = TYPES[kind].layer;
  const plain = gzip.replace(/[.+]gzip$/, '');
  const mediaType = { gzip, zstd: `${plain}${kind === 'oci' ? '+' : '.'}zstd`, none: plain }[packing];
  return { digest: digestOf(data), data, diffId: digestOf(tar), mediaType };
}

/** A zstd frame of raw blocks (RFC 8878, 3.1.1): magic, a header with the content's size, blocks of at most 128 KiB. */
export function rawZstd(data: Buffer): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32LE(0xfd2fb528, 0);
  head.writeUInt8(0xe0, 4);
  head.writeBigUInt64LE(BigInt(data.byteLength), 5);
  const parts: Buffer[] = [head];
  for (let at = 0; at < data.byteLength; at += 131_072) {
    const block = data.subarray(at, at + 131_072);
    const isLast = at + 131_072 >= data.byteLength;
    const blockHead = Buffer.alloc(3);
    blockHead.writeUIntLE((block.byteLength << 3) | (isLast ? 1 : 0), 0, 3);
    parts.push(blockHead, block);
  }
  return Buffer.concat(parts);
}

/** An image for linux of these layers, as an OCI or a Docker schema 2 manifest. */
export function makeImage(
  layers: readonly Layer[],
  kind: ManifestKind = 'oci',
  label = 'test',
  architecture = 'amd64',
  os = 'linux',
): Image {
  const types = TYPES[kind];
  const config = blobOf({
    architecture,
    os,
    created: '1970-01-01T00:00:00Z',
    config: { Cmd: ['/none'], Labels: { label } },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created: '1970-01-01T00:00:00Z', created_by: 'test' })),
  });
  const manifest = blobOf({
    schemaVersion: 2,
    mediaType: types.manifest,
    config: { mediaType: types.config, digest: config.digest, size: config.data.byteLength },
    layers: layers.map(({ mediaType, digest, data }) => ({ mediaType, digest, size: data.byteLength })),
  });
  return { config, manifest, manifestType: types.manifest, layers };
}

/** An image index or Docker manifest list over images of several platforms, given as `linux/arm64/v8`. */
export interface Index {
  readonly manifest: Blob;
  readonly manifestType: string;
  readonly images: readonly (Image | Index)[];
}

export function makeIndex(
  rows: readonly { readonly platform: string | undefined; readonly image: Image | Index }[],
  kind: ManifestKind = 'oci',
): Index {
  const manifestType =
    kind === 'oci'
      ? 'application/vnd.oci.image.index.v1+json'
      : 'application/vnd.docker.distribution.manifest.list.v2+json';
  const manifests = rows.map(({ platform, image }) => {
    const [os, architecture, variant] = platform?.split('/') ?? [];
    const { digest, data } = image.manifest;
    const named =
      platform === undefined ? {} : { platform: { os, architecture, ...(variant === undefined ? {} : { variant }) } };
    return { mediaType: image.manifestType, digest, size: data.byteLength, ...named };
  });
  return {
    manifest: blobOf({ schemaVersion: 2, mediaType: manifestType, manifests }),
    manifestType,
    images: rows.map(({ image }) => image),
  };
}

/** Descriptor of the bytes of a JSON value, as manifests and configs have it. */
export function blobOf(value: unknown): Blob {
  const data = Buffer.from(JSON.stringify(value));
  return { digest: digestOf(data), data };
}

/** Puts an image into a registry without login, byte for byte. `host` such as `127.0.0.1:5000`. */
export async function pushImage(host: string, repository: string, tag: string, image: Image): Promise<void> {
  const base = `http://${host}/v2/${repository}`;
  for (const blob of [...image.layers, image.config]) await pushBlob(base, blob);
  const answer = await fetch(`${base}/manifests/${tag}`, {
    method: 'PUT',
    headers: { 'content-type': image.manifestType },
    body: image.manifest.data,
  });
  if (!answer.ok) throw new Error(`push ${repository}:${tag}: ${answer.status} ${await answer.text()}`);
}

async function pushBlob(base: string, { digest, data }: Blob): Promise<void> {
  const known = await fetch(`${base}/blobs/${digest}`, { method: 'HEAD' });
  if (known.ok) return;
  const begun = await fetch(`${base}/blobs/uploads/`, { method: 'POST' });
  const location = begun.headers.get('location');
  if (location === null) throw new Error(`push ${base}: ${begun.status}`);
  const target = new URL(location, base);
  target.searchParams.set('digest', digest);
  const answer = await fetch(target, {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body: data,
  });
  if (!answer.ok) throw new Error(`push ${digest}: ${answer.status} ${await answer.text()}`);
}

/** Bytes that compress as badly as real binaries do: `share` of every 4 KiB is noise, the rest zeros. */
export function binaryLike(size: number, seed: string, share = 0.6): Buffer {
  const bytes = Buffer.alloc(size);
  const noisy = Math.round(4096 * share);
  const key = createHash('sha256').update(seed).digest();
  let state = key.readUInt32LE(0) || 1;
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, Math.floor(size / 4));
  for (let page = 0; page < words.length; page += 1024) {
    const end = Math.min(words.length, page + noisy / 4);
    for (let at = page; at < end; at += 1) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      words[at] = state;
    }
  }
  return bytes;
}
