/** `curlew cluster delete`: resets all machines of a cluster. */
import type { ClusterDeletion } from '../../app/cluster-delete.ts';
import { failureCode } from '../../machine/cluster.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { CLUSTER_DELETE } from '../../requests/cluster.ts';
import { commandFor, UNSETTLED, STEPS_STAY } from '../command.ts';

export const command = commandFor(CLUSTER_DELETE, {
  details:
    'Shows which machines would be reset. With --confirm and the name of the cluster, runs curlew reset over SSH on the workers, then on the control planes. All data of the cluster on these machines is lost. Nothing is reset if a machine belongs to another cluster, or if one cannot be reached. --skip-unreachable skips those that cannot be reached. After any interruption, run the same command again to continue.\n\nExits with status 0 if nothing is left to reset, 2 if something is left without --confirm, and 33 if something is refused or was not reached. If a machine fails, exits with its status, or with 33 if machines fail in different ways.',
  examples: ['curlew cluster delete paris.yaml', 'curlew cluster delete paris.yaml --confirm paris'],
  changesBy: '--confirm',
  left: STEPS_STAY,
  run: async ({ request }, context) => (await import('../../app/cluster-delete.ts')).deleteCluster(request, context),
  render: (result) => deletionLines(result),
  exitCode: (result) => {
    if (!isBlocked(result) && result.left.length + result.failed.length === 0) return 0;
    if (!result.confirmed) return UNSETTLED;
    return ERROR_CODES[failureCode(isBlocked(result) ? [] : result.failed)];
  },
});

function isBlocked({ refused, unreached, skipped }: ClusterDeletion): boolean {
  return refused.length > 0 || (unreached.length > 0 && !skipped);
}

function deletionLines(result: ClusterDeletion): readonly string[] {
  const { cluster, left, done, provided, absent, failed, refused, unreached, confirmed, stays } = result;
  const word = (host: string): string => (provided.includes(host) ? 'deleted' : 'reset');
  return [
    ...done.map((host) => `${word(host)}: ${host}`),
    ...left.map((host) => `${confirmed ? 'not' : 'would be'} ${word(host)}: ${host}`),
    ...absent.map(({ host = cluster, reason }) => `not there: ${host}: ${reason}`),
    ...failed.map(({ host, reason }) => `failed: ${host}: ${reason}`),
    ...refused.map(({ host = cluster, reason }) => `refused: ${host}: ${reason}`),
    ...unreached.map(({ host = cluster, reason }) => `not reached: ${host}: ${reason}`),
    ...(done.length === 0 ? [] : stays.map((text) => `stays: ${text}`)),
    ...(confirmed && isBlocked(result) && refused.length === 0
      ? ['nothing was reset: --skip-unreachable leaves out what was not reached']
      : []),
    ...(left.length + failed.length + refused.length === 0
      ? [`nothing of ${cluster} is left on machines that answer`]
      : []),
    ...(confirmed || left.length === 0 ? [] : [`add --confirm ${cluster} to reset them: all data on them is lost`]),
  ];
}
