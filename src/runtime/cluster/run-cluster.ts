/** What a run notes in the cluster, step by step, from the moment on that an API server answers. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import type { OnceAction } from '../run/continue-plan.ts';
import { isContainerRuntime, KUBERNETES } from '../hooks/hooks.ts';
import { isRemoved } from '../run/plan-phases.ts';
import { whyInstall } from '../run/plan.ts';
import type { AppliedRecord } from '../node/records.ts';
import type { RunRecords } from '../run/run-records.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import type { Applied } from './cluster-records.ts';
import type { Cluster } from './cluster.ts';
import { isOfCluster, movedNote, type ClusterRequest, type ClusterView } from './consult.ts';
import { beginData, CONTAINERD_APPLIED, encodeEntry, entryData, entryKey } from './kurl-config.ts';
import type { PlannedAddon, RunPlan } from '../run/run-plan.ts';

export interface RunClusterParts {
  /** Undefined when the cluster is to be left alone. */
  readonly request: ClusterRequest | undefined;
  readonly view: ClusterView;
  readonly plan: RunPlan;
  /** Id of the run. */
  readonly run: string;
  readonly directory: string;
  /** The address of the cluster's load balancer from now on, where it has one. */
  readonly loadBalancer: string | undefined;
  readonly records: RunRecords;
  /** Does an act that a run and those that go on from it do once; from its end on the journal knows that it is done. */
  readonly once: (action: OnceAction, act: () => Promise<void>) => Promise<void>;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** How long the API server of a known cluster may take to come back before an add-on needs it. */
const PATIENCE_MS = 30_000;

/** Tells, of a failure, with which add-on the run was at work. */
async function noting({ ref }: PlannedAddon, what: string, writing: Promise<void> | undefined): Promise<void> {
  try {
    await writing;
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    const { code, message, hint, cause } = error;
    throw new CurlewError(code, `${ref.name}: note that it ${what}: ${message}`, { hint, cause });
  }
}

/** The cluster of a run that is under way. Without a request every call does nothing. */
export class RunCluster {
  readonly #parts: RunClusterParts;
  #cluster: Cluster | undefined;
  /** What the cluster said when it was met in the middle of the run; undefined when the plan knew it. */
  #met: Applied | undefined;

  constructor(parts: RunClusterParts) {
    this.#parts = parts;
  }

  /** Hooks are about to run: from here on the cluster does not count what they touch as finished. */
  async begin(): Promise<void> {
    const { view } = this.#parts;
    for (const text of view.notes) this.#note('warning', text);
    if (view.cluster !== undefined) await this.#enter(view.cluster, view.known);
  }

