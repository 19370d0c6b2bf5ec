/** A small fleet in memory: steps are applied to it, and agents report what a test says. */
import { Memo } from '../../src/fleet/rollout/content.ts';
import type {
  Cluster,
  ClusterAddon,
  FleetAddon,
  Observed,
  Orders,
  Waiting,
  Writes,
} from '../../src/fleet/rollout/fleet.ts';
import { step, waitingIn } from '../../src/fleet/rollout/step.ts';
import type { State, Strategy } from '../../src/fleet/rollout/strategy.ts';

export const cluster = (name: string, more: Partial<Cluster> = {}): Cluster => {
  return { name, labels: {}, available: true, kubernetes: 'v1.31.2', ...more };
};

/** Clusters of a ring, which is a label. */
export const ring = (value: string, ...names: readonly string[]): readonly Cluster[] =>
  names.map((name) => cluster(name, { labels: { ring: value } }));

export const ringGroup = (name: string) => ({ name, selector: { matchLabels: { ring: name } } });

export const addon = (name: string, more: Partial<FleetAddon> = {}): FleetAddon => {
  const source = { content: { package: `${name}-1.0.0.tar.gz` }, version: '1.0.0' };
  return { name, generation: 1, identity: `addon:${name}`, source, clusterSelector: {}, ...more };
};

export class TestFleet {
  now = 1_000_000;
  clusters: Cluster[];
  addons: FleetAddon[];
  records: ClusterAddon[] = [];
  complete = true;
  heardSince = 0;
  memo = new Memo();

  constructor(clusters: readonly Cluster[], ...addons: readonly FleetAddon[]) {
    this.clusters = [...clusters];
    this.addons = [...addons];
  }

  observed(): Observed {
    const { clusters, addons, records: clusterAddons, complete, heardSince } = this;
    return { complete, clusters, addons, clusterAddons, heardSince };
  }

  /** What a step would write. */
  preview(): Writes {
    return step(this.observed(), this.now, this.memo);
  }

  step(): Writes {
    const writes = this.preview();
    const same = (a: { readonly cluster: string; readonly addon: string }) => (b: ClusterAddon) =>
      a.cluster === b.cluster && a.addon === b.addon;
    for (const put of writes.put) {
      const at = this.records.findIndex(same(put));
      if (at === -1) this.records.push(put);
      else this.records[at] = { ...(this.records[at] as ClusterAddon), spec: put.spec };
    }
    for (const drop of writes.drop) this.records = this.records.filter((record) => !same(drop)(record));
    for (const { addon: name, status } of writes.status) this.change(name, { status });
    this.addons = this.addons.filter(({ name }) => !writes.released.includes(name));
    return writes;
  }

  /** Names of clusters that a step writes to, applied; with another action than Install in front. */
  begin(name?: string): readonly string[] {
    return this.step()
      .put.filter(({ addon: own }) => name === undefined || own === name)
      .map(({ cluster: to, spec }) => (spec.action === 'Install' ? to : `${spec.action} ${to}`));
  }

  /** Agents report a state of what is wanted now. */
  report(state: State, ...clusters: readonly string[]): void {
    this.records = this.records.map((record) => {
      const { revision, specHash: hash } = record.spec;
      if (!clusters.includes(record.cluster)) return record;
      const message = state === 'Failed' ? { message: 'no such kind' } : {};
      return { ...record, status: { applied: { revision, hash }, state, since: this.now, ...message } };
    });
  }

  /** Steps, and success of all that begins, until nothing is under way. */
  settle(): void {
    for (let round = 0; round < 1000; round += 1) {
      const { put } = this.step();
      const isUnderWay = this.addons.some(({ status }) => (status?.batch.length ?? 0) > 0);
      if (put.length === 0 && !isUnderWay) return;
      this.report('Succeeded', ...this.clusters.filter(({ available }) => available).map(({ name }) => name));
      this.now += 3600;
    }
    throw new Error('the fleet does not settle');
  }

  /** A person edits an add-on; `generation` grows if it is more than a status or an order. */
  change(name: string, more: Partial<FleetAddon>): void {
    const isEdit = Object.keys(more).some((key) => key !== 'status' && key !== 'orders');
    this.addons = this.addons.map((one) => {
      return one.name === name ? { ...one, ...more, generation: one.generation + Number(isEdit) } : one;
    });
  }

  release(name: string, version: string): void {
    this.change(name, { source: { content: { package: `${name}-${version}.tar.gz` }, version } });
  }

  order(name: string, orders: Partial<Orders>): void {
    const generation = this.addons.find((one) => one.name === name)?.generation ?? 0;
    this.change(name, { orders: { generation, at: this.now, ...orders } });
  }

  changeCluster(name: string, more: Partial<Cluster>): void {
    this.clusters = this.clusters.map((one) => (one.name === name ? { ...one, ...more } : one));
  }

  spec(on: string, name?: string): ClusterAddon['spec'] | undefined {
    return this.records.find(({ cluster: own, addon: of }) => own === on && (name ?? of) === of)?.spec;
  }

  status(name: string) {
    return this.addons.find((one) => one.name === name)?.status;
  }

  /** All clusters that wait, for one add-on if it is named. */
  waiting(name?: string): readonly Waiting[] {
    const waiting: Waiting[] = [];
    step(this.observed(), this.now, this.memo, (plan) => {
      if (name === undefined || name === plan.run.addon.name) waiting.push(...waitingIn(plan));
    });
    return waiting;
  }

  /** Why a cluster waits, as `Reason: message`. */
  why(on: string, name?: string): string | undefined {
    const found = this.waiting(name).find((one) => one.cluster === on);
    return found && `${found.reason}: ${found.message}`;
  }
}

/** First the canaries w1 and w2, then the shops s1 to s4, two at once. */
export const CANARY: Strategy = {
  type: 'Progressive',
  groups: [ringGroup('canary')],
  mandatoryDecisionGroups: [{ groupName: 'canary' }],
  maxConcurrency: 2,
};
export const CLUSTERS = [...ring('canary', 'w1', 'w2'), ...ring('shop', 's1', 's2', 's3', 's4')];

export function canaryFleet(rollout: Strategy = CANARY, more: Partial<FleetAddon> = {}): TestFleet {
  return new TestFleet(CLUSTERS, addon('net', { rollout, ...more }));
}
