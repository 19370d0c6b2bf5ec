import { execFileSync } from 'node:child_process';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { digestOf, type Digest } from '../../../src/core/digest.ts';
import { errorAbout } from '../../../src/core/errors.ts';
import { checkArchiveLayers, createLayerCheck, layersOf } from '../../../src/formats/oci/check-layers.ts';
import { layerContent } from '../../../src/formats/oci/layer-content.ts';
import { createUnpackWork, unpacked } from '../../../src/formats/oci/unpacked.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { makeLayer, plainTar } from '../../support/images.ts';
import { missing, unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';

const test = suite('formats/oci/check-layers');
const TAR = plainTar({ 'etc/motd': 'hello'.repeat(50_000) });
const TYPE = 'application/vnd.oci.image.layer.v1.tar';

async function* inPieces(data: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.byteLength; at += size) yield data.subarray(at, at + size);
}

/** Checks one layer with these bytes. */
async function check(data: Uint8Array, diffId: Digest = digestOf(TAR), mediaType = `${TYPE}+gzip`): Promise<void> {
  await using layers = createLayerCheck();
  const [layer] = layersOf('image x', [{ digest: digestOf(data), size: data.byteLength, mediaType }], [diffId]);
  if (layer === undefined) throw new Error('no layer');
  await layers.check(layer, () => inPieces(data), { signal: never });
}

async function refused(data: Uint8Array, what: RegExp, ...more: [Digest?, string?]): Promise<void> {
  const error = await assert.rejectsWith(check(data, ...more), 'IMAGE_INVALID');
  assert.match(error.message, /^image x: layer 1 of 1: /);
  assert.match(error.message, what);
  assert.match(error.hint ?? '', /container runtimes refuse it when they unpack it/);
}

test('a layer that unpacks to what the config names passes, whatever its compression', async () => {
  for (const packing of ['gzip', 'zstd', 'none'] as const) {
    for (const kind of ['oci', 'docker'] as const) {
      const { data, diffId, mediaType } = makeLayer({ a: 'a'.repeat(300_000) }, kind, packing);
      await check(data, diffId, mediaType);
    }
  }
  await check(gzipSync(Buffer.alloc(1024)), digestOf(Buffer.alloc(1024)));
  const members = Buffer.concat([gzipSync(TAR.subarray(0, 100)), gzipSync(TAR.subarray(100))]);
  await check(members);
});

test('a layer that unpacks to something else is refused with both digests', async () => {
  await refused(
    gzipSync(TAR),
    new RegExp(`unpacks to ${digestOf(TAR)}, but the config of the image names sha256:2{64}`),
    `sha256:${'2'.repeat(64)}`,
  );
});

test('what is no tar is refused by name', async () => {
  const zip = Buffer.from(`PK\u0003\u0004${'x'.repeat(2000)}`);
  await refused(zip, /it is a zip file, not a tar/, digestOf(zip));
  const xz = Buffer.concat([Buffer.from('fd377a585a00', 'hex'), Buffer.alloc(2000)]);
  await refused(xz, /it is xz, not a tar/);
  await refused(Buffer.from(`BZh9${'x'.repeat(2000)}`), /it is bzip2, not a tar/);
  await refused(gzipSync(gzipSync(TAR)), /it is gzip in gzip, not a tar/);
  await refused(gzipSync(Buffer.from('no tar'.repeat(200))), /it is not a tar/);
});

test('a layer that is cut, damaged or followed by other bytes is refused', async () => {
  const whole = gzipSync(TAR);
  await refused(Buffer.concat([whole, Buffer.from('tail')]), /other bytes follow the end of its gzip data/);
  await refused(Buffer.concat([whole, Buffer.alloc(512)]), /other bytes follow the end of its gzip data/);
  await refused(whole.subarray(0, -20), /gzip: unexpected end of file/);
  const damaged = Buffer.from(whole);
  damaged.writeUInt8(damaged.readUInt8(whole.byteLength - 6) ^ 1, whole.byteLength - 6);
  await refused(damaged, /gzip: incorrect data check|gzip: incorrect length check/);
  const zstd = makeLayer({ a: 'a'.repeat(300_000) }, 'oci', 'zstd');
  await refused(Buffer.concat([zstd.data, Buffer.from('behind the frame')]), /zstd: invalid zstd data/, zstd.diffId);
  await refused(zstd.data.subarray(0, -20), /zstd: unexpected EOF/, zstd.diffId);
});

test('a compressed layer with the type of a plain one is refused: containerd would not unpack it', async () => {
  await refused(
    gzipSync(TAR),
    /it is compressed, but its type is application\/vnd\.oci\.image\.layer\.v1\.tar/,
    digestOf(TAR),
    TYPE,
  );
});

/** A zstd frame with this window descriptor, of `count` blocks that each repeat one byte `length` times. */
function repeated(window: number, length: number, count: number): Buffer {
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, window]);
  const blocks = Array.from({ length: count }, (_, at) => {
    const block = Buffer.alloc(4);
    block.writeUIntLE((length << 3) | 2 | (at === count - 1 ? 1 : 0), 0, 3);
    return block;
  });
  return Buffer.concat([head, ...blocks]);
}

