/**
 * ConfigMap `kurl/curlew-records`: add-ons that any node applied to this cluster. Each add-on has its own key, so that writers on
 * several nodes do not conflict. Pure.
 */
import { jsonIn } from '../../core/json.ts';
import * as v from 'valibot';
import { canonicalJson } from '../../core/digest.ts';
import { errorAbout } from '../../core/errors.ts';
import { RUN_RECORDS } from '../../core/layout.ts';
import { isAddonName } from '../../core/ref.ts';
import { byKey, fits, type Read } from '../../core/schema.ts';
import type { Data } from '../../cluster/kube/config-map.ts';
import { isApplied, type AppliedRecord } from '../plan/records.ts';

/** A name or an address, with or without a port. */
const SHAPE = /^[0-9A-Za-z._:[\]-]{1,260}$/;

export function isLoadBalancer(text: string): boolean {
  return SHAPE.test(text);
}

const FORMAT = '1';
const ADDON = 'addon.';
/** Maximum bytes of one key. */
const VALUE_LIMIT = 64 << 10;

export type AppliedRecords = Readonly<Record<string, AppliedRecord>>;

export interface ClusterRecords {
  /** By name of the add-on. */
  readonly applied: AppliedRecords;
  /** State that was adopted from kURL; undefined if none was. */
  readonly adopted: Adopted | undefined;
  /** Address of its load balancer when a run with kubernetes last finished; undefined if it had none. */
  readonly loadBalancer: string | undefined;
}

/** Facts of a cluster that kURL created. */
const adoptedFacts = v.object({
  /** kURL's version, if recorded. */
  kurlVersion: v.optional(v.string()),
  /** From its ConfigMap `kube-system/kurl-config`; without tokens and keys. */
  facts: byKey(v.string()),
});
export type Adopted = Read<typeof adoptedFacts>;

/**
 * Parses the ConfigMap's data; `uid` is the cluster's. Undefined if it describes another cluster, as after a restore from a
 * backup. `CLUSTER_FAILED` if it is damaged: a guess would reinstall or skip add-ons wrongly.
 */
export function parseClusterRecords(data: Data, uid: string): ClusterRecords | undefined {
  const damaged = errorAbout(
    'CLUSTER_FAILED',
    `cannot read ConfigMap ${RUN_RECORDS.namespace}/${RUN_RECORDS.name}: damaged`,
    `repair it, or delete it (kubectl -n ${RUN_RECORDS.namespace} delete configmap ${RUN_RECORDS.name}): everything then counts as not installed and is installed again`,
  );
  if (data['format'] !== FORMAT) throw damaged(`format ${JSON.stringify(data['format']?.slice(0, 20))} is not known`);
  if (data['cluster'] === undefined) throw damaged('the UID of its cluster is missing');
  if (data['cluster'] !== uid) return undefined;
  const applied: Record<string, AppliedRecord> = {};
  for (const [key, text] of Object.entries(data)) {
    if (!key.startsWith(ADDON)) continue;
    const name = key.slice(ADDON.length);
    const record = parsed(text);
    if (!isAddonName(name) || !isApplied(record)) throw damaged(JSON.stringify(key.slice(0, 120)));
    applied[name] = record;
  }
  const adopted = data['adopted'] === undefined ? undefined : parsed(data['adopted']);
  if (adopted !== undefined && !fits(adoptedFacts, adopted)) throw damaged('"adopted"');
  const { loadBalancer } = data;
  if (loadBalancer !== undefined && !isLoadBalancer(loadBalancer)) throw damaged('"loadBalancer"');
  return { applied, adopted, loadBalancer };
}

function parsed(text: string): unknown {
  return text.length > VALUE_LIMIT ? undefined : jsonIn(text);
}

export interface RecordsChange {
  /** New records; undefined removes one. */
  readonly applied: Readonly<Record<string, AppliedRecord | undefined>>;
  readonly adopted?: Adopted | undefined;
  readonly loadBalancer?: string | undefined;
}

/** The data with the records of these add-ons changed; other keys stay. */
export function withRecords(before: Data | undefined, uid: string, change: RecordsChange): Data {
  // Data of another cluster is dropped.
  const current = before?.['cluster'] === uid ? before : {};
  const adopted = change.adopted === undefined ? {} : { adopted: canonicalJson(change.adopted) };
  const moved = change.loadBalancer === undefined ? {} : { loadBalancer: change.loadBalancer };
  const data: Record<string, string> = { ...current, format: FORMAT, cluster: uid, ...adopted, ...moved };
  for (const [name, record] of Object.entries(change.applied)) {
    if (record === undefined) delete data[`${ADDON}${name}`];
    else data[`${ADDON}${name}`] = canonicalJson(record);
  }
  return data;
}
