/** What an agent writes into its hub: the status of its add-ons and of its cluster, and the Lease by which it is alive. */
import { canonicalJson } from '../../../core/digest.ts';
import { CurlewError } from '../../../core/errors.ts';
import { fieldsOf } from '../../../core/json.ts';
import { agentLease } from '../../hub/identity.ts';
import { GRACE_S } from '../../hub/lease.ts';
import { namespaceOf, type Version } from '../../hub/observe.ts';
import type { KubeApi } from '../../../cluster/kube/api.ts';
import { openCalls, type Call } from '../../../cluster/kube/call.ts';
import { LEASES } from '../../../cluster/kube/lease.ts';
import { getObject, patchObject, type LiveObject } from '../../../cluster/kube/objects.ts';
import { objectPath } from '../../../cluster/kube/resources.ts';
import type { Values } from '../../rollout/fleet.ts';
import { resourceOf } from '../../hub/run/hub-pass.ts';

const [CLUSTERS, CLUSTER_ADDONS] = [resourceOf('Cluster'), resourceOf('ClusterAddon')];
/** A status of the cluster in which nothing but the time is new is written this often. */
const SEEN_MS = 300_000;

export class AgentHub {
  readonly call: Call;
  readonly #cluster: { readonly namespace: string; readonly name: string };
  readonly #lease: { readonly namespace: string; readonly name: string };
  #held: LiveObject | undefined;
  #hasHeld = false;
  #rival: { readonly holder: string; readonly at: number } | undefined;
  #status: { readonly text: string; readonly at: number } | undefined;

  constructor(api: KubeApi, { cluster: name, signal }: { readonly cluster: string; readonly signal: AbortSignal }) {
    this.call = openCalls(api, { patienceMs: 0, signal });
    this.#cluster = { namespace: namespaceOf(name), name };
    this.#lease = agentLease(name);
  }

  /** Who else has renewed the Lease in the last five minutes, after this agent had it. */
  get rival(): string | undefined {
    const { holder, at = 0 } = this.#rival ?? {};
    return performance.now() - at < GRACE_S * 1000 ? holder : undefined;
  }

  /** One request, unless another process has written the Lease. */
  async beat(holder: string): Promise<void> {
    this.#held ??= await getObject(this.call, LEASES, this.#lease);
    if (this.#held === undefined)
      throw new CurlewError('CLUSTER_FAILED', `cannot renew the Lease of the agent: it does not exist`);
    const { holderIdentity: other } = fieldsOf(this.#held['spec']);
    if (this.#hasHeld && typeof other === 'string' && other !== '' && other !== holder)
      this.#rival = { holder: other, at: performance.now() };
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    const spec = { ...fieldsOf(this.#held['spec']), holderIdentity: holder, leaseDurationSeconds: GRACE_S, renewTime };
    const document = JSON.stringify({ ...this.#held, spec });
    this.#held = undefined;
    const answer = await this.call('renew the Lease of the agent', {
      verb: 'replace',
      path: objectPath(LEASES, this.#lease),
      document,
    });
    if (answer.outcome !== 'done') return;
    this.#held = answer.value as LiveObject;
    this.#hasHeld = true;
  }

  async writeStatus(at: Version, value: Values): Promise<LiveObject | undefined> {
    return patchObject(this.call, CLUSTER_ADDONS, at, {
      operations: [{ op: 'add', path: '/status', value }],
      subresource: 'status',
    });
  }

  /** The stored status of the cluster; undefined if the Cluster does not exist. */
  async clusterStatus(): Promise<unknown> {
    return (await getObject(this.call, CLUSTERS, this.#cluster))?.['status'];
  }

  /** If more than the time has changed, or after a while. */
  async writeClusterStatus({ lastSeen, ...others }: Values): Promise<void> {
    const text = canonicalJson(others);
    if (this.#status?.text === text && performance.now() - this.#status.at < SEEN_MS) return;
    const operations = [{ op: 'add', path: '/status', value: { ...others, lastSeen } }];
    await patchObject(this.call, CLUSTERS, this.#cluster, { operations, subresource: 'status' });
    this.#status = { text, at: performance.now() };
  }
}
