/** Ten packages into one bundle, beside `cat` of them into a file that is synced, and checked beside `sha256sum`. */
import { execa } from 'execa';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { measure, pairwise, spread, type Sample } from './measure.ts';
import { figure, range, type Section } from './report.ts';
import { rssTarget, writeAddons, type Options } from './images.ts';
import { BENCH_HOST, CURLEW, type Place } from './ways.ts';

function specOf(names: readonly string[]): string {
  const sections = names.map((name) => `  ${name}:\n    version: 1.0.0\n`).join('');
  return `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: bench\nspec:\n${sections}`;
}

export async function benchBundle(place: Place, home: string, { rounds, say }: Options): Promise<Section> {
  const tree = join(home, 'tree');
  const { work } = place;
  const names = await writeAddons(tree);
  const [store, spec, cache] = [join(work, 'store'), join(work, 'installer.yaml'), join(work, 'cache')];
  await writeFile(spec, specOf(names));
  await execa(
    'node',
    [CURLEW, 'publish', ...names, '--quiet', '--to', store, '--release', 'v1'].concat([
      '--registry-mirror',
      `${BENCH_HOST}=${place.host}`,
    ]),
    { cwd: tree, env: { XDG_CACHE_HOME: cache } },
  );
  const packages = names.map((name) => join(store, 'v1', `${name}-1.0.0.tar.gz`));
  const ways = [
    ['cat … >FILE && sync FILE', 'rm -f "$1/cat"; cat "${@:2}" >"$1/cat" && sync "$1/cat"', [work, ...packages]],
    [
      'curlew bundle',
      'rm -f "$1/bundle.tar.gz"; node "$2" bundle "$3" --quiet --from "$4" -o "$1/bundle.tar.gz" >/dev/null',
      [work, CURLEW, spec, store],
    ],
    ['sha256sum', 'sha256sum "${@:2}" >/dev/null', [work, ...packages]],
    ['curlew verify', 'node "$2" verify --quiet "$1/bundle.tar.gz" >/dev/null', [work, CURLEW]],
  ] as const;
  const samples = new Map<string, Sample[]>(ways.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, line, values] of ways) {
      const sample = await measure(line, values, home);
      samples.get(name)?.push(sample);
      say(`${name}: ${sample.seconds} s`);
    }
  }
  const of = (name: string): readonly Sample[] => samples.get(name) ?? [];
  const seconds = (name: string): readonly number[] => of(name).map((sample) => sample.seconds);
  const written = pairwise(seconds('curlew bundle'), seconds('cat … >FILE && sync FILE'));
  const table = [
    ['method', 'seconds', 'CPU seconds', 'memory, MB'],
    ...ways.map(([name]) => [
      name,
      range(spread(seconds(name))),
      figure(spread(of(name).map(({ cpu }) => cpu)).median),
      figure(spread(of(name).map(({ rss }) => rss)).most),
    ]),
  ];
  return {
    title: 'A bundle of ten packages',
    about: 'The packages are in a folder store; the bundle contains a shared payload once.',
    table,
    targets: [
      { name: 'bundle ÷ cat and sync', wanted: '≤ 1.3', measured: range(written), met: written.median <= 1.3 },
      rssTarget('memory, bundle', of('curlew bundle')),
    ],
  };
}
