/**
 * kURL's form of images: one gzip'd `docker save` archive per id. Its digest is part of the package's first entry, so
 * each archive is made on disk before the package is laid out.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { crc32 } from 'node:zlib';
import { paddingOf, TAR_END, tarHeader } from '../archive/header.ts';
import { BLOCK, MEMBER_HEADER, memberTrailer, writeBlockHeader } from '../archive/member.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { packagePath } from '../core/layout.ts';
import { planDockerArchive, type ArchiveFile } from '../registry/docker-archive.ts';
import { chunksOf } from './chunks.ts';
import { measureFile } from './assets.ts';
import type { ContentFile } from './compile.ts';
import type { StepImage } from './images.ts';
import type { BuildPorts } from './ports.ts';

interface Options {
  readonly scratch: string;
  readonly ports: Pick<BuildPorts, 'lanes'>;
  readonly signal: AbortSignal;
}

/** Makes `images/<id>.tar.gz` for every image, one after another. */
export async function dockerArchiveFiles(
  images: readonly StepImage[],
  { scratch, ports, signal }: Options,
): Promise<readonly ContentFile[]> {
  const files: ContentFile[] = [];
  for (const [at, { step, image }] of images.entries()) {
    const path = join(scratch, `${at}.docker.tar.gz`);
    const planned = planDockerArchive(image);
    await ports.lanes.run(async () => {
      try {
        const tar = tarOf(planned, image, signal);
        await pipeline(Readable.from(framed(tar)), createWriteStream(path, { flags: 'wx' }), { signal });
      } catch (error) {
        if (error instanceof CurlewError || signal.aborted) throw error;
        throw fileError(`write the archive of image ${step.id}`, error);
      }
    }, signal);
    const { size, digest } = await measureFile(path, `image ${step.id}`, { signal });
    const name = packagePath.dockerArchive(step.id);
    files.push({ path: name, mode: 0o644, size, digest, content: { kind: 'path', path } });
  }
  return files;
}

async function* tarOf(
  files: readonly ArchiveFile[],
  image: StepImage['image'],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (const { path, size, content } of files) {
    yield tarHeader({ path, mode: 0o644, size, linkTo: undefined });
    if (content.kind === 'data') yield content.data;
    else yield* verifiedBlob(content.descriptor, image, signal);
    yield new Uint8Array(paddingOf(size));
  }
  yield new Uint8Array(TAR_END);
}

async function* verifiedBlob(
  descriptor: Extract<ArchiveFile['content'], { kind: 'blob' }>['descriptor'],
  image: StepImage['image'],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const hash = createHash('sha256');
  for await (const chunk of chunksOf(async (write) => image.fetch(descriptor, { from: 0, write, signal }))) {
    hash.update(chunk);
    yield chunk;
  }
  const got = `sha256:${hash.digest('hex')}`;
  if (got !== descriptor.digest) throw new CurlewError('DIGEST_MISMATCH', `blob ${descriptor.digest}: got ${got}`);
}

/** One stored gzip member around a stream: its bytes depend on the content alone. */
async function* framed(raw: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  yield MEMBER_HEADER;
  let block: Uint8Array = Buffer.allocUnsafe(5 + BLOCK);
  let filled = 0;
  let size = 0;
  let checksum = 0;
  for await (const chunk of raw) {
    checksum = crc32(chunk, checksum);
    size += chunk.byteLength;
    for (let at = 0; at < chunk.byteLength;) {
      if (filled === BLOCK) {
        writeBlockHeader(block, 0, BLOCK, false);
        yield block;
        block = Buffer.allocUnsafe(5 + BLOCK);
        filled = 0;
      }
      const part = chunk.subarray(at, at + BLOCK - filled);
      block.set(part, 5 + filled);
      filled += part.byteLength;
      at += part.byteLength;
    }
  }
  writeBlockHeader(block, 0, filled, true);
  yield block.subarray(0, 5 + filled);
  yield memberTrailer(checksum, size);
}
