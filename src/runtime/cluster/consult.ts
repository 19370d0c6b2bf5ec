/** Reads the cluster's state before a run is planned: effective records, and state of kURL. */
import { CurlewError } from '../../core/errors.ts';
import { RUN_RECORDS } from '../../core/layout.ts';
import { isContainerRuntime, KUBERNETES } from '../plan/hooks.ts';
import type { ShellVariable } from '../../spec/variables.ts';
import { NO_RUN, type Records, recordOf } from '../plan/records.ts';
import { withRecords, type Adopted, type AppliedRecords } from './cluster-records.ts';
import type { NodeCluster } from './cluster.ts';
import { configMapBytes, CONFIG_MAP_LIMIT, configMapTitle } from '../../cluster/kube/config-map.ts';
import { Unfinished } from '../../cluster/kube/kubeadm-made.ts';
import {
  adoptKurl,
  beginData,
  CURRENT_CONFIG,
  CURRENT_SECRET,
  entryData,
  withFacts,
  type SpecEntry,
} from './kurl-config.ts';
import type { RunPlan } from '../plan/run-plan.ts';

/** How a run reads and records state in the cluster. */
export interface ClusterRequest {
  /** The cluster that this node belongs to, if its API server answers. */
  readonly find: () => Promise<NodeCluster | undefined>;
  /** Whether a cluster that kURL created may be taken over; undefined if the run does not support that. */
  readonly adopt: boolean | undefined;
  /** The run applies all add-ons of a spec, not a single one. */
  readonly whole: boolean;
  /** Release of the packages, if known. */
  readonly release: string | undefined;
  /** Version and settings of each add-on in the spec, by folder name. */
  readonly entries: ReadonlyMap<string, SpecEntry>;
}

export interface ClusterView {
  readonly cluster: NodeCluster | undefined;
  /** The node's records; the cluster's records override those of add-ons in the cluster. */
  readonly records: Records;
  /** Records of this node alone. */
  readonly own: AppliedRecords;
  /** Records of the cluster; empty without a cluster. */
  readonly known: AppliedRecords;
  /** The channels of add-ons that channels keep in the cluster, by the names of the add-ons. */
  readonly channels: ReadonlyMap<string, string>;
  /** State that this run takes over from kURL. */
  readonly adopting: ReturnType<typeof adoptKurl> | undefined;
  /** Facts of a cluster that kURL created, taken over now or earlier. */
  readonly adopted: Adopted | undefined;
  /** The last recorded address of its load balancer. */
  readonly loadBalancer: string | undefined;
  /** It is another cluster than the last run's, so that run cannot be resumed. */
  readonly moved: boolean;
  /** Warnings to report when the run starts. */
  readonly notes: readonly string[];
}

/**
 * Reads the cluster's state and changes nothing. `UNSUPPORTED` for a cluster that kURL created, unless it is to be adopted.
 * `CLUSTER_FAILED` if records are damaged, or the API server refuses although the run cannot repair that: `repairs` is set if it
 * installs Kubernetes or removes it.
 */
export async function consultCluster(
  request: ClusterRequest | undefined,
  records: Records,
  { repairs = false }: { readonly repairs?: boolean } = {},
): Promise<ClusterView> {
  const refusals: string[] = [];
  const cluster = await request?.find().catch((error: unknown) => {
    if (!repairs || !isHalfInstalled(records, error)) throw error;
    refusals.push(halfInstalledNote(error));
    return undefined;
  });
  const nothing = {
    known: {},
    channels: new Map<string, string>(),
    adopting: undefined,
    adopted: undefined,
    loadBalancer: undefined,
    moved: false,
  };
  if (request === undefined || cluster === undefined)
    return { cluster, records, own: records.applied, ...nothing, notes: refusals };
  const recorded = await cluster.readRecords();
  const notes: string[] = [];
  const moved = records.cluster !== undefined && records.cluster !== cluster.uid;
  if (moved) notes.push(movedNote(records.cluster, cluster.uid));
  if (recorded === 'foreign') notes.push(`${configMapTitle(RUN_RECORDS)} describes another cluster and is ignored`);
  // If this node's records name the cluster, its ConfigMap was deleted: that does not make it a cluster of kURL.
  const isNew = recorded === 'absent' && records.cluster !== cluster.uid;
  const adopting = isNew ? await takeOver(request, cluster) : undefined;
  if (adopting !== undefined) notes.push(adoptedNote(adopting));
  else if (request.adopt === true) notes.push('there is no kURL state to adopt');
  const known = typeof recorded === 'object' ? recorded.applied : (adopting?.applied ?? {});
  const adopted = typeof recorded === 'object' ? recorded.adopted : adopting?.adopted;
  return {
    cluster,
    own: records.applied,
    records: { ...records, cluster: cluster.uid, applied: merged(records.applied, known) },
    known,
    channels: await cluster.readChannelOwners(),
    adopting,
    adopted,
    loadBalancer: typeof recorded === 'object' ? recorded.loadBalancer : undefined,
    moved,
    notes,
  };
}

