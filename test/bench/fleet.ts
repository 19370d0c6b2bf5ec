/** One step of a fleet of 5,000 clusters and 40 add-ons: when nothing is installed, when nothing changes, and when one changes. */
import type { ClusterAddon, Observed } from '../../src/fleet/rollout/fleet.ts';
import { step } from '../../src/fleet/rollout/step.ts';
import { Memo } from '../../src/fleet/rollout/content.ts';
import type { Options } from './images.ts';
import { spread } from './measure.ts';
import { range, type Section } from './report.ts';

const CLUSTERS = 5000;
const ADDONS = 40;
const NOW = 1_800_000_000;

/** Three rings, settings in two layers, each add-on after the one before it. */
function emptyFleet(): Observed {
  const clusters = Array.from({ length: CLUSTERS }, (_, at) => ({
    name: `shop-${at}`,
    labels: { ring: ['canary', 'early', 'late'][at % 3] ?? '', region: `r${at % 20}` },
    available: true,
    kubernetes: `v1.3${at % 3}.2`,
  }));
  const ring = (name: string) => ({ name, selector: { matchLabels: { ring: name } } });
  const addons = Array.from({ length: ADDONS }, (_, at) => ({
    name: `addon-${at}`,
    generation: 1,
    identity: `addon:addon-${at}`,
    source: { content: { package: `addon-${at}-1.0.0.tar.gz` }, version: '1.0.0' },
    clusterSelector: {},
    config: {
      default: { mtu: 1350 },
      groups: [{ selector: { matchLabels: { ring: 'late' } }, values: { mtu: 1400 } }],
    },
    dependsOn: at === 0 ? [] : [`addon-${at - 1}`],
    rollout: {
      type: 'Progressive',
      groups: [ring('canary'), ring('early')],
      mandatoryDecisionGroups: [{ groupName: 'canary' }],
      maxConcurrency: '25%',
      minSuccessTime: '5m',
    } as const,
  }));
  return { complete: true, clusters, addons, clusterAddons: [] };
}

/** The same with everything installed for long. */
function settledFleet(empty: Observed): Observed {
  const { put } = step(
    { ...empty, addons: empty.addons.map((one) => ({ ...one, dependsOn: [], rollout: {} })) },
    NOW - 9999,
  );
  const clusterAddons = put.map(({ cluster, addon, spec }): ClusterAddon => {
    const applied = { revision: spec.revision, hash: spec.specHash };
    return { cluster, addon, spec, status: { applied, state: 'Succeeded', since: NOW - 9000 } };
  });
  const observed = { ...empty, clusterAddons };
  const { status } = step(observed, NOW);
  const statuses = new Map(status.map((one) => [one.addon, one.status]));
  return {
    ...observed,
    addons: observed.addons.map((one) => {
      const own = statuses.get(one.name);
      return own === undefined ? one : { ...one, status: own };
    }),
  };
}

export function benchFleet({ rounds, say }: Options): Section {
  const empty = emptyFleet();
  const settled = settledFleet(empty);
  const released = settled.addons.map((one, at) =>
    at === 0
      ? { ...one, generation: 2, source: { content: { package: 'addon-0-1.1.0.tar.gz' }, version: '1.1.0' } }
      : one,
  );
  const rows = [
    ['nothing is installed', empty],
    ['everything is as it should be', settled],
    ['one add-on has a new version', { ...settled, addons: released }],
  ] as const;
  const found = rows.map(([title, observed]) => {
    const times: number[] = [];
    let [most, writes] = [0, 0];
    for (let round = 0; round < rounds; round += 1) {
      globalThis.gc?.();
      const before = process.memoryUsage().heapUsed;
      const start = performance.now();
      const { put, status } = step(observed, NOW, new Memo());
      times.push(performance.now() - start);
      most = Math.max(most, process.memoryUsage().heapUsed - before);
      writes = put.length + status.length;
    }
    say(`fleet, ${title}: ${times.at(-1)?.toFixed(0) ?? ''} ms`);
    return { title, time: spread(times), megabytes: most / 1e6, writes };
  });
  return {
    title: 'Fleets',
    about: `One step of ${CLUSTERS} clusters and ${ADDONS} add-ons. Memory is what the heap has grown by at its end, with garbage.`,
    table: [
      ['state', 'milliseconds', 'memory, MB', 'objects written'],
      ...found.map(({ title, time, megabytes, writes }) => [title, range(time), megabytes.toFixed(0), String(writes)]),
    ],
    targets: found.flatMap(({ title, time, megabytes }) => [
      { name: title, wanted: '< 1000 ms', measured: `${range(time)} ms`, met: time.median < 1000 },
      { name: `${title}, memory`, wanted: '< 150 MB', measured: `${megabytes.toFixed(0)} MB`, met: megabytes < 150 },
    ]),
  };
}
