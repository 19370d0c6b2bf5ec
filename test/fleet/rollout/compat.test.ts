/** A step by the rules that an add-on names. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { ClusterAddon, FleetAddon, Observed } from '../../../src/fleet/rollout/fleet.ts';
import { step, waitingIn } from '../../../src/fleet/rollout/step.ts';
import type { State, Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/compat');
const NOW = 1_800_000_000;

interface Vector {
  readonly id: string;
  readonly in: {
    readonly strategy: Strategy;
    readonly groups: Readonly<Record<string, readonly string[]>>;
    readonly existing: Readonly<Record<string, string>>;
  };
  readonly out: { readonly rollout: readonly string[]; readonly breach: boolean; readonly recheckAfter?: number };
}

function addonOf(rollout: Strategy, more: Partial<FleetAddon> = {}): FleetAddon {
  const source = { content: { type: 'manifest', hash: 'a' } };
  return { name: 'net', generation: 1, identity: 'addon:net', source, clusterSelector: {}, rollout, ...more };
}

function clustersOf(groups: Vector['in']['groups'], available = true): Observed['clusters'] {
  return Object.entries(groups).flatMap(([group, names]) =>
    names.map((name) => ({ name, labels: { group }, available, kubernetes: 'v1.31.2' })),
  );
}

/** Records as a vector has them: what is to apply has another content. */
function recordsOf(clusters: Observed['clusters'], existing: Vector['in']['existing']): readonly ClusterAddon[] {
  const { put } = step({ complete: true, clusters, addons: [addonOf({})], clusterAddons: [] }, NOW);
  return put.flatMap(({ cluster, addon, spec }) => {
    const { [cluster]: text } = existing;
    if (text === undefined) return [];
    const [title = '', at = '0'] = text.split('@');
    const isOld = title === 'ToApply';
    const specHash = isOld ? 'old' : spec.specHash;
    const since = NOW + Number(at);
    const state: State = isOld ? 'Succeeded' : (title as State);
    const status = { applied: { revision: spec.revision, hash: specHash }, state, since };
    return [{ cluster, addon, spec: { ...spec, specHash, startedAt: since }, status }];
  });
}

const text = await readFile(join(import.meta.dirname, '../../fixtures/rollout/ocm-rollout.yaml'), 'utf8');
for (const { id, in: given, out } of (parse(text) as { readonly vectors: readonly Vector[] }).vectors) {
  test(`${id}: a step begins what upstream would`, () => {
    const clusters = clustersOf(given.groups);
    const groups = Object.keys(given.groups).map((name) => {
      return { name: name.startsWith('_') ? '' : name, selector: { matchLabels: { group: name } } };
    });
    const addon = addonOf({ ...given.strategy, groups }, { compat: 'ocm' });
    const { put, status } = step(
      { complete: true, clusters, addons: [addon], clusterAddons: recordsOf(clusters, given.existing) },
      NOW,
    );
    const begun = out.rollout.flatMap((one) => (one.endsWith(':ToApply') ? [one.replace(':ToApply', '')] : []));
    assert.equal(put.map(({ cluster }) => cluster).toSorted(), begun.toSorted());
    assert.is(status[0]?.status.stopped !== undefined, out.breach);
  });
}

test('by the rules of Open Cluster Management c10 comes before c2, nothing times out by itself, and offline clusters keep their place', () => {
  const groups = { all: ['c2', 'c10', 'c1'] };
  const begun = (clusters: Observed['clusters'], existing: Vector['in']['existing'], compat?: 'ocm') => {
    const addon = addonOf({ type: 'Progressive', maxConcurrency: 2 }, compat && { compat });
    const clusterAddons = recordsOf(clusters, existing);
    return step({ complete: true, clusters, addons: [addon], clusterAddons }, NOW).put.map(({ cluster }) => cluster);
  };
  assert.equal(begun(clustersOf(groups), {}, 'ocm').toSorted(), ['c1', 'c10']);
  assert.equal(begun(clustersOf(groups), {}), ['c1', 'c2']);
  const late = { c1: 'Progressing@-90000', c10: 'Progressing@-90000' };
  assert.equal(begun(clustersOf(groups), late, 'ocm'), []);
  const off = clustersOf(groups).map((one) => (one.name === 'c2' ? one : { ...one, available: false }));
  assert.equal(begun(off, late, 'ocm'), []);
  assert.equal(begun(off, late), ['c2']);
});

test('by the rules of the Helm add-on provider, values that cannot be rendered hold all clusters after them', () => {
  const clusters = clustersOf({ all: ['a', 'b', 'c'] });
  const valuesTemplate = '{{ if eq .Cluster.name "b" }}{{ fail "no address" }}{{ end }}';
  const waiting = (compat?: 'caaph') => {
    const why: string[] = [];
    const addons = [addonOf({}, { valuesTemplate, ...(compat && { compat }) })];
    const { put } = step({ complete: true, clusters, addons, clusterAddons: [] }, NOW, undefined, (plan) => {
      for (const { cluster, message } of waitingIn(plan)) why.push(`${cluster}: ${message}`);
    });
    return [put.map(({ cluster }) => cluster), why.map((one) => one.replace(/: cannot render.*/s, ''))];
  };
  assert.equal(waiting(), [['a', 'c'], ['b']]);
  assert.equal(waiting('caaph'), [['a'], ['b', 'c: b comes before it, and its values cannot be rendered']]);
});

test('by the rules of the Helm add-on provider, values that what a site reports keeps from being rendered hold only this site', () => {
  const forged = { kubernetes: 'v0.0.0', facts: { version: 'v0.0.0', nodes: 0 }, server: 'https://bad' };
  const clusters = clustersOf({ all: ['a', 'b', 'c'] }).map((one) => {
    return { ...one, facts: { nodes: 3 }, server: 'https://b', ...(one.name === 'b' && forged) };
  });
  for (const wrong of [
    'eq .Cluster.kubernetes.version "v0.0.0"',
    'eq .Cluster.facts.nodes 0',
    'eq .Cluster.server "https://bad"',
  ]) {
    const valuesTemplate = `{{ if ${wrong} }}{{ fail "not known" }}{{ end }}`;
    const addons = [addonOf({}, { valuesTemplate, compat: 'caaph' })];
    const { put } = step({ complete: true, clusters, addons, clusterAddons: [] }, NOW);
    assert.equal(
      put.map(({ cluster }) => cluster),
      ['a', 'c'],
      wrong,
    );
  }
});

test.run();
