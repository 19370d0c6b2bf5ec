/** `curlew channel apply|status|remove`: the add-ons of a cluster. */
import { CHANNEL_REMOVE } from '../../requests/channel.ts';
import { CHANNEL_STATUS } from '../../requests/channel.ts';
import { CHANNEL_APPLY } from '../../requests/channel.ts';
import type { AddonResult, ChannelPass, Trouble } from '../../app/channel-apply.ts';
import type { ChannelRemoval } from '../../app/channel-remove.ts';
import type { ChannelAddonStatus } from '../../app/channel-status.ts';
import { counted } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import { ERROR_CODES, NOTHING_WRITTEN } from '../../core/errors.ts';
import { commandFor, REMOVED_STAYS, UNSETTLED } from '../command.ts';
import { changeLines } from '../render/changes.ts';
import { columns } from '../render/columns.ts';
import { LOCATIONS } from './channel.ts';

const MAX_UNFIT = 10;
/** A hint that several have in common is shown once. */
function troubleLines(troubles: readonly Trouble[]): readonly string[] {
  return troubles.flatMap(({ message, hint }, at) => [
    `  ${message.replaceAll('\n', '\n  ')}`,
    ...(hint === undefined || troubles[at + 1]?.hint === hint ? [] : [`  hint: ${hint}`]),
  ]);
}

function detailLines(result: AddonResult): readonly string[] {
  const { addon, state, objects, orphans, drift, nodes, errors } = result;
  const lines = [
    ...troubleLines(errors),
    ...objects.flatMap(changeLines),
    ...orphans.map(({ object, why }) => `  orphan ${object}: ${why}`),
    ...drift.flatMap((one) => [`  changed by another manager, and kept:`, ...changeLines(one)]),
    ...(nodes.length === 0 ? [] : [`  nodes to replace: ${nodes.join(', ')}`]),
  ];
  return lines.length === 0 ? [] : [`${addon}: ${state}`, ...lines];
}

/** Rows of what is done, or all if nothing is. */
function passText({ cluster, addons, unlisted, unfit, warnings, errors }: ChannelPass): string {
  const changed = addons.filter(({ state }) => state !== 'unchanged');
  const rows = changed.map(({ addon, namespace, current, wanted, reason, action, incompatible }) => {
    const why = incompatible && action === 'none' ? `${reason} (does not fit)` : reason;
    return [addon, namespace, current ?? '-', wanted, why];
  });
  const table = rows.length === 0 ? [] : columns([['NAME', 'NAMESPACE', 'CURRENT', 'UPDATE', 'WHY'], ...rows]);
  const count = (state: AddonResult['state'], what: string): readonly string[] => {
    const matching = addons.filter((one) => one.state === state).length;
    return matching === 0 ? [] : [`${matching} ${what}`];
  };
  const isPlanned = addons.some(({ state }) => state === 'planned');
  const sums = [
    `${cluster.server}, Kubernetes ${cluster.kubernetes}: ${counted(addons.length, 'add-on')}`,
    ...count('unchanged', 'up to date'),
    ...count('planned', 'to change'),
    ...count('applied', 'applied'),
    ...count('refused', 'refused'),
    ...count('failed', 'failed'),
    ...count('skipped', 'skipped'),
  ];
  return visibleLines([
    ...table,
    ...addons.flatMap(detailLines),
    ...unlisted.map(
      ({ addon, reason, current }) => `${addon} ${current}: ${reason}; curlew channel remove ${addon} removes it`,
    ),
    ...unfit.slice(0, MAX_UNFIT).map(({ addon, reason }) => `${addon}: ${reason}`),
    ...(unfit.length > MAX_UNFIT ? [`and ${counted(unfit.length - MAX_UNFIT, 'more add-on')} that no entry fits`] : []),
    ...warnings.map((text) => `warning: ${text}`),
    ...errors.flatMap(({ message, hint }) => [`error: ${message}`, ...(hint === undefined ? [] : [`hint: ${hint}`])]),
    sums.join(', '),
    ...(isPlanned ? ['add --yes to apply this'] : []),
  ]);
}

function visibleLines(lines: readonly string[]): string {
  return lines
    .flatMap((line) => line.split('\n'))
    .map(visible)
    .join('\n');
}

function passExit({ addons, errors, isPreview }: ChannelPass): number {
  const has = (...states: readonly AddonResult['state'][]): boolean =>
    addons.some(({ state }) => states.includes(state));
  const isFailed = errors.length > 0 || has('failed', 'skipped') || (!isPreview && has('refused'));
  if (isFailed) return ERROR_CODES.CLUSTER_FAILED;
  return has('planned', 'refused') ? UNSETTLED : 0;
}

