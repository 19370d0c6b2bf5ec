/** Compares the cluster's record of one add-on with this node's. */
import { CurlewError } from '../../core/errors.ts';
import { type AppliedRecord, type Records, recordOf } from '../plan/records.ts';
import type { NodeCluster } from './cluster.ts';
import { isOfCluster, merged, movedNote } from './consult.ts';

export interface ClusterComparison {
  /** The node's records, overridden by the cluster's. */
  readonly records: Records;
  /** How the cluster's record differs from the node's, or why that is unknown; undefined if they agree. */
  readonly text: string | undefined;
}

/**
 * Reads the record from the cluster of this node. If it cannot be reached, `text` gives the reason and the node's own records
 * are used: `curlew why` must also work without a healthy cluster. Without `find`, as for a trial, no cluster is asked.
 */
export async function compareWithCluster(
  name: string,
  records: Records,
  find: (() => Promise<NodeCluster | undefined>) | undefined,
): Promise<ClusterComparison> {
  const own = (text: string | undefined): ClusterComparison => ({ records, text });
  if (!isOfCluster({ name })) return own(undefined);
  if (find === undefined) return own(records.cluster === undefined ? undefined : NOT_ASKED);
  try {
    const cluster = await find();
    if (cluster === undefined) return own(records.cluster === undefined ? undefined : AWAY);
    const recorded = await cluster.readRecords();
    const known = typeof recorded === 'object' ? recorded.applied : {};
    const mine = recordOf(records.applied, name);
    const text = difference(mine, recordOf(known, name));
    const moved = records.cluster !== undefined && records.cluster !== cluster.uid;
    const applied = merged(records.applied, known);
    const parts = moved ? [movedNote(records.cluster, cluster.uid), text].filter((one) => one !== undefined) : [text];
    return { records: { ...records, applied }, text: parts[0] === undefined ? undefined : parts.join('; ') };
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'CLUSTER_FAILED') throw error;
    return own(`unknown: ${error.message}`);
  }
}

const NOT_ASKED = 'not asked, since this is a trial';
const AWAY = "unknown: the API server of this node's cluster does not respond";

/** The node that applied it is ignored. */
function difference(own: AppliedRecord | undefined, noted: AppliedRecord | undefined): string | undefined {
  if (noted === undefined) return own === undefined ? undefined : 'has no record of it: it counts as not installed';
  if (own === undefined) return `version ${noted.version} is applied${runText(noted)}`;
  const parts = [
    ...(own.version === noted.version ? [] : [`version ${noted.version} is applied`]),
    ...(own.version === noted.version && own.digest !== noted.digest
      ? ['another package of this version is applied']
      : []),
    ...(own.settings === noted.settings ? [] : ['it is applied with other settings']),
    ...(own.finished || !noted.finished ? [] : ['its last run finished']),
    ...(noted.finished || !own.finished ? [] : [`run ${noted.run} changed it and did not finish`]),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

function runText({ run, finished }: AppliedRecord): string {
  return finished ? `, by run ${run}` : `; run ${run} did not finish`;
}