test('memory and work for hostile zstd are bounded, in every frame', async () => {
  const honest = repeated(0x38, 131_072, 1);
  await refused(repeated(0x90, 10, 4), /its zstd window of 268435456 bytes is larger than 134217728/);
  const skipped = Buffer.from('502a4d180400000000000000', 'hex');
  await refused(Buffer.concat([skipped, repeated(0x90, 10, 4)]), /its zstd window/);
  await refused(Buffer.concat([honest, repeated(0x90, 10, 4)]), /its zstd window/);
  const bomb = repeated(0x38, 131_072, 100);
  const read = async (): Promise<void> => {
    for await (const _ of unpacked(
      inPieces(bomb),
      { size: bomb.byteLength, allowed: 1 << 20 },
      errorAbout('IMAGE_INVALID', 'it'),
    ));
  };
  await assert.rejectsWith(read(), 'IMAGE_INVALID', /it unpacks to more than 1048576 bytes/);
});

test('of many layers with zstd, two windows are in memory at once', async () => {
  const data = repeated(0x38, 131_072, 40);
  let open = 0;
  let most = 0;
  const read = async function* pieces(): AsyncGenerator<Uint8Array> {
    let isOpen = false;
    for await (const piece of inPieces(data, 8)) {
      await turn();
      yield piece;
      if (isOpen) continue;
      isOpen = true;
      open += 1;
      most = Math.max(most, open);
    }
    open -= 1;
  };
  const work = createUnpackWork();
  const found = await Promise.all(
    Array.from({ length: 6 }, async () => layerContent(read(), { size: data.byteLength, work })),
  );
  assert.equal([most, found.every((one) => 'digest' in one)], [2, true]);
});

test('many small bombs are bounded together', async () => {
  const bomb = gzipSync(Buffer.alloc(4 << 20));
  const size = bomb.byteLength;
  const work = createUnpackWork(5 << 20);
  assert.ok('digest' in (await layerContent(inPieces(bomb), { size, work })));
  const problem = 'it and the others before it unpack to far more than they are';
  assert.equal(await layerContent(inPieces(bomb), { size, work }), { problem });
  // What unpacks to no more than is usual costs nothing of it.
  assert.ok('digest' in (await layerContent(inPieces(TAR), { size: TAR.byteLength, work })));

  const small = repeated(0x38, 10, 400);
  const slow = async (moved: number) =>
    layerContent(inPieces(small), { size: small.byteLength, work: { ...createUnpackWork(), moved } });
  assert.ok('digest' in (await slow(0)));
  assert.equal(await slow(64 * 2 ** 30), { problem: 'its zstd blocks are too small for their window' });
});

test('an archive with two layers of the same path is refused: a runtime may take either', async () => {
  await using layers = createLayerCheck();
  const [data, other] = [TAR, plainTar({ other: 'x' })];
  const [layer] = layersOf(
    'image x',
    [{ digest: digestOf('a'), size: 0, mediaType: 'application/vnd.docker.image.rootfs.diff.tar' }],
    [digestOf(TAR)],
  );
  const archive = Buffer.concat([
    plainTar({ 'a/layer.tar': data }).subarray(0, -1024),
    plainTar({ 'a/layer.tar': other }),
  ]);
  const checked = checkArchiveLayers(inPieces(archive), () => (layer === undefined ? [] : [layer]), {
    check: layers.check,
    signal: never,
  });
  await assert.rejectsWith(checked, 'IMAGE_INVALID', /two entries named "a\/layer\.tar"/);
});

unless(missing('zstd'), test)(
  'what the zstd program makes passes: levels, long windows, checksums, several frames',
  async () => {
    const data = Buffer.concat([TAR.subarray(0, -1024), plainTar({ b: TAR.toReversed() })]);
    const zstd = (input: Uint8Array, ...options: string[]): Buffer =>
      execFileSync('zstd', ['-q', '-c', ...options], { input, maxBuffer: 64 << 20 });
    for (const options of [['-1'], ['-9', '--no-check'], ['--long=23']])
      await check(zstd(data, ...options), digestOf(data));
    await check(Buffer.concat([zstd(data.subarray(0, 1000)), zstd(data.subarray(1000))]), digestOf(data));
  },
);

test('a blob is unpacked once, and not at all if an earlier run has unpacked it', async () => {
  const data = gzipSync(TAR);
  const descriptor = { digest: digestOf(data), size: data.byteLength, mediaType: `${TYPE}+gzip` };
  const rows = layersOf('image x', [descriptor, descriptor], [digestOf(TAR), digestOf(TAR)]);
  const kept = new Map<Digest, Digest>();
  let reads = 0;
  const read = (): AsyncIterable<Uint8Array> => {
    reads += 1;
    return inPieces(data);
  };
  for (let run = 0; run < 2; run += 1) {
    await using layers = createLayerCheck({
      find: async (blob) => kept.get(blob),
      keep: async (blob, unpacked) => {
        kept.set(blob, unpacked);
      },
    });
    await Promise.all(rows.map(async (layer) => layers.check(layer, read, { signal: never })));
  }
  assert.is(reads, 1);
  assert.equal([...kept], [[descriptor.digest, digestOf(TAR)]]);
});

test('an error of the source is thrown as it is', async () => {
  await using layers = createLayerCheck();
  const [layer] = layersOf('image x', [{ digest: digestOf('x'), size: 9, mediaType: TYPE }], [digestOf('x')]);
  if (layer === undefined) throw new Error('no layer');
  const broken = new Error('the disk is gone');
  const read = async function* fail(): AsyncGenerator<Uint8Array> {
    yield TAR;
    throw broken;
  };
  let thrown: unknown;
  await layers.check(layer, read, { signal: never }).catch((error: unknown) => {
    thrown = error;
  });
  assert.is(thrown, broken);
});

test.run();
