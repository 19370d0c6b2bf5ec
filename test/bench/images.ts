/** From a registry into one archive: every way in turn, cold; ours also with nothing changed, and with one huge layer. */
import { execa } from 'execa';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SocketDaemon } from '../components/support/services.ts';
import { writeTree } from '../support/tree.ts';
import { LARGE, SET } from './image-set.ts';
import { measure, pairwise, spread, type Sample } from './measure.ts';
import { figure, range, type Section, type Target } from './report.ts';
import { BENCH_HOST, kurlWay, otherWays, ourWay, type Place, type Way } from './ways.ts';

export interface Options {
  readonly rounds: number;
  readonly say: (text: string) => void;
}

interface ImageOptions extends Options {
  /** Undefined leaves kURL's way out. */
  readonly startDockerd: ((folder: string) => Promise<SocketDaemon>) | undefined;
}

const INSTALL = '# shellcheck shell=bash\n%s() { true; }\n';

function addonFiles(name: string, manifest: string): Readonly<Record<string, string>> {
  return {
    [`addons/${name}/1.0.0/Manifest`]: manifest,
    [`addons/${name}/1.0.0/install.sh`]: INSTALL.replace('%s', name),
  };
}

/** Add-ons over the set: `set` with all images, and one each. */
export async function writeAddons(root: string): Promise<readonly string[]> {
  await rm(root, { recursive: true, force: true });
  const line = (repository: string): string => `image ${repository.replace('/', '-')} ${BENCH_HOST}/${repository}:1\n`;
  await writeTree(root, addonFiles('set', SET.map(line).join('')));
  const single = SET.map((repository, index) => [`one${index}`, line(repository)] as const);
  for (const [name, manifest] of single) await writeTree(root, addonFiles(name, manifest));
  await writeTree(root, addonFiles('large', line(LARGE)));
  return single.map(([name]) => name);
}

async function bytesOf(path: string): Promise<number> {
  const { stdout } = await execa('du', ['-sb', path]);
  return Number(stdout.split('\t')[0]);
}

interface Measured {
  readonly way: Way;
  readonly samples: Sample[];
  megabytes: number;
}

async function once(measured: Measured, work: string, say: Options['say']): Promise<void> {
  const { way, samples } = measured;
  await way.prepare();
  const sample = await measure(way.line, way.values, join(work, '..'));
  samples.push(sample);
  if (way.output !== undefined) measured.megabytes = (await bytesOf(way.output)) / 1e6;
  say(`${way.name}: ${sample.seconds} s`);
}

function tableOf(all: readonly Measured[], ours: Measured): readonly (readonly string[])[] {
  const seconds = ({ samples }: Measured): readonly number[] => samples.map((sample) => sample.seconds);
  return [
    ['method', 'seconds', 'CPU seconds', 'memory, MB', 'out, MB', 'curlew, cold ÷ this'],
    ...all.map((one) => [
      one.way.name,
      range(spread(seconds(one))),
      figure(spread(one.samples.map(({ cpu }) => cpu)).median),
      figure(spread(one.samples.map(({ rss }) => rss)).most),
      figure(one.megabytes),
      one === ours ? '' : range(pairwise(seconds(ours), seconds(one))),
    ]),
  ];
}

/** Ours by theirs, at most `limit`; the median decides. */
function ratioTarget(name: string, ours: Measured, theirs: Measured | undefined, limit: number): readonly Target[] {
  if (theirs === undefined) return [];
  const quotient = pairwise(
    ours.samples.map(({ seconds }) => seconds),
    theirs.samples.map(({ seconds }) => seconds),
  );
  const wanted = `≤ ${limit < 0.2 ? `1/${Math.round(1 / limit)}` : limit}`;
  const shown = limit < 0.2 ? `1/${figure(1 / quotient.median)}` : range(quotient);
  return [{ name, wanted, measured: shown, met: quotient.median <= limit }];
}

export function rssTarget(name: string, samples: readonly Sample[]): Target {
  const most = Math.max(...samples.map(({ rss }) => rss));
  return { name, wanted: '≤ 150 MB', measured: `${figure(most)} MB`, met: most <= 150 };
}

export async function benchImages(place: Place, home: string, options: ImageOptions): Promise<Section> {
  const { rounds, startDockerd, say } = options;
  const tree = join(home, 'tree');
  const names = await writeAddons(tree);
  const start = (way: Way): Measured => ({ way, samples: [], megabytes: Number.NaN });
  const cold = start(ourWay(place, tree, ['set'], 'curlew, cold', false));
  const warm = start(ourWay(place, tree, names, `curlew, ${names.length} add-ons, nothing changed`, true));
  const others = otherWays(place).map(start);
  const all = [...others, cold, warm];
  await measure(warm.way.line, warm.way.values, home);
  for (let round = 0; round < rounds; round += 1) {
    // Each round begins elsewhere, so that no way always follows the same one.
    for (const index of all.keys()) {
      const one = all[(index + round) % all.length];
      if (one !== undefined) await once(one, place.work, say);
    }
  }
  const kurl = startDockerd === undefined ? undefined : await kurlOnce(place, home, startDockerd, say);
  const named = (name: string): Measured | undefined => others.find(({ way }) => way.name === name);
  const perAddon = spread(warm.samples.map(({ seconds }) => (seconds * 1000) / names.length));
  const targets = [
    ...ratioTarget('cold ÷ crane, OCI layout, tar', cold, named('crane, OCI layout, tar'), 0.9),
    ...ratioTarget('cold ÷ crane, docker tarball', cold, named('crane, docker tarball'), 1.1),
    ...ratioTarget('cold ÷ skopeo, gzip -1', cold, named('skopeo, OCI layout, tar, gzip -1'), 0.1),
    ...ratioTarget("cold ÷ kURL's", cold, kurl, 1 / 80),
    {
      name: 'nothing changed',
      wanted: '≤ 100 ms an add-on',
      measured: `${range(perAddon)} ms`,
      met: perAddon.median <= 100,
    },
    rssTarget('memory, cold', cold.samples),
  ];
  const about = `${SET.length} images on three bases into one archive. The commands of kURL ran once: they take minutes.`;
  return { title: 'Images into one archive', about, table: tableOf(kurl ? [...all, kurl] : all, cold), targets };
}

async function kurlOnce(
  place: Place,
  home: string,
  startDockerd: (folder: string) => Promise<SocketDaemon>,
  say: Options['say'],
): Promise<Measured> {
  const folder = join(home, 'docker');
  await rm(folder, { recursive: true, force: true });
  let measured: Measured;
  {
    await using docker = await startDockerd(folder);
    measured = { way: kurlWay(place, docker.socket), samples: [], megabytes: Number.NaN };
    await once(measured, place.work, say);
  }
  await rm(folder, { recursive: true, force: true });
  return measured;
}

export async function benchLayer(place: Place, home: string, { rounds, say }: Options): Promise<Section> {
  const tree = join(home, 'tree');
  await writeAddons(tree);
  const measured: Measured = {
    way: ourWay(place, tree, ['large'], 'curlew, one layer of 1 GB', false),
    samples: [],
    megabytes: Number.NaN,
  };
  for (let round = 0; round < Math.min(rounds, 3); round += 1) await once(measured, place.work, say);
  return {
    title: 'One huge layer',
    about: 'An add-on whose only image has one layer of 1 GB.',
    table: tableOf([measured], measured),
    targets: [rssTarget('memory', measured.samples)],
  };
}
