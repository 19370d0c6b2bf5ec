/** `fleet plan` over many clusters of which each has another version of an add-on: with `--diff`, and without. */
import { openFleetScene } from '../support/fleet-scene.ts';
import { addon } from '../support/fleet-files.ts';
import { measure, type Sample } from './measure.ts';
import { figure, type Section } from './report.ts';

const OBJECTS = 5;

export interface DiffFigures {
  readonly plain: Sample & { readonly requests: number };
  readonly diff: Sample & { readonly requests: number };
}

function objectsOf(version: string): readonly object[] {
  return Array.from({ length: OBJECTS }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `page-${at}`, namespace: 'default' },
    data: { version },
  }));
}

/** Requests are those to one cluster. `main` is the command under test. */
export async function measureDiff(main: string, clusters: number): Promise<DiffFigures> {
  const names = Array.from({ length: clusters }, (_, at) => `c${at}`);
  await using scene = await openFleetScene(names);
  await scene.fleet([addon('web', { rollout: { type: 'All' } })]);
  await scene.manifest('1', ...objectsOf('1'));
  await scene.apply();
  await scene.manifest('2', ...objectsOf('2'));
  const count = (): number => names.reduce((sum, name) => sum + scene.requests(name).length, 0);
  const run = async (words: string): Promise<Sample & { readonly requests: number }> => {
    const before = count();
    const line = `cd "$1" && { "$2" "$3" fleet plan fleet.yaml ${words} >plan.json || [ $? = 2 ]; }`;
    const sample = await measure(line, [scene.box.path, process.execPath, main], scene.box.path);
    return { ...sample, requests: (count() - before) / clusters };
  };
  return { plain: await run('--json'), diff: await run('--json --diff') };
}

export async function benchDiff({
  say,
  main,
}: {
  readonly say: (text: string) => void;
  readonly main: string;
}): Promise<Section> {
  const clusters = 200;
  const { plain, diff } = await measureDiff(main, clusters);
  say(`fleet plan --diff: ${diff.seconds.toFixed(1)} s`);
  const rows = [
    ['fleet plan', plain],
    ['fleet plan --diff', diff],
  ] as const;
  return {
    title: 'Plans of fleets',
    about: `One plan of ${clusters} clusters, each of which would get another version of a manifest with ${OBJECTS} objects.`,
    table: [
      ['what', 'seconds', 'CPU seconds', 'memory, MB', 'requests to a cluster'],
      ...rows.map(([name, { seconds, cpu, rss, requests }]) => [
        name,
        figure(seconds),
        figure(cpu),
        figure(rss),
        requests.toFixed(1),
      ]),
    ],
    targets: [{ name: 'memory, --diff', wanted: '≤ 250 MB', measured: `${figure(diff.rss)} MB`, met: diff.rss <= 250 }],
  };
}
