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
  /** Of the uncompressed tar. */
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

/** A gzip'd layer of these files. Level 1: what counts is that it is one, not how small. */
export function makeLayer(files: Readonly<Record<string, Uint8Array | string>>, kind: ManifestKind = 'oci'): Layer {
  const tar = plainTar(files);
  const data = gzipSync(tar, { level: 1 });
  return { digest: digestOf(data), data, diffId: digestOf(tar), mediaType: TYPES[kind].layer };
}

/** An image for linux/amd64 of these layers, as an OCI or a Docker schema 2 manifest. */
export function makeImage(layers: readonly Layer[], kind: ManifestKind = 'oci', label = 'test'): Image {
  const types = TYPES[kind];
  const config = blobOf({
    architecture: 'amd64',
    os: 'linux',
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

function blobOf(value: unknown): Blob {
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
