/**
 * ConfigMap `kurl/curlew-records`: what was applied to this cluster, by whichever node. One key for each add-on, so that
 * writers on several nodes are in nobody's way. Pure.
 */
import { canonicalJson } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { isAddonName } from '../../core/ref.ts';
import { isApplied, type AppliedRecord } from '../node/records.ts';
import type { ConfigMapName, Data } from './config-map.ts';

/** A name or an address, with or without a port. */
const SHAPE = /^[0-9A-Za-z._:[\]-]{1,260}$/;

export function isLoadBalancer(text: string): boolean {
  return SHAPE.test(text);
}

export const RECORDS_MAP: ConfigMapName = { namespace: 'kurl', name: 'curlew-records' };

const FORMAT = '1';
const ADDON = 'addon.';
/** Most bytes of one key that are parsed. */
const VALUE_LIMIT = 64 << 10;

export type Applied = Readonly<Record<string, AppliedRecord>>;

export interface ClusterRecords {
  /** By name of the add-on. */
  readonly applied: Applied;
  /** What was taken over from kURL; undefined where nothing was. */
  readonly adopted: Adopted | undefined;
  /** Address of its load balancer when a run over kubernetes finished last; undefined where there was none. */
  readonly loadBalancer: string | undefined;
}

/** Facts of a cluster that kURL has made. */
export interface Adopted {
  /** kURL's version, where it said one. */
  readonly kurlVersion: string | undefined;
  /** From its ConfigMap `kube-system/kurl-config`; without tokens and keys. */
  readonly facts: Readonly<Record<string, string>>;
}

/**
 * Reads the ConfigMap's data; `uid` is the cluster's. Undefined when it is about another cluster: then it came with a
 * backup. Damage is `CLUSTER_FAILED`: guessing would install again, or skip, wrongly.
 */
export function parseClusterRecords(data: Data, uid: string): ClusterRecords | undefined {
  const damaged = (what: string): CurlewError =>
    new CurlewError('CLUSTER_FAILED', `read ConfigMap ${RECORDS_MAP.namespace}/${RECORDS_MAP.name}: damaged: ${what}`, {
      hint: `mend it, or delete it (kubectl -n ${RECORDS_MAP.namespace} delete configmap ${RECORDS_MAP.name}): everything then counts as not installed and is installed again`,
    });
  if (data['format'] !== FORMAT) throw damaged(`format ${JSON.stringify(data['format']?.slice(0, 20))} is not known`);
  if (data['cluster'] === undefined) throw damaged('it does not say of which cluster it is');
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
  if (adopted !== undefined && !isAdopted(adopted)) throw damaged('"adopted"');
  const { loadBalancer } = data;
  if (loadBalancer !== undefined && !isLoadBalancer(loadBalancer)) throw damaged('"loadBalancer"');
  return { applied, adopted, loadBalancer };
}

function parsed(text: string): unknown {
  if (text.length > VALUE_LIMIT) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isAdopted(value: unknown): value is Adopted {
  if (!isObject(value)) return false;
  const { kurlVersion, facts } = value;
  if (kurlVersion !== undefined && typeof kurlVersion !== 'string') return false;
  return isObject(facts) && Object.values(facts).every((fact) => typeof fact === 'string');
}

export interface RecordsChange {
  /** In place of the old ones; undefined takes one away. */
  readonly applied: Readonly<Record<string, AppliedRecord | undefined>>;
  readonly adopted?: Adopted | undefined;
  readonly loadBalancer?: string | undefined;
}

/** Data with these add-ons' records changed; other keys stay as they are. */
export function withRecords(before: Data | undefined, uid: string, change: RecordsChange): Data {
  // Of another cluster: nothing of it holds here.
  const kept = before?.['cluster'] === uid ? before : {};
  const adopted = change.adopted === undefined ? {} : { adopted: canonicalJson(change.adopted) };
  const moved = change.loadBalancer === undefined ? {} : { loadBalancer: change.loadBalancer };
  const data: Record<string, string> = { ...kept, format: FORMAT, cluster: uid, ...adopted, ...moved };
  for (const [name, record] of Object.entries(change.applied)) {
    if (record === undefined) delete data[`${ADDON}${name}`];
    else data[`${ADDON}${name}`] = canonicalJson(record);
  }
  return data;
}
