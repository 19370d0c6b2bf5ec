/** Records the progress of a run in the cluster, as soon as an API server answers. */
import { join } from 'node:path';
import type { Reporting } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { isContainerRuntime, KUBERNETES } from '../plan/hooks.ts';
import { isRemoved } from '../plan/order.ts';
import { whyInstall } from '../plan/plan.ts';
import { type AppliedRecord, recordOf } from '../plan/records.ts';
import { unfinished, type RunRecords } from '../node/run-records.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import type { AppliedRecords } from './cluster-records.ts';
import type { NodeCluster } from './cluster.ts';
import {
  halfInstalledNote,
  isHalfInstalled,
  isOfCluster,
  movedNote,
  type ClusterRequest,
  type ClusterView,
} from './consult.ts';
import { beginData, encodeEntry, entryData, entryKey } from './kurl-config.ts';
import type { PlannedAddon, RunPlan } from '../plan/run-plan.ts';

export interface RunClusterParts extends Reporting {
  /** Undefined if the cluster must not be changed. */
  readonly request: ClusterRequest | undefined;
  readonly view: ClusterView;
  readonly plan: RunPlan;
  /** ID of the run. */
  readonly run: string;
  readonly directory: string;
  /** The new address of the cluster's load balancer, if it has one. */
  readonly loadBalancer: string | undefined;
  readonly records: RunRecords;
  /** Performs a step that a run, or the runs that resume it, do once, and records it in the journal. */
  readonly once: (step: 'last' | 'current' | 'removed', perform: () => Promise<void>) => Promise<void>;
}

/** How long to wait for the API server of a known cluster if an add-on needs it. */
const PATIENCE_MS = 30_000;

/** Adds the add-on to the message of a failed write. */
async function recording({ ref }: PlannedAddon, what: string, writing: Promise<void> | undefined): Promise<void> {
  try {
    await writing;
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    throw error.with({ message: `${ref.name}: cannot record that it ${what}: ${error.message}` });
  }
}

/** The cluster of a run in progress. Without a request every call does nothing. */
export class RunCluster {
  readonly #parts: RunClusterParts;
  #cluster: NodeCluster | undefined;
  /** Records of the cluster before this run. */
  #known: AppliedRecords = {};
  /** Records of a cluster that was first reached during the run; undefined if the plan knew the cluster. */
  #applied: AppliedRecords | undefined;
  /** The hook of Kubernetes, which may repair a cluster that refuses, has not run yet. */
  #mayRefuse: boolean;
  /** The cluster does not take records until that hook has run. */
  #isAwaited = false;

  constructor(parts: RunClusterParts) {
    this.#parts = parts;
    this.#mayRefuse = parts.plan.addons.some(({ ref }) => ref.name === KUBERNETES);
  }

  /** Hooks are about to run: marks their add-ons as unfinished in the cluster. */
  async begin(): Promise<void> {
    const { view } = this.#parts;
    for (const text of view.notes) this.#warn(text);
    if (view.cluster !== undefined) await this.#enter(view.cluster, view.known);
  }

