/**
 * kURL's form of images: one gzipped `docker save` archive per id. Its digest is part of the package's first entry, so each
 * archive is written to disk before the package is laid out.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { crc32 } from 'node:zlib';
import { paddingOf, TAR_END, tarHeader } from '../formats/archive/header.ts';
import { BLOCK, MEMBER_HEADER, memberTrailer, writeBlockHeader } from '../formats/archive/member.ts';
import type { Bytes } from '../core/bytes.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError, errorAbout, fileError } from '../core/errors.ts';
import { packagePath } from '../core/layout.ts';
import { checkArchiveLayers, type Layer } from '../formats/oci/check-layers.ts';
import { type ArchiveFile, planDockerArchive } from '../formats/oci/docker-archive.ts';
import { alteredHint, type Descriptor, type ResolvedImage } from '../formats/oci/image.ts';
import { unpacked } from '../formats/oci/unpacked.ts';
import { pulled } from '../platform/limit/pulled.ts';
import { failureElsewhere } from './blobs.ts';
import { measureFile } from './assets.ts';
import type { ContentFile } from './compile.ts';
import { layersOfImage, type StepImage } from './images.ts';
import type { BuildPorts } from './ports.ts';

interface Options {
  readonly scratch: string;
  readonly ports: Pick<BuildPorts, 'transfers' | 'layers'>;
  readonly signal: AbortSignal;
}

/** Creates `images/<id>.tar.gz` for every image, one after the other. */
export async function dockerArchiveFiles(
  images: readonly StepImage[],
  { scratch, ports, signal }: Options,
): Promise<readonly ContentFile[]> {
  const files: ContentFile[] = [];
  for (const [at, one] of images.entries()) {
    const { step, image } = one;
    const path = join(scratch, `${at}.docker.tar.gz`);
    const planned = planDockerArchive(image);
    await ports.transfers.run(
      async () => {
        try {
          await writeArchive(planned, image, path, signal);
        } catch (error) {
          if (error instanceof CurlewError || signal.aborted) throw error;
          throw fileError(`write the archive of image ${step.id}`, error);
        }
      },
      { signal },
    );
    const { size, digest } = await measureFile(path, `read the archive of image ${step.id}`, { signal });
    await checkArchive(path, size, { planned, one, layers: ports.layers, signal });
    const name = packagePath.dockerArchive(step.id);
    files.push({ path: name, mode: 0o644, size, digest, content: { kind: 'path', path } });
  }
  return files;
}

interface CheckOptions {
  readonly planned: readonly ArchiveFile[];
  readonly one: StepImage;
  readonly layers: BuildPorts['layers'];
  readonly signal: AbortSignal;
}

async function checkArchive(path: string, size: number, { planned, one, layers, signal }: CheckOptions): Promise<void> {
  const layersAt = (name: string): readonly Layer[] => {
    const content = planned.find((file) => file.path === name)?.content;
    if (content?.kind !== 'blob') return [];
    return layersOfImage(one).filter(({ descriptor }) => descriptor.digest === content.descriptor.digest);
  };
  const bad = errorAbout('IMAGE_INVALID', `image ${one.step.id}: its archive`);
  const tar = unpacked(createReadStream(path, { highWaterMark: 1 << 20 }), { size }, bad);
  await checkArchiveLayers(tar, layersAt, { check: layers.check, signal });
}

/** A blob had wrong bytes, and there is another source. */
class RetryElsewhere extends Error {
  readonly wrong: CurlewError;
  constructor(wrong: CurlewError) {
    super(wrong.message);
    this.wrong = wrong;
  }
}

/** How many sources to skip, by digest, for blobs that the image's first sources have wrong. */
type Skipped = Map<Digest, number>;

/** A digest is known only after the whole blob: if it is wrong, the archive starts again, without that source. */
async function writeArchive(
  files: readonly ArchiveFile[],
  image: ResolvedImage,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  const skipped: Skipped = new Map();
  let wrong: CurlewError | undefined;
  for (;;) {
    try {
      const tar = tarOf(files, (descriptor) => verifiedBlob(descriptor, image, skipped, signal));
      await pipeline(Readable.from(framed(tar)), createWriteStream(path), { signal });
      return;
    } catch (error) {
      if (!(error instanceof RetryElsewhere)) throw failureElsewhere(wrong, error);
      ({ wrong } = error);
    }
  }
}

async function* tarOf(files: readonly ArchiveFile[], blob: (descriptor: Descriptor) => Bytes): Bytes {
  for (const { path, size, content } of files) {
    yield tarHeader({ path, mode: 0o644, size, linkTo: undefined });
    if (content.kind === 'data') yield content.data;
    else yield* blob(content.descriptor);
    yield new Uint8Array(paddingOf(size));
  }
  yield new Uint8Array(TAR_END);
}

async function* verifiedBlob(
  descriptor: Descriptor,
  image: ResolvedImage,
  skipped: Skipped,
  signal: AbortSignal,
): Bytes {
  const { digest } = descriptor;
  const hash = createHash('sha256');
  const sent: { next?: number | undefined } = {};
  const bytes = pulled(
    async (write, context) => {
      sent.next = await image.fetch(descriptor, { from: 0, write, skip: skipped.get(digest), ...context });
    },
    { signal },
  );
  for await (const chunk of bytes) {
    hash.update(chunk);
    yield chunk;
  }
  const got = `sha256:${hash.digest('hex')}`;
  if (got === digest) return;
  const wrong = new CurlewError('DIGEST_MISMATCH', `image ${image.reference}: layer ${digest}: got ${got}`, {
    hint: alteredHint(image),
  });
  if (sent.next === undefined) throw wrong;
  skipped.set(digest, sent.next);
  throw new RetryElsewhere(wrong);
}

/** One stored gzip member around a stream: its bytes depend only on the content. */
async function* framed(raw: AsyncIterable<Uint8Array>): Bytes {
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
