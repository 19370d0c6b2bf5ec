import * as fc from 'fast-check';
import type { DesiredCluster, DesiredMachine, Policy } from '../../src/machine/cluster.ts';
import { planCluster, type ClusterPlan } from '../../src/machine/plan.ts';
import { suite } from '../support/suite.ts';
import { cases } from '../support/sweep.ts';
import { SETTING, Simulator } from './simulator.ts';

// soak: random clusters
const test = suite('plans of clusters, properties');

const AVAILABLE = ['v1.30.2', 'v1.30.5', 'v1.31.0', 'v1.31.4', 'v1.32.1', 'v1.33.0'];
const MAX_STEPS = 400;

const story = fc.record({
  running: fc.constantFrom(0, 1, 2, 3, 4, 5),
  wanted: fc.constantFrom(1, 3, 5),
  /** Control planes of the file that are new names. */
  replaced: fc.nat(2),
  workers: fc.nat(8),
  wantedWorkers: fc.nat(8),
  from: fc.nat(2),
  up: fc.nat(3),
  /** How many control planes, and workers, have the next version already. */
  ahead: fc.nat(4),
  atOnce: fc.constantFrom(1, 2, '50%' as const),
  /** What running hosts have of the setting of the file. */
  setting: fc.constantFrom('old', 'new', undefined),
  choices: fc.array(fc.nat(1000), { maxLength: 40 }),
  /** At most one host at a time is away, or each may be. */
  faults: fc.constantFrom('none', 'one', 'one', 'many'),
});
type Story = typeof story extends fc.Arbitrary<infer One> ? One : never;

function begin(given: Story) {
  const { running, wanted, replaced, workers, wantedWorkers, from, up, ahead, atOnce, setting } = given;
  const versions = ['v1.30.2', 'v1.31.4', 'v1.32.1', 'v1.33.0'];
  const old = versions[from] ?? '';
  const version = versions[Math.min(from + up, versions.length - 1)] ?? '';
  const next = versions[from + 1] ?? old;
  const policy: Policy = {
    available: AVAILABLE,
    workers: { type: 'Progressive', maxConcurrency: atOnce },
    maxRemovals: '100%',
  };
  const most = atOnce === '50%' ? Math.max(1, Math.ceil(Math.max(workers, wantedWorkers, 1) / 2)) : atOnce;
  const world = new Simulator('shop', most);
  const isMixed = up > 0 && running > 0;
  const allControl = ahead >= running;
  for (let at = 0; at < running; at += 1) world.add(`cp${at}`, 'control-plane', isMixed && at < ahead ? next : old);
  const ownWorkers = running === 0 ? 0 : workers;
  for (let at = 0; at < ownWorkers; at += 1)
    world.add(`w${at}`, 'worker', isMixed && allControl && at < 2 ? next : old);
  for (const host of world.hosts.values()) host.setting = setting;
  const machines: DesiredMachine[] = [];
  for (let at = 0; at < wanted; at += 1) {
    const name = at < replaced ? `new${at}` : `cp${at}`;
    machines.push({ name, role: 'control-plane' });
    if (!world.hosts.has(name)) world.add(name, 'control-plane');
  }
  for (let at = 0; at < wantedWorkers; at += 1) {
    machines.push({ name: `w${at}`, role: 'worker' });
    if (!world.hosts.has(`w${at}`)) world.add(`w${at}`, 'worker');
  }
  const desired: DesiredCluster = { name: 'shop', version, machines, settings: { [SETTING]: 'new' } };
  const look = (): ClusterPlan => planCluster(desired, world.look(new Set(machines.map(({ name }) => name))), policy);
  return { desired, world, look };
}

type PlanState = ReturnType<typeof begin>;

/** One step that may begin now, up to any of its effects. */
function go({ world, look }: PlanState, choice: number, mayBeKilled: boolean): boolean {
  const ready = look().steps.filter(({ waits }) => waits.length === 0);
  const step = ready[choice % Math.max(1, ready.length)];
  if (step === undefined) return false;
  world.do(step, mayBeKilled && choice % 3 === 1 ? choice % 7 : Infinity);
  return true;
}

/** All steps that are possible. */
function finish(cluster: PlanState): void {
  for (let left = MAX_STEPS; left > 0 && go(cluster, left, false); left -= 1) none(cluster.world.broken);
}

/** A host goes, comes back, fails, or is cordoned by a person. One host alone is mostly a control plane: most rules are about these. */
function happen({ world, desired }: PlanState, choice: number, isAlone: boolean): void {
  const all = [...world.hosts.values()];
  const controlPlanes = all.filter(({ role, node }) => role === 'control-plane' && node);
  const hosts = isAlone && choice % 4 > 0 && controlPlanes.length > 0 ? controlPlanes : all;
  const host = hosts[choice % hosts.length];
  if (host === undefined) return;
  if (isAlone) for (const other of all) if (other !== host) other.answers = true;
  const what = Math.floor(choice / hosts.length) % 6;
  if (what < 2) host.answers = false;
  else if (what < 4) host.answers = true;
  else if (what === 4 && host.node && host.role === 'worker') {
    host.failed = { to: desired.version, reason: 'its disk is full' };
  } else if (host.node && host.cordon === undefined) host.cordon = 'other';
}

function heal({ world }: PlanState): void {
  for (const host of world.hosts.values()) {
    host.answers = true;
    host.failed = undefined;
  }
}

/** An error that fast-check shows. */
function none(found: readonly unknown[]): void {
  if (found.length > 0) throw new Error(JSON.stringify(found));
}

/** Hosts that are not as the file has them. */
function otherThanDesired({ world, desired }: PlanState): readonly string[] {
  const wanted = new Map(desired.machines.map((machine) => [machine.name, machine]));
  const { version } = desired;
  return [...world.hosts.values()].flatMap(
    ({ name, node, kubelet, apiServer, member, leaving, cordon, restarting, setting }) => {
      const role = wanted.get(name)?.role;
      const isControl = role === 'control-plane';
      const found = {
        node,
        member,
        leaving,
        restarting,
        ...(node && { kubelet, apiServer }),
        isOurs: cordon === 'curlew',
        isOld: node && setting === 'old',
      };
      const versions = { kubelet: version, apiServer: isControl ? version : undefined };
      const joined = { member: isControl ? 'voter' : 'none', ...versions };
      const meant = {
        node: role !== undefined,
        member: 'none',
        leaving: false,
        restarting: false,
        ...(role && joined),
        isOurs: false,
        isOld: false,
      };
      const differing = (Object.keys(meant) as (keyof typeof meant)[]).filter((key) => meant[key] !== found[key]);
      return differing.map((key) => `${name}: ${key} is ${String(found[key])}`);
    },
  );
}

test('a plan that is made again after each kill ends at what is desired, and breaks no rule on the way', () => {
  const property = fc.property(story, (given) => {
    const cluster = begin(given);
    for (const choice of given.choices) {
      if (given.faults !== 'none' && choice % 3 === 0) happen(cluster, Math.floor(choice / 3), given.faults === 'one');
      go(cluster, choice, true);
      none(cluster.world.broken);
    }
    finish(cluster);
    // With hosts that do not answer or have failed, it may not come to its end, but says why.
    const { held, refused } = cluster.look();
    if (held.length + refused.length === 0) none(otherThanDesired(cluster));
    heal(cluster);
    finish(cluster);
    const last = cluster.look();
    none([...last.steps, ...last.held, ...last.refused]);
    none(otherThanDesired(cluster));
  });
  fc.assert(property, { ...cases(100), endOnFailure: true, includeErrorInReport: true });
});

test.run();
