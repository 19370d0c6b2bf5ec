/** One plan of a cluster of 2,000 machines: when nothing is to do, when all go up one minor, and when all go up three. */
import type { DesiredCluster, SeenCluster, SeenMachine } from '../../src/machine/cluster.ts';
import { planCluster } from '../../src/machine/plan.ts';
import type { Options } from './images.ts';
import { spread } from './measure.ts';
import { range, type Section } from './report.ts';

const MACHINES = 2000;
const CONTROL_PLANES = 5;
const NOW = 'v1.31.2';
const LIMIT_MS = 1000;

function roleOf(at: number): 'control-plane' | 'worker' {
  return at < CONTROL_PLANES ? 'control-plane' : 'worker';
}

function running(): SeenCluster {
  const machines = Array.from({ length: MACHINES }, (_, at): SeenMachine => {
    const role = roleOf(at);
    const versions = role === 'control-plane' ? { kubelet: NOW, apiServer: NOW } : { kubelet: NOW };
    const state = { answers: true, joined: true, ready: true, cluster: 'shop', hostId: `id-${at}` };
    return { name: `m${at}`, role, ...state, ...versions, images: [NOW] };
  });
  const members = machines.slice(0, CONTROL_PLANES).map(({ name }) => ({ name, healthy: true }));
  return { complete: true, machines, members };
}

function wanted(version: string): DesiredCluster {
  const machines = Array.from({ length: MACHINES }, (_, at) => {
    return { name: `m${at}`, role: roleOf(at), address: `10.0.${at >> 8}.${at & 255}` };
  });
  return { name: 'shop', version, machines };
}

export function benchMachines({ rounds, say }: Options): Section {
  const seen = running();
  const available = ['v1.32.4', 'v1.33.1'];
  const rows = [
    ['nothing is to do', NOW],
    ['all go up one minor', 'v1.32.4'],
    ['all go up three minors', 'v1.34.0'],
  ] as const;
  const found = rows.map(([title, version]) => {
    const desired = wanted(version);
    const times: number[] = [];
    let steps = 0;
    for (let round = 0; round < rounds; round += 1) {
      globalThis.gc?.();
      const start = performance.now();
      const plan = planCluster(desired, seen, { available });
      times.push(performance.now() - start);
      if (plan.refused.length + plan.held.length > 0) throw new Error(`${title}: the plan has more than steps`);
      steps = plan.steps.length;
    }
    say(`machines, ${title}: ${times.at(-1)?.toFixed(0) ?? ''} ms`);
    return { title, time: spread(times), steps };
  });
  return {
    title: 'Plans of machines',
    about: `One plan of a cluster of ${MACHINES} machines, of which ${CONTROL_PLANES} are control planes: all of its steps, with batches of 10 %.`,
    table: [
      ['what is to do', 'milliseconds', 'steps'],
      ...found.map(({ title, time, steps }) => [title, range(time), String(steps)]),
    ],
    targets: found.map(({ title, time }) => {
      return { name: title, wanted: `< ${LIMIT_MS} ms`, measured: `${range(time)} ms`, met: time.median < LIMIT_MS };
    }),
  };
}
