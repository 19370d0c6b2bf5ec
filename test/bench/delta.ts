/** The delta between two releases that differ in one layer, beside that layer and a plain copy of the whole bundle. */
import { execa } from 'execa';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { publishTestPackages, specOf, type TestPackage } from '../support/bundles.ts';
import { noise } from '../support/packages.ts';
import { keptTree } from '../support/tree.ts';
import { measure, spread, type Sample } from './measure.ts';
import { rssTarget, type Options } from './images.ts';
import { figure, range, type Section } from './report.ts';
import { CURLEW } from './ways.ts';

const ADDONS = 10;
const LAYERS = 2;
const LAYER_BYTES = 24 << 20;

function packageAt(number: number, version: string, changed: number): TestPackage {
  const layers = Array.from({ length: LAYERS }, (_, layer) => ({
    path: `images/blobs/sha256/${layer}`,
    data: noise(LAYER_BYTES, layer === 0 ? changed : 100 * number + layer),
  }));
  const scripts = Array.from({ length: 20 }, (_, at) => ({ path: `yaml/${at}.yaml`, data: `kind: List # ${at}\n` }));
  return { name: `addon-${number}`, version, files: [...scripts, ...layers] };
}

export async function benchDelta(home: string, { rounds, say }: Options): Promise<Section> {
  const folder = join(home, 'work/delta');
  const box = await keptTree(folder);
  const { at } = box;
  const packages = Array.from({ length: ADDONS }, (_, number) => packageAt(number, '1.0.0', 1000 + number));
  await publishTestPackages(box, [...packages, packageAt(0, '1.0.1', 5000)], new AbortController().signal);
  const names = packages.map(({ name }) => [name, '1.0.0'] as const);
  await writeFile(at('1.yaml'), specOf(Object.fromEntries(names)));
  await writeFile(at('2.yaml'), specOf(Object.fromEntries([...names.slice(1), ['addon-0', '1.0.1']])));
  for (const number of ['1', '2']) {
    const words = ['bundle', `${number}.yaml`, '--from', 'store', '-o', `${number}.tar.gz`, '--force', '--quiet'];
    await execa('node', [CURLEW, ...words], { cwd: folder });
  }
  const values = [folder, CURLEW];
  const words = (line: string): string => `cd "$1" && node "$2" ${line} --quiet --force >/dev/null`;
  const ways = [
    ['cat … >FILE && sync FILE, of the whole bundle', 'cd "$1" && rm -f cat && cat 2.tar.gz >cat && sync cat'],
    ['curlew inventory', words('inventory 1.tar.gz -o i.json')],
    ['curlew bundle --since', words('bundle 2.yaml --from store --since i.json -o d.tar.gz')],
    ['curlew apply', words('apply d.tar.gz --base 1.tar.gz -o made.tar.gz')],
  ] as const;
  const samples = new Map<string, Sample[]>(ways.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, line] of ways) {
      const sample = await measure(line, values, home);
      samples.get(name)?.push(sample);
      say(`${name}: ${sample.seconds} s`);
    }
  }
  await execa('bash', ['-c', 'cmp 2.tar.gz made.tar.gz'], { cwd: folder });
  const of = (name: string): readonly Sample[] => samples.get(name) ?? [];
  const seconds = (name: string): readonly number[] => of(name).map((sample) => sample.seconds);
  const [delta, whole, list] = await Promise.all(
    ['d.tar.gz', '2.tar.gz', 'i.json'].map(async (name) => (await stat(at(name))).size),
  );
  const ratio = (delta ?? Number.NaN) / LAYER_BYTES;
  const megabytes = (bytes = Number.NaN): string => figure(bytes / 1e6);
  return {
    title: 'A delta of one changed layer',
    about: `${ADDONS} add-ons with ${LAYERS} layers of ${megabytes(LAYER_BYTES)} MB each and twenty small files. The bundle, including the tool for nodes, has ${megabytes(whole)} MB, the delta ${megabytes(delta)} MB, the inventory ${megabytes(list)} MB.`,
    table: [
      ['method', 'seconds', 'CPU seconds', 'memory, MB'],
      ...ways.map(([name]) => [
        name,
        range(spread(seconds(name))),
        figure(spread(of(name).map(({ cpu }) => cpu)).median),
        figure(spread(of(name).map(({ rss }) => rss)).most),
      ]),
    ],
    targets: [
      { name: 'delta ÷ changed bytes', wanted: '≤ 1.05', measured: ratio.toFixed(4), met: ratio <= 1.05 },
      rssTarget('memory, apply', of('curlew apply')),
    ],
  };
}
