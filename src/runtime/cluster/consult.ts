/** What the cluster says before a run is planned: which records count, and whether this node is kURL's. */
import { CurlewError } from '../../core/errors.ts';
import { isContainerRuntime } from '../hooks/hooks.ts';
import { NO_RUN, type Records } from '../node/records.ts';
import type { ShellVariable } from '../hooks/settings.ts';
import { RECORDS_MAP, withRecords, type Adopted, type Applied } from './cluster-records.ts';
import type { Cluster } from './cluster.ts';
import { bytesOf, CONFIG_MAP_LIMIT, titleOf } from './config-map.ts';
import {
  adoptKurl,
  beginData,
  CURRENT_CONFIG,
  CURRENT_SECRET,
  entryData,
  withFacts,
  type SpecEntry,
} from './kurl-config.ts';
import type { RunPlan } from '../run/run-plan.ts';

/** What a run needs to keep its state in the cluster. */
export interface ClusterRequest {
  /** The cluster that this node belongs to, if its API server answers. */
  readonly find: () => Promise<Cluster | undefined>;
  /** A cluster that kURL has made may be taken over; undefined when it is of no concern to this run. */
  readonly adopt: boolean | undefined;
  /** The run is about all add-ons of a spec, not one of them. */
  readonly whole: boolean;
  /** Release that the packages are of, where that is known. */
  readonly release: string | undefined;
  /** What the spec says of each add-on, by folder name: version and settings. */
  readonly entries: ReadonlyMap<string, SpecEntry>;
}

export interface ClusterView {
  readonly cluster: Cluster | undefined;
  /** The node's records, in which the cluster has the last word of what was applied to it. */
  readonly records: Records;
  /** What this node says by itself. */
  readonly own: Applied;
  /** What the cluster has noted; empty without a cluster. */
  readonly known: Applied;
  /** What this run takes over from kURL. */
  readonly adopting: ReturnType<typeof adoptKurl> | undefined;
  /** Facts of a cluster that kURL has made, taken over now or earlier. */
  readonly adopted: Adopted | undefined;
  /** The address of its load balancer that was noted last. */
  readonly loadBalancer: string | undefined;
  /** Another cluster than the last run's: nothing that was done to that one can be gone on with. */
  readonly moved: boolean;
  /** To be told when the run begins. */
  readonly notes: readonly string[];
}

/**
 * Asks the cluster, changing nothing. `UNSUPPORTED` for a cluster that kURL has made, unless it is to be adopted; of an API
 * server that refuses, or of damaged records, `CLUSTER_FAILED`.
 */
export async function consultCluster(request: ClusterRequest | undefined, records: Records): Promise<ClusterView> {
  const cluster = await request?.find();
  const nothing = {
    known: {},
    adopting: undefined,
    adopted: undefined,
    loadBalancer: undefined,
    moved: false,
    notes: [],
  };
  if (request === undefined || cluster === undefined) return { cluster, records, own: records.applied, ...nothing };
  const found = await cluster.readRecords();
  const notes: string[] = [];
  const moved = records.cluster !== undefined && records.cluster !== cluster.uid;
  if (moved) notes.push(movedNote(records.cluster, cluster.uid));
  if (found === 'foreign')
    notes.push(`${titleOf(RECORDS_MAP)} is of another cluster, and counts for nothing in this one`);
  // Where this node's own records name the cluster, somebody has deleted those in the cluster: that makes it not kURL's.
  const isNew = found === 'absent' && records.cluster !== cluster.uid;
  const adopting = isNew ? await takeOver(request, cluster) : undefined;
  if (adopting !== undefined) notes.push(adoptedNote(adopting));
  else if (request.adopt === true) notes.push('there is nothing of kURL to take over');
  const known = typeof found === 'object' ? found.applied : (adopting?.applied ?? {});
  const adopted = typeof found === 'object' ? found.adopted : adopting?.adopted;
  return {
    cluster,
    own: records.applied,
    records: { ...records, cluster: cluster.uid, applied: merged(records.applied, known) },
    known,
    adopting,
    adopted,
    loadBalancer: typeof found === 'object' ? found.loadBalancer : undefined,
    moved,
    notes,
  };
}