  /** Why an add-on that the plan considers applied is not, in a cluster that the plan did not know. */
  async whyNotApplied(addon: PlannedAddon): Promise<string | undefined> {
    if (!isOfCluster(addon.ref)) return undefined;
    await this.#meet(addon);
    if (this.#applied === undefined) return undefined;
    const because = whyInstall(addon, recordOf(this.#applied, addon.ref.name), false);
    return because === undefined ? undefined : `in the cluster that now responds: ${because}`;
  }

  async installing(addon: PlannedAddon): Promise<void> {
    if (!isOfCluster(addon.ref)) return;
    await this.#meet(addon);
    await recording(addon, 'is being installed', this.#cluster?.writeRecords({ applied: this.#row(addon, false) }));
  }

  /** An add-on was installed, or its check has succeeded. */
  async applied(addon: PlannedAddon): Promise<void> {
    const { request, directory } = this.#parts;
    if (request === undefined) return;
    const { name } = addon.ref;
    const entry = request.entries.get(name);
    if (name === 'containerd')
      await writeStateFile(join(directory, nodePath.containerdApplied), encodeEntry(entry?.entry ?? {}));
    if (name === KUBERNETES) {
      this.#mayRefuse = false;
      this.#isAwaited = false;
      await this.#meet(addon);
    }
    if (name === KUBERNETES || isContainerRuntime(addon.ref)) return;
    await recording(addon, 'is installed', this.#cluster?.addKurl(entryData(name, entry)));
  }

  /** Objects of these add-ons are removed from the cluster. Kubernetes itself ends with its last node. */
  async removed(addons: readonly PlannedAddon[]): Promise<void> {
    const gone = addons.filter(({ ref, mode }) => mode === 'remove' && isOfCluster(ref) && ref.name !== KUBERNETES);
    const cluster = this.#cluster;
    if (cluster === undefined || gone.length === 0) return;
    await this.#parts.once('removed', async () => {
      for (const addon of gone) {
        const { name } = addon.ref;
        await recording(addon, 'was removed', cluster.writeRecords({ applied: { [name]: undefined } }));
        await recording(addon, 'was removed', cluster.removeKurl([entryKey(name)]));
      }
    });
  }

  async finished(addons: readonly PlannedAddon[]): Promise<void> {
    // The run may have removed the API server.
    if (addons.length === 0) return;
    if (this.#cluster === undefined && this.#parts.request !== undefined) await this.#meet(undefined);
    const rows = addons
      .filter((addon) => isOfCluster(addon.ref) && !isRemoved(addon))
      .map((addon) => this.#row(addon, true));
    // Not earlier: if the run fails before, add-ons handle the change of the address again.
    const loadBalancer = addons.some(({ ref }) => ref.name === KUBERNETES) ? this.#parts.loadBalancer : undefined;
    await this.#cluster?.writeRecords({ applied: Object.assign({}, ...rows) as AppliedRecords, loadBalancer });
  }

  #row({ ref, digest, settings }: PlannedAddon, finished: boolean): Readonly<Record<string, AppliedRecord>> {
    const state = { version: ref.version, digest, settings, run: this.#parts.run };
    return { [ref.name]: finished ? { ...state, finished } : unfinished(recordOf(this.#known, ref.name), state) };
  }

  async #find(request: ClusterRequest): Promise<NodeCluster | undefined> {
    return request.find().catch((error: unknown) => {
      if (this.#mayRefuse && isHalfInstalled(this.#parts.records.now, error)) return undefined;
      throw error;
    });
  }

  /** Looks for a cluster that did not exist before. A known one must answer before an add-on needs it. */
  async #meet(addon: PlannedAddon | undefined): Promise<void> {
    const { request, records, signal } = this.#parts;
    if (request === undefined || this.#cluster !== undefined || this.#isAwaited) return;
    const before = records.now.cluster;
    const isNeeded = before !== undefined && addon !== undefined && addon.ref.name !== KUBERNETES;
    const cluster = await repeatUntil(
      async () => this.#find(request),
      (one) => one !== undefined,
      { firstMs: 250, maxMs: 4000, limitMs: isNeeded ? PATIENCE_MS : 0, signal },
    );
    if (cluster === undefined && isNeeded) {
      throw new CurlewError(
        'CLUSTER_FAILED',
        `${addon.ref.name}: the API server of this node's cluster does not respond`,
        { hint: 'start it (crictl ps -a shows its container), then run the same command again to resume' },
      );
    }
    if (cluster === undefined) return;
    if (before !== undefined && before !== cluster.uid) this.#warn(movedNote(before, cluster.uid));
    const recorded = await cluster.readRecords();
    const known = typeof recorded === 'object' ? recorded.applied : {};
    this.#applied = known;
    await this.#enter(cluster, known);
  }

  /** Marks the add-ons of this run as unfinished, and replaces kURL's state unless an earlier run has. */
  async #enter(cluster: NodeCluster, known: AppliedRecords): Promise<void> {
    const { request, view, plan, run, records, once } = this.#parts;
    this.#known = known;
    // Add-ons that are removed only from this node stay in the cluster.
    const names = new Set(plan.addons.flatMap(({ ref, mode }) => (mode === 'leave' ? [] : [ref.name])));
    const touched = Object.entries(known).flatMap(([name, record]) => {
      if (names.has(name)) return [[name, unfinished(record, { ...record, run })] as const];
      // Other add-ons are left out, so that concurrent changes to them are not overwritten.
      return view.adopting === undefined ? [] : [[name, record] as const];
    });
    // Before kURL's state is written: without these records the next run would take the cluster for one of kURL.
    try {
      await cluster.writeRecords({ applied: Object.fromEntries(touched), adopted: view.adopting?.adopted });
    } catch (error) {
      // Such as an API server that still answers from its cache after etcd has gone.
      if (!this.#mayRefuse || !isHalfInstalled(records.now, error)) throw error;
      this.#isAwaited = true;
      this.#warn(halfInstalledNote(error));
      return;
    }
    await records.belongsTo(cluster.uid);
    this.#cluster = cluster;
    if (request?.whole !== true) return;
    const present = plan.addons.filter(
      ({ ref, mode }) => mode === 'already applied' && isOfCluster(ref) && ref.name !== KUBERNETES,
    );
    const entries = present.map(({ ref }) => entryData(ref.name, request.entries.get(ref.name)));
    const data = beginData(request.release, entries);
    // Two actions: repeated after the second one, the first would save the new state as the last one.
    await once('last', async () => cluster.keepKurl());
    await once('current', async () => cluster.beginKurl(data));
  }

  #warn(text: string): void {
    this.#parts.report({ type: 'note', level: 'warning', text });
  }
}
