/** Which of the add-ons that a run removes leave the cluster, too. */
import { hostname } from 'node:os';
import { CurlewError } from '../../core/errors.ts';
import type { ClusterView } from '../cluster/consult.ts';
import { KUBERNETES } from '../hooks/hooks.ts';
import type { AppliedRecord, Records } from '../node/records.ts';
import { runsOf } from './run-folder.ts';
import type { RunRequest } from './request.ts';

/**
 * Names of those that leave the cluster with this run, so that their part in it is removed, too. Without a cluster that is
 * everything that was installed from this node. `CLUSTER_FAILED` when the cluster of an `uninstall` does not answer.
 */
export async function leavingAddons(
  { kind, place, removal, cluster }: Pick<RunRequest, 'kind' | 'place' | 'removal' | 'cluster'>,
  own: Records,
  view: ClusterView,
): Promise<{ readonly leaving: ReadonlySet<string>; readonly notes: readonly string[] }> {
  const names = (removal?.packages ?? []).map(({ source }) => source.ref.name);
  const recordOf = (name: string): AppliedRecord | undefined =>
    Object.hasOwn(own.applied, name) ? own.applied[name] : undefined;
  const installed = names.filter((name) => recordOf(name)?.by !== 'join');
  const nothing = { leaving: new Set<string>(), notes: [] };
  // On a node beside the primary nothing is removed from the cluster.
  if (names.length === 0 || kind === 'join' || kind === 'upgrade') return nothing;
  if (view.cluster === undefined) {
    if (own.cluster === undefined || cluster === undefined || installed.length === 0)
      return { ...nothing, leaving: new Set(installed) };
    if (kind !== 'reset' && removal?.keepGoing !== true) {
      throw new CurlewError('CLUSTER_FAILED', `remove ${installed.join(', ')}: the API server does not answer`, {
        hint: `start it (crictl ps -a shows its container); curlew uninstall ${installed.join(' ')} --keep-going leaves what they have in the cluster`,
      });
    }
    return { ...nothing, notes: ['the API server does not answer: what the add-ons have in the cluster stays there'] };
  }
  // Before an add-on is installed to its end, the cluster may not have heard of it.
  const isListed = (name: string): boolean => Object.hasOwn(view.known, name);
  const isPending = (name: string): boolean => recordOf(name)?.by !== 'join' && recordOf(name)?.finished === false;
  if (kind !== 'reset')
    return { ...nothing, leaving: new Set(names.filter((name) => isListed(name) || isPending(name))) };
  if (recordOf(KUBERNETES) !== undefined && (await hasOtherControlPlanes(view))) return nothing;
  const runs = new Set([...(await runsOf(place.directory)), ...Object.values(own.applied).map(({ run }) => run)]);
  const isOurs = (name: string): boolean => (isListed(name) ? runs.has(view.known[name]?.run ?? '') : isPending(name));
  return { ...nothing, leaving: new Set(installed.filter(isOurs)) };
}

async function hasOtherControlPlanes({ cluster }: ClusterView): Promise<boolean> {
  const nodes = (await cluster?.readNodes()) ?? [];
  return nodes.some(({ name, controlPlane }) => controlPlane && name !== hostname().toLowerCase());
}
