/** What unpacking layers costs a build and `verify`; other programs do not check them. */
import { execFileSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { digestOf } from '../../src/core/digest.ts';
import { createLayerCheck, layersOf } from '../../src/formats/oci/check-layers.ts';
import { binaryLike, plainTar } from '../support/images.ts';
import type { Options } from './images.ts';
import { spread } from './measure.ts';
import { range, type Section } from './report.ts';

const SIZE = 150 << 20;
const PIECE = 1 << 20;
const TYPE = 'application/vnd.oci.image.layer.v1.tar';

async function* inPieces(data: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < data.byteLength; at += PIECE) yield data.subarray(at, at + PIECE);
}

export async function benchLayers({ rounds, say }: Options): Promise<Section> {
  const tar = plainTar({ 'usr/lib/libexample.so': binaryLike(SIZE, 'layers') });
  const packings = {
    gzip: gzipSync(tar),
    zstd: execFileSync('zstd', ['-q', '-c'], { input: tar, maxBuffer: 2 * SIZE }),
  };
  const rows: string[][] = [];
  for (const [packing, data] of Object.entries(packings)) {
    const descriptor = { digest: digestOf(data), size: data.byteLength, mediaType: `${TYPE}+${packing}` };
    const cpu: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      await using layers = createLayerCheck();
      const before = process.cpuUsage();
      for (const layer of layersOf('image', [descriptor], [digestOf(tar)]))
        await layers.check(layer, () => inPieces(data), new AbortController());
      const { user, system } = process.cpuUsage(before);
      cpu.push(((user + system) / 1e6 / data.byteLength) * 100e6);
    }
    rows.push([packing, range(spread(cpu)), String(Math.round(data.byteLength / 1e6))]);
  }
  say('layers measured');
  return {
    title: 'Layers unpacked by build and verify',
    about:
      'A build unpacks each layer once and compares it with the config of its image; the cache remembers the result by digest. `verify` unpacks all layers. skopeo and crane copy layers without that, so that no row of them is here.',
    table: [['compression', 'CPU seconds for 100 MB of compressed layer', 'compressed, MB'], ...rows],
    targets: [],
  };
}