export const apply = commandFor(CHANNEL_APPLY, {
  details: `Chooses the version of each add-on for the Kubernetes version of the cluster, and shows what would change, object by object: a server-side dry run. Exits with status 2 if something would. With --yes, applies it: add-ons in the order in which they require each other, server-side, waiting until each is healthy; its record is written last. An interrupted command continues when it is repeated.\n\nObjects that were deleted come back. Fields that another manager changed stay, and are shown, unless the channel says drift: Revert.\n\n${LOCATIONS}`,
  examples: [
    'curlew channel apply s3://releases/addons/channel.yaml',
    'curlew channel apply channel.yaml --yes',
    'curlew channel apply channel.yaml --yes --watch 60s',
  ],
  changesBy: '--yes',
  left: 'what is applied stays: the same command continues',
  run: async ({ request: own, options }, context): Promise<ChannelPass> => {
    const { yes, watch, ready, addon } = options;
    const request = { ...own, addons: addon };
    if (watch !== undefined) {
      return (await import('../../app/channel-watch.ts')).watchChannels({ ...request, every: watch, ready }, context);
    }
    const { applyChannels, previewChannels } = await import('../../app/channel-apply.ts');
    return yes ? applyChannels(request, context) : previewChannels(request, context);
  },
  render: passText,
  exitCode: passExit,
});

function statusRow({
  addon,
  namespace,
  owner,
  installed,
  state,
  missing,
  changed,
  unhealthy,
}: ChannelAddonStatus): readonly string[] {
  const { version, hash = '' } = installed ?? {};
  const bad = [
    ...(missing.length === 0 ? [] : [`${counted(missing.length, 'object')} missing`]),
    ...(unhealthy.length === 0 ? [] : [`${unhealthy.length} not healthy`]),
    ...(changed.length === 0 ? [] : [`${changed.length} changed by another manager`]),
  ];
  return [addon, namespace, version ?? (hash.slice(0, 12) || '-'), owner ?? '-', state, bad.join(', ')];
}

function releaseLine({ namespace, name, revision, status, chart }: NonNullable<ChannelAddonStatus['release']>): string {
  if (revision === undefined) return `release ${namespace}/${name}`;
  return `release ${namespace}/${name}, revision ${revision} (${status}) of the chart ${chart}`;
}

function statusLines({
  addon,
  state,
  reason,
  release,
  missing,
  changed,
  unhealthy,
}: ChannelAddonStatus): readonly string[] {
  return [
    ...(state === 'Recorded' || reason === '' ? [] : [`${addon}: ${reason}`]),
    ...(release === undefined ? [] : [`${addon}: ${releaseLine(release)}`]),
    ...missing.map((object) => `${addon}: missing: ${object}`),
    ...unhealthy.map(({ object, reason }) => `${addon}: ${object}: ${reason}`),
    ...changed.map((object) => `${addon}: changed by another manager: ${object}`),
  ];
}

export const status = commandFor(CHANNEL_STATUS, {
  details:
    'Shows the add-ons that channels have applied to a cluster, also those that were applied by kops: version, owner, state, and objects that are missing, changed or not healthy. Exits with status 33 if an object is missing or not healthy, or the last application did not succeed.',
  examples: ['curlew channel status', 'curlew channel status coredns --json'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/channel-status.ts')).channelStatus(request, context),
  render: ({ cluster, addons, warnings }) =>
    visibleLines([
      ...(addons.length === 0
        ? ['no add-ons are recorded']
        : columns([['NAME', 'NAMESPACE', 'VERSION', 'OWNER', 'STATE', 'PROBLEM'], ...addons.map(statusRow)])),
      ...addons.flatMap(statusLines),
      ...warnings.map((text) => `warning: ${text}`),
      `${cluster.server}, Kubernetes ${cluster.kubernetes}`,
    ]),
  exitCode: ({ addons }) =>
    addons.every(
      ({ state, missing, unhealthy }) =>
        ['Succeeded', 'Recorded'].includes(state) && missing.length + unhealthy.length === 0,
    )
      ? 0
      : ERROR_CODES.CLUSTER_FAILED,
});

function removalText({ addon, objects, orphans, errors, isDone, server }: ChannelRemoval): string {
  const wouldBe = errors.length === 0 && !isDone;
  return visibleLines([
    ...objects.map((object) => `  - ${object}`),
    ...orphans.map(({ object, why }) => `  stays: ${object}: ${why}`),
    ...troubleLines(errors),
    `${addon} on ${server}: ${counted(objects.length, 'object')} ${isDone ? 'deleted, and its record' : 'to delete'}`,
    ...(wouldBe ? ['add --yes to delete them'] : []),
  ]);
}

export const remove = commandFor(CHANNEL_REMOVE, {
  details:
    'Shows the objects of an add-on that would be deleted, and with --yes deletes them, then its record. Objects of other owners stay, and so do Namespaces and CustomResourceDefinitions unless they are asked for.',
  examples: ['curlew channel remove dashboard', 'curlew channel remove dashboard --yes'],
  changesBy: '--yes',
  left: REMOVED_STAYS,
  run: async ({ request, options }, context) => {
    const { planRemoval, removeFromCluster } = await import('../../app/channel-remove.ts');
    return options.yes ? removeFromCluster(request, context) : planRemoval(request, context);
  },
  render: removalText,
  exitCode: ({ errors, isDone, objects }) => {
    if (errors.length > 0) return ERROR_CODES.CLUSTER_FAILED;
    return isDone || objects.length === 0 ? 0 : UNSETTLED;
  },
});
