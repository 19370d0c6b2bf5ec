/** Twenty packages with a layer in common into one bundle, beside `cat`, `sha256sum`, and unpacking and packing it all. */
import { randomBytes } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageFileName } from '../../src/core/layout.ts';
import { publishPackages } from '../../src/ship/release/publish.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import { specOf } from '../support/bundles.ts';
import { never, noReport } from '../support/context.ts';
import { writePackage } from '../support/packages.ts';
import { rssTarget, type Options } from './images.ts';
import { measure, pairwise, spread, type Sample } from './measure.ts';
import { figure, range, type Section } from './report.ts';
import { CURLEW } from './ways.ts';

const PACKAGES = 20;
const CAT = 'cat … >FILE && sync FILE';
const UNPACK = 'tar -xz of each, tar -cz of all';

/** A folder store with packages of a layer that all have, and one of their own; `megabytes` counts each once. */
async function publishLayers(
  work: string,
  megabytes: number,
): Promise<{ readonly store: string; readonly spec: string }> {
  const [store, out] = [join(work, 'twenty'), join(work, 'twenty-out')];
  await mkdir(store, { recursive: true });
  await mkdir(out, { recursive: true });
  const layer = (): Buffer => randomBytes(Math.ceil((megabytes * 1_000_000) / (PACKAGES + 1)));
  const shared = layer();
  const files = [];
  for (let index = 0; index < PACKAGES; index += 1) {
    const [name, version] = [`addon-${index}`, '1.0.0'];
    const path = join(out, packageFileName({ name, version }, 'amd64'));
    const content = [
      { path: 'install.sh', data: `addon-${index}() { :; }\n` },
      { path: 'images/blobs/sha256/shared', data: shared },
      { path: 'images/blobs/sha256/own', data: layer() },
    ];
    files.push({ path, addon: await writePackage(path, name, version, content) });
  }
  await publishPackages(files, {
    store: createFolderStore(store),
    release: 'v1',
    now: new Date(0),
    carry: false,
    commit: undefined,
    jobs: 2,
    report: noReport,
    signal: never,
  });
  await rm(out, { recursive: true });
  const spec = join(work, 'twenty.yaml');
  const names = files.map(({ addon }) => [addon.name, addon.version]);
  await writeFile(spec, specOf(Object.fromEntries(names) as Record<string, string>));
  return { store, spec };
}

export async function benchBundleOfTwenty(
  work: string,
  home: string,
  { rounds, say, megabytes = 1500 }: Options & { readonly megabytes?: number },
): Promise<Section> {
  const { store, spec } = await publishLayers(work, megabytes);
  const bundle = 'rm -f "$1/twenty.tar.gz"; node "$2" bundle "$3" --quiet --from "$4" -o "$1/twenty.tar.gz"';
  const ways = [
    ['curlew bundle', `${bundle} >/dev/null`],
    [CAT, 'rm -f "$1/cat"; cat "$1/twenty.tar.gz" >"$1/cat" && sync "$1/cat"; rm -f "$1/cat"'],
    ['sha256sum', 'sha256sum "$1/twenty.tar.gz" >/dev/null'],
    ['curlew bundle --verify', `${bundle} --verify >/dev/null`],
    [
      UNPACK,
      [
        'mkdir "$1/all"; for one in "$4"/v1/*.tar.gz; do tar -xzf "$one" -C "$1/all"; done',
        'tar -czf "$1/all.tar.gz" -C "$1/all" .; rm -r "$1/all" "$1/all.tar.gz"',
      ].join('; '),
    ],
  ] as const;
  const samples = new Map<string, Sample[]>(ways.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, line] of ways) {
      const sample = await measure(line, [work, CURLEW, spec, store], home);
      samples.get(name)?.push(sample);
      say(`${name}: ${sample.seconds} s`);
    }
  }
  await rm(store, { recursive: true });
  await rm(join(work, 'twenty.tar.gz'), { force: true });
  const of = (name: string): readonly Sample[] => samples.get(name) ?? [];
  const seconds = (name: string): readonly number[] => of(name).map((sample) => sample.seconds);
  const cpu = (name: string): readonly number[] => of(name).map((sample) => sample.cpu);
  const written = pairwise(seconds('curlew bundle'), seconds(CAT));
  const proved = pairwise(seconds('curlew bundle --verify'), seconds('sha256sum'));
  const faster = pairwise(seconds(UNPACK), seconds('curlew bundle'));
  const cheaper = pairwise(cpu(UNPACK), cpu('curlew bundle'));
  return {
    title: 'A bundle of twenty packages with a layer in common',
    about: `${megabytes} MB, each layer counted once, in a folder store. The last row is what kURL does.`,
    table: [
      ['method', 'seconds', 'CPU seconds', 'memory, MB'],
      ...ways.map(([name]) => [
        name,
        range(spread(seconds(name))),
        figure(spread(cpu(name)).median),
        figure(spread(of(name).map(({ rss }) => rss)).most),
      ]),
    ],
    targets: [
      { name: 'bundle ÷ cat and sync', wanted: '≤ 1.3', measured: range(written), met: written.median <= 1.3 },
      { name: 'with --verify ÷ sha256sum', wanted: '≤ 1.3', measured: range(proved), met: proved.median <= 1.3 },
      { name: 'unpacking and packing ÷ bundle', wanted: '≥ 50', measured: range(faster), met: faster.median >= 50 },
      { name: 'the same, in CPU seconds', wanted: '≥ 50', measured: range(cheaper), met: cheaper.median >= 50 },
      rssTarget('memory, bundle --verify', of('curlew bundle --verify')),
    ],
  };
}
