/** Passes of a controller over a hub in memory, and what people and agents write between them. */
import { isObject } from '../../src/core/json.ts';
import { timeOf } from '../../src/core/time.ts';
import { passHub, resourceOf } from '../../src/fleet/hub/run/hub-pass.ts';
import type { HubKind } from '../../src/fleet/hub/hub-kinds.ts';
import { patchObject } from '../../src/cluster/kube/objects.ts';
import type { State } from '../../src/fleet/rollout/strategy.ts';
import * as assert from './assert.ts';
import type { MemoryHub } from './hub-memory.ts';
import { hubCluster } from './hub-objects.ts';

/** When the first pass is. */
export const NOW = 1_800_000_000;

interface Written {
  readonly apiVersion?: string;
  readonly kind: HubKind;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** A cluster that answers, with the label `env: prod`. */
export function answering(name: string, kubernetes: string, labels: object = {}): object {
  const available = {
    type: 'Available',
    status: 'True',
    reason: 'Answers',
    lastTransitionTime: '2026-01-02T03:04:05Z',
  };
  const status = { facts: { version: kubernetes }, conditions: [available] };
  return { ...hubCluster(name, { env: 'prod', ...labels }), status };
}

/** What the clusters get, such as `oslo:1.0.0@1`, in the order of their names. */
export function contents({ hub }: MemoryHub): string {
  const records = hub.clusterAddons.values().flatMap((one) => one?.record ?? []);
  return records
    .map(({ cluster: name, spec: { action, version = '', revision } }) => {
      return `${name}:${action === 'Remove' ? '-' : ''}${version}@${revision}`;
    })
    .toSorted()
    .join(' ');
}

/** Changes these fields of an object, also of its metadata. */
export async function change({ hub }: MemoryHub, changed: object): Promise<void> {
  const { apiVersion: _version, kind, metadata, ...fields } = changed as Written;
  const watches = {
    Cluster: hub.clusters,
    FleetAddon: hub.addons,
    Channel: hub.channels,
    ClusterAddon: hub.clusterAddons,
  };
  const { name, namespace, ...others } = metadata;
  const operations = [
    ...Object.entries(others).map(([key, value]) => ({ op: 'add', path: `/metadata/${key}`, value })),
    ...Object.entries(fields).map(([key, value]) => ({ op: 'add', path: `/${key}`, value })),
  ];
  const found = await patchObject(hub.call, resourceOf(kind), { namespace, name }, { operations });
  if (found === undefined || !isObject(found)) throw new TypeError(`there is no ${kind} ${name}`);
  watches[kind].put(found);
}

/** The agents of these clusters have what they are to have. */
export async function succeed(memory: MemoryHub, ...names: readonly string[]): Promise<void> {
  await report(memory, 'Succeeded', 0, ...names);
}

/** The agents of these clusters report this state so many seconds after the first pass. */
export async function report(
  memory: MemoryHub,
  state: State,
  seconds: number,
  ...names: readonly string[]
): Promise<void> {
  for (const { at, record } of memory.hub.clusterAddons.values().flatMap((one) => one ?? [])) {
    if (record === undefined || !names.includes(record.cluster)) continue;
    const applied = { revision: record.spec.revision, hash: record.spec.specHash };
    const status = { applied, state, since: timeOf(NOW + seconds) };
    await change(memory, { kind: 'ClusterAddon', metadata: { name: at.name, namespace: at.namespace }, status });
  }
}

/** Metadata of an object that a person has deleted. */
export const DELETED = { deletionTimestamp: '2027-01-15T08:00:00Z' };

/** Passes so many seconds after the first one; each decides. */
export async function pass({ hub }: MemoryHub, ...times: readonly number[]): Promise<void> {
  for (const at of times) assert.is((await passHub(hub, NOW + at)).problem, undefined);
}

/** Why clusters wait for the add-on `web`. */
export const waiting = ({ hub }: MemoryHub): readonly string[] =>
  (hub.addons.get({ name: 'web' })?.addon.status?.waiting ?? []).map((one) => {
    return `${one.cluster} ${one.reason}: ${one.message}`;
  });

/** Why the add-on `web` cannot be read. */
export const problemOf = ({ hub }: MemoryHub): string | undefined => {
  const found = hub.addons.get({ name: 'web' })?.conditions.find(({ reason }) => reason === 'Invalid');
  return found?.message;
};