  /** Why an add-on that was to be applied already is not, in a cluster that the plan did not know. */
  async whyNotApplied(addon: PlannedAddon): Promise<string | undefined> {
    if (!isOfCluster(addon.ref)) return undefined;
    await this.#meet(addon);
    if (this.#met === undefined) return undefined;
    const { name } = addon.ref;
    const record = Object.hasOwn(this.#met, name) ? this.#met[name] : undefined;
    const because = whyInstall(addon, record, false);
    return because === undefined ? undefined : `in the cluster that answers now ${because}`;
  }

  async installing(addon: PlannedAddon): Promise<void> {
    if (!isOfCluster(addon.ref)) return;
    await this.#meet(addon);
    await noting(addon, 'is being installed', this.#cluster?.writeRecords({ applied: this.#row(addon, false) }));
  }

  /** An add-on was installed, or found to be. */
  async applied(addon: PlannedAddon): Promise<void> {
    const { request, directory } = this.#parts;
    if (request === undefined) return;
    const { name } = addon.ref;
    const entry = request.entries.get(name);
    if (name === 'containerd')
      await writeStateFile(join(directory, CONTAINERD_APPLIED), encodeEntry(entry?.entry ?? {}));
    if (name === KUBERNETES) await this.#meet(addon);
    if (name === KUBERNETES || isContainerRuntime(addon.ref)) return;
    await noting(addon, 'is installed', this.#cluster?.addKurl(entryData(name, entry)));
  }

  /** What these add-ons have in the cluster is removed. Kubernetes itself goes with its last node. */
  async removed(addons: readonly PlannedAddon[]): Promise<void> {
    const gone = addons.filter(({ ref, mode }) => mode === 'remove' && isOfCluster(ref) && ref.name !== KUBERNETES);
    const cluster = this.#cluster;
    if (cluster === undefined || gone.length === 0) return;
    await this.#parts.once('cluster removed', async () => {
      for (const addon of gone) {
        const { name } = addon.ref;
        await noting(addon, 'was removed', cluster.writeRecords({ applied: { [name]: undefined } }));
        await noting(addon, 'was removed', cluster.removeKurl([entryKey(name)]));
      }
    });
  }

  async finished(addons: readonly PlannedAddon[]): Promise<void> {
    // The API server may be among what was removed.
    if (addons.length === 0) return;
    if (this.#cluster === undefined && this.#parts.request !== undefined) await this.#meet(undefined);
    const rows = addons
      .filter((addon) => isOfCluster(addon.ref) && !isRemoved(addon))
      .map((addon) => this.#row(addon, true));
    // Until here the former address counts: what add-ons do about a new one is done again.
    const loadBalancer = addons.some(({ ref }) => ref.name === KUBERNETES) ? this.#parts.loadBalancer : undefined;
    await this.#cluster?.writeRecords({ applied: Object.assign({}, ...rows) as Applied, loadBalancer });
  }

  #row({ ref, digest, settings }: PlannedAddon, finished: boolean): Readonly<Record<string, AppliedRecord>> {
    return { [ref.name]: { version: ref.version, digest, settings, run: this.#parts.run, finished } };
  }

  /** Looks for a cluster that was not there before. One that is known has to come back before an add-on needs it. */
  async #meet(addon: PlannedAddon | undefined): Promise<void> {
    const { request, records, signal } = this.#parts;
    if (request === undefined || this.#cluster !== undefined) return;
    const before = records.now.cluster;
    const isNeeded = before !== undefined && addon !== undefined && addon.ref.name !== KUBERNETES;
    const until = performance.now() + (isNeeded ? PATIENCE_MS : 0);
    let cluster = await request.find();
    for (let waitMs = 250; cluster === undefined && performance.now() + waitMs < until; waitMs *= 2) {
      await pause(waitMs, undefined, { signal });
      cluster = await request.find();
    }
    if (cluster === undefined && isNeeded) {
      throw new CurlewError(
        'CLUSTER_FAILED',
        `${addon.ref.name}: the API server of this node's cluster does not answer`,
        {
          hint: 'see that it is running (crictl ps -a), then run the same command again: it resumes',
        },
      );
    }
    if (cluster === undefined) return;
    if (before !== undefined && before !== cluster.uid) this.#note('warning', movedNote(before, cluster.uid));
    const found = await cluster.readRecords();
    const known = typeof found === 'object' ? found.applied : {};
    this.#met = known;
    await this.#enter(cluster, known);
  }

  /** Marks what this run touches as unfinished, and begins kURL's state anew unless an earlier run has. */
  async #enter(cluster: Cluster, known: Applied): Promise<void> {
    const { request, view, plan, run, records, once } = this.#parts;
    // What only this node leaves stays as it is in the cluster.
    const names = new Set(plan.addons.flatMap(({ ref, mode }) => (mode === 'leave' ? [] : [ref.name])));
    const touched = Object.entries(known).flatMap(([name, record]) => {
      if (names.has(name)) return [[name, { ...record, run, finished: false }] as const];
      // What another writer does to the others meanwhile must stay.
      return view.adopting === undefined ? [] : [[name, record] as const];
    });
    // Before anything of kURL's is written: without these records the next run would take the cluster for kURL's.
    await cluster.writeRecords({ applied: Object.fromEntries(touched), adopted: view.adopting?.adopted });
    await records.belongsTo(cluster.uid);
    this.#cluster = cluster;
    if (request?.whole !== true) return;
    const there = plan.addons.filter(
      ({ ref, mode }) => mode === 'already applied' && isOfCluster(ref) && ref.name !== KUBERNETES,
    );
    const entries = there.map(({ ref }) => entryData(ref.name, request.entries.get(ref.name)));
    const data = beginData(request.release, entries);
    // Two acts: done once more after the second one, the first would take what has begun for what was before.
    await once('cluster last', async () => cluster.keepKurl());
    await once('cluster current', async () => cluster.beginKurl(data));
  }

  #note(level: 'info' | 'warning', text: string): void {
    this.#parts.report({ type: 'note', level, text });
  }
}
