/** What an agent finds out about its own cluster: facts, and the health of what it has delivered. */
import { healthOf } from '../../../cluster/channel/health.ts';
import { decodeRecords, recordKey, type AddonRecord } from '../../../cluster/channel/record.ts';
import { requireRefusal } from '../../../core/errors.ts';
import { CHANNEL_RECORDS } from '../../../core/layout.ts';
import { isHandedOver, leftOf, ownRecord, settledRecords } from '../../observe.ts';
import type { Kept } from '../../hub/agent-record.ts';
import type { AddonHealth } from '../../hub/agent-status.ts';
import type { SeenObjects } from '../../hub/changed-by-others.ts';
import { leaseStatus } from '../../hub/lease.ts';
import type { ClusterSeen } from '../../hub/cluster-status.ts';
import type { KubeApi } from '../../../cluster/kube/api.ts';
import { openCalls, type Call } from '../../../cluster/kube/call.ts';
import { configMapClient } from '../../../cluster/kube/config-map.ts';
import { LEASES } from '../../../cluster/kube/lease.ts';
import { getObject, mapObjects, titleOf, type LiveObject } from '../../../cluster/kube/objects.ts';
import { observe } from '../../../cluster/deliver/deliver.ts';
import { readVersion } from '../../../cluster/deliver/channel-cluster.ts';
import { toolVersion } from '../../../own/version.ts';
import { NODES } from '../../../cluster/kube/core-kinds.ts';

/** Whose health says how an add-on is; others do not change by themselves. */
const WORKLOADS = new Set(['Deployment', 'DaemonSet', 'StatefulSet']);

export interface Found {
  readonly is: AddonHealth['is'];
  readonly why: string;
}

/** Looks again and again, and knows since when what it sees is as it is. */
export class OwnCluster {
  readonly #api: KubeApi;
  readonly #ofPackage: (name: string) => Promise<Found | undefined>;
  readonly health = new Map<string, AddonHealth>();
  /** Objects that earlier contents have left, by add-on, and when that was seen. */
  readonly left = new Map<string, { readonly titles: readonly string[]; readonly at: number }>();
  /** How objects are, by add-on. */
  readonly seen = new Map<string, SeenObjects>();
  /** Why not all objects were compared. */
  problem: string | undefined;
  /** The last version of the Lease of each add-on, and when it came. */
  readonly #leases = new Map<string, { readonly version: string; readonly at: number }>();

  /** `ofPackage`: what a package on this node says; undefined to leave it as it was. */
  constructor(api: KubeApi, ofPackage: (name: string) => Promise<Found | undefined>) {
    this.#api = api;
    this.#ofPackage = ofPackage;
  }

  /** What was seen of an add-on no longer holds. */
  forget(name: string): void {
    this.seen.delete(name);
  }

  /** `addons`: those that are to be healthy, and what is known of each. `now` in seconds since 1970. */
  async look(
    addons: ReadonlyMap<string, Pick<Kept, 'package' | 'drift'>>,
    { now, signal }: { readonly now: number; readonly signal: AbortSignal },
  ): Promise<Omit<ClusterSeen, 'ahead'>> {
    const options = { patienceMs: 0, signal };
    const call = openCalls(this.#api, options);
    try {
      const version = await readVersion(call);
      const archOf = ({ metadata }: LiveObject): string => metadata.labels['kubernetes.io/arch'] ?? '';
      const arches = (await mapObjects(call, NODES, { onlyMetadata: true }, archOf)) ?? [];
      const { server } = await this.#api.target({ signal });
      const arch = [...new Set(arches.filter((one) => one !== ''))].toSorted().join(',');
      const data =
        addons.size === 0 ? {} : ((await configMapClient(this.#api, options).read(CHANNEL_RECORDS))?.data ?? {});
      const records = [...decodeRecords(data).records.values()];
      for (const name of this.health.keys()) if (!addons.has(name)) this.health.delete(name);
      const compared = [...addons].flatMap(([name, { drift = 'None' }]) => (drift === 'None' ? [] : [name]));
      await this.#compare(compared, records, { call, now, signal });
      for (const [name, { package: packaged }] of addons) {
        const record = ownRecord(records, name);
        this.left.set(name, { titles: leftOf(records, name), at: now });
        const health =
          packaged !== undefined
            ? await this.#ofPackage(packaged)
            : record && ((await this.#lease(name, record, { call, now })) ?? (await workloads(record, call)));
        const before = this.health.get(name);
        if (health !== undefined)
          this.health.set(name, { ...health, since: before?.is === health.is ? before.since : now });
      }
      return {
        facts: { version, nodes: arches.length, ...(arch !== '' && { arch }), agentVersion: toolVersion(), server },
        problem: '',
      };
    } catch (error) {
      requireRefusal(error, signal);
      return { facts: undefined, problem: error.message };
    }
  }

  /** Compares objects of these add-ons with their records. A user that may not read them learns nothing, and still has the rest. */
  async #compare(
    names: readonly string[],
    records: readonly AddonRecord[],
    { call, now, signal }: { readonly call: Call; readonly now: number; readonly signal: AbortSignal },
  ): Promise<void> {
    for (const name of this.seen.keys()) if (!names.includes(name)) this.seen.delete(name);
    const warnings: string[] = [];
    try {
      const own = settledRecords(names.flatMap((name) => ownRecord(records, name) ?? []));
      const all = await observe(
        { call, signal, warnings },
        own.filter((one) => !isHandedOver(one, records)),
      );
      for (const name of names) {
        const record = ownRecord(own, name);
        const live = record && all.get(recordKey(record.namespace, record.addon));
        if (live === undefined) this.seen.delete(name);
        else this.seen.set(name, { live, at: now });
      }
    } catch (error) {
      requireRefusal(error, signal);
      warnings.push(`objects of add-ons are not compared: ${error.message}`);
    }
    [this.problem] = warnings;
  }

  /**
   * By a Lease that has the name of the add-on, in its namespace: its component renews it, by whatever clock. Undefined for an
   * add-on that never had one.
   */
  async #lease(
    name: string,
    { namespace: own, release, objects = [] }: AddonRecord,
    { call, now }: { readonly call: Call; readonly now: number },
  ): Promise<Found | undefined> {
    const first = objects.flatMap((kind) => kind.objects).find((one) => one.namespace !== undefined);
    const namespace = release?.namespace ?? first?.namespace ?? own;
    const version = (await getObject(call, LEASES, { namespace, name }, { onlyMetadata: true }))?.metadata
      .resourceVersion;
    const before = this.#leases.get(name);
    if (version === undefined && before === undefined) return undefined;
    if (version !== undefined && before?.version !== version) this.#leases.set(name, { version, at: now });
    const renewed = before !== undefined && before.version === version ? now - before.at : 0;
    const is = leaseStatus(version === undefined ? undefined : renewed);
    const gone = `its Lease ${namespace}/${name} is gone`;
    return { is, why: { True: '', False: `its Lease was not renewed for ${renewed} s`, Unknown: gone }[is] };
  }
}

async function workloads({ objects = [] }: AddonRecord, call: Call): Promise<Found> {
  for (const resource of objects.filter(({ kind }) => WORKLOADS.has(kind))) {
    for (const { namespace, name } of resource.objects) {
      const live = await getObject(call, resource, { namespace, name });
      const title = titleOf(resource, { namespace, name });
      if (live === undefined) return { is: 'False', why: `${title} does not exist` };
      const { state, reason } = healthOf(live, {});
      if (state !== 'healthy') return { is: 'False', why: `${title}: ${reason}` };
    }
  }
  return { is: 'True', why: '' };
}
