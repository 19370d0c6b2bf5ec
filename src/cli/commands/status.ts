/** `curlew status`: shows installed add-ons, the result of the last run, and the state of the cluster. */
import { STATUS } from '../../requests/node.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { visible } from '../../core/diagnostic.ts';
import type { ClusterHealth } from '../../machine/run/node-health.ts';
import type { Status } from '../../app/status.ts';
import { commandFor } from '../command.ts';
import { columns } from '../render/columns.ts';
import { expiryText } from '../render/expiry.ts';
import { runLine } from '../render/run-line.ts';

const DETAILS = `The exit status is 0 even if nothing is installed. If the last run of an add-on did not finish, the next run installs it again; \`curlew why\` shows details.

On a node of Kubernetes it also shows what expires or fills up; on a control plane, nodes, pods and add-ons that are not healthy too. An API server that does not answer is a line of the result.

With --prometheus, node_exporter gets the times at which certificates expire, of the last snapshot of etcd, and of the last run with its result: call it from a timer, with a file in the folder of its textfile collector.`;

export const command = commandFor(STATUS, {
  details: DETAILS,
  examples: ['curlew status', 'curlew status --json'],
  run: async ({ request }, context) => (await import('../../app/status.ts')).status(request, context),
  render: renderStatus,
  exitCode: ({ problems }) => (problems.length === 0 ? 0 : ERROR_CODES.FILE_UNUSABLE),
});

/** Enough digits to distinguish packages; `--json` has all of them. */
const SHORT_DIGEST = 'sha256:'.length + 7;

/** Lines about omitted host packages, and about the version that `curlew rollback` restores. */
function moreLines({ name, version, omitted, back, finished, inPlace }: Status['addons'][number]): readonly string[] {
  const isWhole = finished && inPlace !== false;
  const same = back === version ? ' as it was before its last change' : '';
  return [
    ...(omitted === undefined || !isWhole ? [] : [`${name} is installed without ${omitted.join(', ')}`]),
    ...(back === undefined || (finished && !isWhole) ? [] : [`${name} can be rolled back to ${back}${same}`]),
  ].map(visible);
}

function stateOf({ finished, inPlace }: Status['addons'][number]): string {
  if (!finished) return 'not finished';
  if (inPlace === undefined) return 'files not verified';
  return inPlace ? '' : 'files changed';
}

function renderStatus({ directory, addons, extracted, lastRun, busy, hook, cluster, problems }: Status): string {
  const rows = addons.map((addon) => [
    addon.name,
    addon.version,
    addon.digest?.slice('sha256:'.length, SHORT_DIGEST) ?? 'unknown',
    addon.settings.slice('sha256:'.length, SHORT_DIGEST),
    addon.when.slice(0, 16).replace('T', ' '),
    stateOf(addon),
  ]);
  const table =
    rows.length === 0
      ? [`Nothing is installed in ${visible(directory)}.`]
      : columns([['add-on', 'version', 'package', 'settings', 'last run, UTC', ''], ...rows]);
  const others = extracted.map(({ name, version, hasInstallScript }) =>
    hasInstallScript
      ? `${name} ${version} is extracted, but was not installed`
      : `${name} ${version} has no hooks: its files and images are in place`,
  );
  return [
    ...table,
    ...addons.flatMap(moreLines),
    ...others,
    ...(busy === undefined
      ? []
      : [
          `A run is in progress: process ${busy}${hook === undefined ? '' : `, in ${hook.function} of ${hook.addon}`}.`,
        ]),
    ...(lastRun === undefined ? [] : [`Last run: ${runLine(lastRun)}`]),
    ...(cluster === undefined ? [] : clusterLines(cluster)),
    ...problems.map((problem) => `Problem: ${visible(problem)}`),
  ].join('\n');
}

const REPAIR = 'curlew node repair starts what has stopped, and puts missing files back';
const ROLES = { 'control-plane': 'control plane', worker: 'worker' } as const;

function clusterLines({
  nodes,
  addons,
  pods,
  morePods,
  certificates,
  images,
  broken,
  problems,
}: ClusterHealth): readonly string[] {
  const rows = nodes.map(({ name, version, role, cordoned, reason }) => [
    name,
    version,
    ROLES[role],
    [reason === '' ? 'ready' : `not ready: ${reason}`, ...(cordoned ? ['takes no new pods'] : [])].join(', '),
  ]);
  const [first] = certificates;
  return [
    '',
    ...(rows.length === 0 ? [] : columns([['node', 'Kubernetes', 'role', ''], ...rows])),
    ...addons.map(({ name, reason }) => `Add-on ${name}: ${reason}`),
    ...pods.map(({ name, reason }) => `Pod ${name}: ${reason}`),
    ...(morePods === 0 ? [] : [`${morePods} more pods are not ready.`]),
    ...(first === undefined
      ? []
      : [`Certificates: ${first.name}, the first of ${certificates.length}, ${expiryText(first.expires)}.`]),
    ...(images === undefined
      ? []
      : [
          `Images: the disk of ${images.folder} is ${images.used} % full; the kubelet removes images from ${images.limit} % on.`,
        ]),
    ...(broken.length === 0 ? [] : [`Problem: ${broken.join('; ')}: ${REPAIR}`]),
    ...problems.map((problem) => `Problem: ${problem}`),
  ].map(visible);
}
