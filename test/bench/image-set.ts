/** The images that everything is measured on: made once, kept in the storage of a registry below .curlew/bench. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createHash, randomFillSync } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { digestOf } from '../../src/core/digest.ts';
import { makeImage, makeLayer, plainTar, pushImage, type Image, type Layer } from '../support/images.ts';

const IMAGES = 10;
const BASES = 3;
const BASE_BYTES = 230_000_000;
const OWN_BYTES = 47_000_000;
const LARGE_BYTES = 1_000_000_000;

/** Changes when the set does, so that an older one is made anew. */
const EDITION = `2: ${IMAGES} ${BASES} ${BASE_BYTES} ${OWN_BYTES} ${LARGE_BYTES}`;

export const SET: readonly string[] = Array.from({ length: IMAGES }, (_, index) => `set/image-${index}`);
export const LARGE = 'large/layer';

/** Folder of the set's registry; empty it when it holds another edition. */
export async function setFolder(root: string): Promise<{ readonly folder: string; readonly fresh: boolean }> {
  const folder = join(root, 'registry');
  const fresh = !existsSync(markOf(folder));
  if (fresh) await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  return { folder, fresh };
}

function markOf(folder: string): string {
  return join(folder, `complete-${digestOf(EDITION).slice(-12)}`);
}

/** Fills a registry with the set, and with one image whose only layer has a gigabyte. */
export async function fillRegistry(host: string, folder: string): Promise<void> {
  const bases = Array.from({ length: BASES }, (_, index) =>
    makeLayer({ 'usr/lib/base': programLike(BASE_BYTES, `base ${index}`) }, 'docker'),
  );
  for (const [index, repository] of SET.entries()) {
    const base = bases[index % BASES];
    if (base === undefined) throw new Error('no base');
    const own = ['usr/bin/program', 'usr/share/data'].map((path) =>
      makeLayer({ [path]: programLike(OWN_BYTES, `${repository} ${path}`) }, 'docker'),
    );
    await pushImage(host, repository, '1', makeImage([base, ...own], 'docker', repository));
  }
  await pushImage(host, LARGE, '1', largeImage());
  await writeFile(markOf(folder), '');
}

/** Larger than gzip's window, so that its ratio and speed stay those of the program. */
const BLOCK = 256 << 10;

/** Blocks of a real program, Node itself, in an order that the seed decides: gzip finds it as hard as what images hold. */
function programLike(size: number, seed: string): Buffer {
  const program = readFileSync(process.execPath);
  const blocks = Math.floor(program.byteLength / BLOCK);
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; at += BLOCK) {
    const key = createHash('sha256').update(`${seed} ${at}`).digest();
    const from = (key.readUInt32LE(0) % blocks) * BLOCK;
    program.copy(bytes, at, from, Math.min(from + BLOCK, from + size - at));
  }
  return bytes;
}

/** Noise, in a gzip that stores: what matters is the size. */
function largeImage(): Image {
  const tar = plainTar({ noise: randomFillSync(Buffer.allocUnsafe(LARGE_BYTES)) });
  const data = gzipSync(tar, { level: 0 });
  const layer: Layer = {
    data,
    digest: digestOf(data),
    diffId: digestOf(tar),
    mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip',
  };
  return makeImage([layer], 'oci', LARGE);
}

/** Digests of all blobs of the set, each once, with the repository that has it. */
export async function blobsOf(host: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const repository of SET) {
    const answer = await fetch(`http://${host}/v2/${repository}/manifests/1`, {
      headers: { accept: 'application/vnd.docker.distribution.manifest.v2+json' },
    });
    const manifest = (await answer.json()) as { config: { digest: string }; layers: { digest: string }[] };
    for (const { digest } of [manifest.config, ...manifest.layers]) found.set(digest, repository);
  }
  return found;
}

/** Path of a blob in the storage of Debian's registry. */
export function storedBlob(folder: string, digest: string): string {
  const hex = digest.replace('sha256:', '');
  return join(folder, 'storage/docker/registry/v2/blobs/sha256', hex.slice(0, 2), hex, 'data');
}