/** True for what kubeadm has not finished, and for the refusal of a cluster whose install has not. */
export function isHalfInstalled({ applied }: Pick<Records, 'applied'>, error: unknown): error is CurlewError {
  if (error instanceof Unfinished) return true;
  return error instanceof CurlewError && error.code === 'CLUSTER_FAILED' && applied[KUBERNETES]?.finished === false;
}

/** The warning of a run that installs it again. */
export function halfInstalledNote(error: CurlewError): string {
  const why = error instanceof Unfinished ? '' : `; the install of ${KUBERNETES} has not finished`;
  return `${error.message}${why}, so the run continues without it`;
}

/** A container runtime is installed on one machine; everything else is applied to the cluster. */
export function isOfCluster(ref: { readonly name: string }): boolean {
  return !isContainerRuntime(ref);
}

/**
 * The cluster's records, plus what only this node knows: its container runtime, rollback targets, unfinished installs and what
 * was installed before them.
 */
export function merged(own: AppliedRecords, known: AppliedRecords): AppliedRecords {
  // An unfinished removal may have removed the add-on from the cluster, but not yet from this node.
  const rows = Object.entries(own).filter(
    ([name, { finished }]) => !isOfCluster({ name }) || (!finished && !Object.hasOwn(known, name)),
  );
  for (const [name, record] of Object.entries(known)) {
    if (!isOfCluster({ name })) continue;
    const { previous, by, run, installed } = recordOf(own, name) ?? {};
    // Only the node knows that it installed the add-on. With `join` the cluster's record is used unchanged.
    const noted = by === 'install' ? { ...record, by } : record;
    // After another node's run has finished with the add-on, it cannot be rolled back here. Before that, a run that died may have
    // updated only one of the two records.
    const isOver = record.finished && record.run !== run;
    const row = record.finished || installed === undefined ? noted : { installed, ...noted };
    rows.push([name, isOver || previous === undefined ? row : { ...row, previous }]);
  }
  return Object.fromEntries(rows);
}

export function movedNote(before: string | undefined, uid: string): string {
  return `the cluster (${uid}) is not the one before (${before ?? 'none'}): only add-ons in its own records count as applied`;
}

async function takeOver(
  request: ClusterRequest,
  cluster: NodeCluster,
): Promise<ReturnType<typeof adoptKurl> | undefined> {
  const state = await cluster.readKurl();
  if (state === undefined) return undefined;
  if (request.adopt) return adoptKurl(state);
  throw new CurlewError('UNSUPPORTED', 'kURL created this cluster, and the cluster has no curlew records', {
    hint: 'adopt it with --adopt: nothing of kURL is deleted, and every add-on of the spec is installed again',
  });
}

function adoptedNote({ applied, adopted }: ReturnType<typeof adoptKurl>): string {
  const names = Object.entries(applied).map(([name, { version }]) => `${name} ${version}`);
  const version = adopted.kurlVersion === undefined ? '' : ` ${adopted.kurlVersion}`;
  return `adopted from kURL${version}: ${names.length === 0 ? 'no add-ons' : names.join(', ')}`;
}

/** The variables of the spec, plus facts of a cluster that kURL created. */
export function variablesFor(variables: readonly ShellVariable[], { adopted }: ClusterView): readonly ShellVariable[] {
  return adopted === undefined ? variables : withFacts(variables, adopted);
}

/** Throws `UNSUPPORTED` before any change if the state of a run does not fit into ConfigMaps. */
export function requireRecordRoom(request: ClusterRequest, view: ClusterView, plan: RunPlan): void {
  const addons = plan.addons.filter(({ ref }) => isOfCluster(ref));
  const rows = addons.map(({ ref, digest, settings }) => {
    return [ref.name, { version: ref.version, digest, settings, run: NO_RUN, finished: false }] as const;
  });
  const applied = { ...view.known, ...Object.fromEntries(rows) };
  const records = withRecords({}, view.cluster?.uid ?? '', { applied, adopted: view.adopted });
  const entries = addons.map(({ ref }) => entryData(ref.name, request.entries.get(ref.name)));
  const kurl = beginData(request.release, entries);
  for (const [map, data] of [
    [RUN_RECORDS, records],
    [CURRENT_CONFIG, kurl.shown],
    [CURRENT_SECRET, kurl.secret],
  ] as const) {
    const bytes = configMapBytes(data);
    if (bytes <= CONFIG_MAP_LIMIT) continue;
    throw new CurlewError(
      'UNSUPPORTED',
      `plan: ${configMapTitle(map)} would have ${bytes} bytes; the limit is ${CONFIG_MAP_LIMIT}`,
      { hint: 'keep large settings of an add-on in a file or a separate ConfigMap, and name that in the spec' },
    );
  }
}