/** A container runtime is installed on one machine; everything else is applied to the cluster. */
export function isOfCluster(ref: { readonly name: string }): boolean {
  return !isContainerRuntime(ref);
}

/** The cluster's word, with what only this node can know: its container runtime, what it can go back to, what it began. */
export function merged(own: Applied, known: Applied): Applied {
  // What did not finish may have left the cluster before its part of this node was removed.
  const rows = Object.entries(own).filter(
    ([name, { finished }]) => !isOfCluster({ name }) || (!finished && !Object.hasOwn(known, name)),
  );
  for (const [name, record] of Object.entries(known)) {
    if (!isOfCluster({ name })) continue;
    const { previous, by, run } = (Object.hasOwn(own, name) ? own[name] : undefined) ?? {};
    // Only a node itself knows what it has installed. One that has joined counts like any other: the cluster has it.
    const noted = by === 'install' ? { ...record, by } : record;
    // Once a run of another node has finished with the add-on, nobody goes back. Until then a run that died may have told
    // this node more than the cluster, or the other way round.
    const isOver = record.finished && record.run !== run;
    rows.push([name, isOver || previous === undefined ? noted : { ...noted, previous }]);
  }
  return Object.fromEntries(rows);
}

export function movedNote(before: string | undefined, uid: string): string {
  return `the cluster that answers (${uid}) is another one than before (${before ?? 'none'}): nothing counts as applied to it but what it says itself`;
}

async function takeOver(request: ClusterRequest, cluster: Cluster): Promise<ReturnType<typeof adoptKurl> | undefined> {
  const state = await cluster.readKurl();
  if (state === undefined) return undefined;
  if (request.adopt) return adoptKurl(state);
  throw new CurlewError('UNSUPPORTED', 'this cluster was made by kURL, and nothing of it is in the records', {
    hint: 'take it over with --adopt: nothing of kURL is deleted, and every add-on of the spec is installed once more',
  });
}

function adoptedNote({ applied, adopted }: ReturnType<typeof adoptKurl>): string {
  const names = Object.entries(applied).map(([name, { version }]) => `${name} ${version}`);
  const version = adopted.kurlVersion === undefined ? '' : ` ${adopted.kurlVersion}`;
  return `taken over from kURL${version}: ${names.length === 0 ? 'no add-ons' : names.join(', ')}`;
}

/** The variables of the spec, with what is known of a cluster that kURL has made. */
export function variablesFor(variables: readonly ShellVariable[], { adopted }: ClusterView): readonly ShellVariable[] {
  return adopted === undefined ? variables : withFacts(variables, adopted);
}

/** What a run notes in the cluster must fit there: `UNSUPPORTED` before anything is changed. */
export function requireRoom(request: ClusterRequest, view: ClusterView, plan: RunPlan): void {
  const addons = plan.addons.filter(({ ref }) => isOfCluster(ref));
  const rows = addons.map(({ ref, digest, settings }) => {
    return [ref.name, { version: ref.version, digest, settings, run: NO_RUN, finished: false }] as const;
  });
  const applied = { ...view.known, ...Object.fromEntries(rows) };
  const records = withRecords({}, view.cluster?.uid ?? '', { applied, adopted: view.adopted });
  const entries = addons.map(({ ref }) => entryData(ref.name, request.entries.get(ref.name)));
  const kurl = beginData(request.release, entries);
  for (const [map, data] of [
    [RECORDS_MAP, records],
    [CURRENT_CONFIG, kurl.shown],
    [CURRENT_SECRET, kurl.secret],
  ] as const) {
    const bytes = bytesOf(data);
    if (bytes <= CONFIG_MAP_LIMIT) continue;
    throw new CurlewError(
      'UNSUPPORTED',
      `plan: ${titleOf(map)} would have ${bytes} bytes, of ${CONFIG_MAP_LIMIT} at most`,
      {
        hint: 'keep large settings of an add-on in a file or a ConfigMap of its own, and name that in the spec',
      },
    );
  }
}
