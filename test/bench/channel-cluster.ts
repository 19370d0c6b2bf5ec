/** A channel of 40 add-ons with 600 objects on a real API server, beside kubectl apply --prune of the same objects. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startApiServer } from '../components/support/api-server.ts';
import { configMap } from '../components/support/channel-scene.ts';
import { oracle } from '../components/support/programs.ts';
import type { Options } from './images.ts';
import { milliseconds, pairwise, spread } from './measure.ts';
import { range, type Section } from './report.ts';
import { CURLEW } from './ways.ts';

const ADDONS = 40;
const MAPS = 12;
const ALLOWED = ['core/v1/ConfigMap', 'core/v1/Service', 'core/v1/ServiceAccount', 'policy/v1/PodDisruptionBudget'];

/** 15 objects of four kinds; the version is in all of the ConfigMaps. */
function objectsOf(name: string, namespace: string, version: number): string {
  const metadata = { name, namespace, labels: { bench: namespace } };
  const maps = Array.from({ length: MAPS }, (_, at) => ({
    ...configMap(`${name}-${at}`, namespace, { version: String(version), text: 'x'.repeat(1000) }),
    metadata: { ...metadata, name: `${name}-${at}` },
  }));
  const selector = { app: name };
  const others = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector, ports: [{ port: 80 }] } },
    { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: { selector: { matchLabels: selector } } },
  ];
  return [...maps, ...others].map((object) => JSON.stringify(object)).join('\n---\n');
}

/** The folder of one way: 40 manifests and a channel of them; `changed` add-ons have another version. */
async function writeFolder(folder: string, namespace: string, changed: number, round: number): Promise<void> {
  const entries = [];
  for (let at = 0; at < ADDONS; at += 1) {
    const version = at < changed ? round : 0;
    const manifest = `a${at}.yaml`;
    await writeFile(join(folder, manifest), objectsOf(`a${at}`, namespace, version));
    entries.push({ name: `a${at}`, namespace, version: `1.${version}.0`, manifest, prune: 'auto' });
  }
  const channel = {
    apiVersion: 'fleet.curlew.dev/v1alpha1',
    kind: 'Channel',
    metadata: { name: 'bench' },
    spec: { addons: entries },
  };
  await writeFile(
    join(folder, '../channel.yaml'),
    JSON.stringify(channel).replaceAll('"manifest":"', '"manifest":"ours/'),
  );
}

export async function benchChannelCluster(home: string, { rounds, say }: Options): Promise<Section> {
  const work = join(home, 'channel');
  await rm(work, { recursive: true, force: true });
  const [ours, theirs] = [join(work, 'ours'), join(work, 'theirs')];
  for (const folder of [ours, theirs]) await mkdir(folder, { recursive: true });
  await using server = await startApiServer(join(work, 'server'));
  for (const namespace of ['ours', 'theirs']) await server.kubectl(['create', 'namespace', namespace]);
  const words = ['--kubeconfig', server.kubeconfig];
  const apply = async (): Promise<number> =>
    milliseconds('node', [CURLEW, 'channel', 'apply', join(work, 'channel.yaml'), '--yes', ...words]);
  const kinds = ALLOWED.flatMap((kind) => ['--prune-allowlist', kind]);
  const kubectl = async (): Promise<number> =>
    milliseconds(oracle('../api-server/kubectl'), [
      'apply',
      '--prune',
      '-l',
      'bench=theirs',
      ...kinds,
      '-f',
      theirs,
      ...words,
    ]);
  const both = async (changed: number, round: number): Promise<readonly [number, number]> => {
    await writeFolder(theirs, 'theirs', changed, round);
    await writeFolder(ours, 'ours', changed, round);
    return [await apply(), await kubectl()];
  };
  const first = await both(0, 0);
  say('channel applied');
  const times = { same: [[], []], one: [[], []] } as Record<'same' | 'one', [number[], number[]]>;
  for (let round = 1; round <= rounds; round += 1) {
    for (const [at, value] of (await both(1, round)).entries()) times.one[at as 0 | 1].push(value);
    for (const [at, value] of (await both(1, round)).entries()) times.same[at as 0 | 1].push(value);
  }
  await rm(work, { recursive: true, force: true });
  say('channel on a cluster measured');
  const same = spread(times.same[0]);
  const row = (title: string, [own, other]: [number[], number[]]): readonly string[] => [
    title,
    range(spread(own)),
    range(spread(other)),
    range(pairwise(own, other)),
  ];
  return {
    title: 'Channels on a cluster',
    about: `${ADDONS} add-ons with ${ADDONS * (MAPS + 3)} objects on an API server on the same machine, in milliseconds of wall time of the whole command. curlew channel apply --yes of a channel, and kubectl apply --prune of the same objects with the four kinds to prune. curlew also previews what changes, waits for health and records.`,
    table: [
      ['what', 'curlew', 'kubectl', 'quotient'],
      [
        'first application',
        String(Math.round(first[0])),
        String(Math.round(first[1])),
        (first[0] / first[1]).toFixed(2),
      ],
      row('one add-on changed', times.one),
      row('nothing changed', times.same),
    ],
    targets: [{ name: 'nothing changed', wanted: '< 1.5 s', measured: `${range(same)} ms`, met: same.median < 1500 }],
  };
}
