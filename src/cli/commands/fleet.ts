/** `curlew fleet …`: clusters and the add-ons that they run, from files. */
import type { FleetPass } from '../../app/fleet-apply.ts';
import type { FleetDiff, FleetPlan, PlannedTarget } from '../../app/fleet-plan.ts';
import { FLEET_APPLY, FLEET_CHECK, FLEET_INIT, FLEET_PLAN, FLEET_REMOVE, FLEET_STATUS } from '../../requests/fleet.ts';
import { counted, firstOf } from '../../core/counted.ts';
import { groupBy } from '../../core/group-by.ts';
import { renderDiagnostic, visible } from '../../core/diagnostic.ts';
import { ERROR_CODES, NOTHING_WRITTEN } from '../../core/errors.ts';
import { commandFor, UNSETTLED } from '../command.ts';
import { changeLines } from '../render/changes.ts';
import { columns, wrapped } from '../render/columns.ts';
import { paintDiagnostic } from '../render/paint.ts';

const STATE_STAYS = 'what has begun is in the state: the same command continues it';

export const check = commandFor(FLEET_CHECK, {
  details:
    'Reads all YAML files of folders that say fleet.curlew.dev, and reports every mistake in one of them and between them. Contacts no cluster. Exits with status 11 if there is an error; warnings do not count.',
  examples: ['curlew fleet check fleet/'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/fleet-check.ts')).checkFleet(request, context),
  render: ({ clusters, addons, diagnostics, errors, warnings }, _, paint) => {
    const sums = [
      counted(clusters, 'cluster'),
      counted(addons, 'add-on'),
      counted(errors, 'error'),
      counted(warnings, 'warning'),
    ];
    return [
      ...diagnostics.map((one) => paintDiagnostic(renderDiagnostic(one, one.source), one.severity, paint)),
      sums.join(', '),
    ].join('\n');
  },
  exitCode: ({ errors }) => (errors > 0 ? ERROR_CODES.SPEC_INVALID : 0),
});

export const plan = commandFor(FLEET_PLAN, {
  details:
    'Reads the files of a fleet and what each cluster records, 20 clusters at once, and shows for each cluster and add-on its state, what would happen now, and the reason for each that waits. A cluster that does not answer holds no other. Changes nothing. Exits with status 33 if an add-on has failed, otherwise with 2 if something is to change or under way.',
  examples: [
    'curlew fleet plan fleet/',
    'curlew fleet plan fleet/ --diff',
    'curlew fleet plan fleet/ --all --timeout 5s',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/fleet-plan.ts')).planFleets(request, context),
  render: (result, { options }) => planLines(result, options.all),
  exitCode: planExit,
});

export const status = commandFor(FLEET_STATUS, {
  details:
    'Shows how many clusters each add-on has reached, and whether it is paused or stopped. With --why, names each cluster that is not as it is to be, what holds it, and since when. Changes nothing. Exits with the status that curlew fleet apply --yes would have after a pass that did nothing.',
  examples: ['curlew fleet status fleet/', 'curlew fleet status fleet/ --why'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/fleet-plan.ts')).planFleets(request, context),
  render: (result, { options }) => statusLines(result, options.why),
  exitCode: rolloutExit,
});

export const apply = commandFor(FLEET_APPLY, {
  details:
    'Shows what would happen now, as curlew fleet plan. With --yes, does it: one pass over all clusters, 20 at once, which begins what the rollout of each add-on allows now, waits until it is healthy, and records it in the cluster. Repeat the command, or add --watch, until nothing waits. An interrupted command continues when it is repeated.\n\nExits with status 0 if everything is as it is to be, 2 if something waits or is under way, and 33 if an add-on has failed, has stopped, or belongs to another owner.',
  examples: [
    'curlew fleet apply fleet/',
    'curlew fleet apply fleet/ --yes',
    'curlew fleet apply fleet/ --yes --watch 1m',
  ],
  changesBy: '--yes',
  left: STATE_STAYS,
  run: async ({ request, options }, context): Promise<FleetPlan & Partial<FleetPass>> => {
    const { yes, watch } = options;
    const { applyFleet, watchFleet } = await import('../../app/fleet-apply.ts');
    if (watch !== undefined) return watchFleet({ ...request, every: watch }, context);
    if (yes) return applyFleet(request, context);
    return (await import('../../app/fleet-plan.ts')).planFleetPass(request, context);
  },
  render: passText,
  exitCode: (result) => {
    const { done } = result;
    if (done === undefined) return planExit(result);
    return done.some((one) => one.result === 'failed') ? ERROR_CODES.CLUSTER_FAILED : rolloutExit(result);
  },
});

export const remove = commandFor(FLEET_REMOVE, {
  details:
    'Shows which clusters have an add-on that no file has any more, and with --yes removes it from them: its objects, or its release, then its record. A cluster that does not answer keeps it: repeat the command.',
  examples: ['curlew fleet remove dashboard fleet/', 'curlew fleet remove dashboard fleet/ --yes'],
  changesBy: '--yes',
  left: STATE_STAYS,
  run: async ({ request, options }, context): Promise<FleetPlan & Partial<FleetPass>> => {
    const { planFleetRemoval, removeFromFleet } = await import('../../app/fleet-remove.ts');
    return options.yes ? removeFromFleet(request, context) : planFleetRemoval(request, context);
  },
  render: (result, { request }) => {
    const isNowhere = result.targets.length === 0 && (result.done ?? []).length === 0;
    const notes = isNowhere ? [visible(`no cluster that answers has ${request.addon}`)] : [];
    return [...notes, passText(result)].join('\n');
  },
  exitCode: (result) => {
    const { done = [], targets, clusters } = result;
    if (done.some((one) => one.result === 'failed')) return ERROR_CODES.CLUSTER_FAILED;
    return targets.length > 0 || clusters.some(({ problem }) => problem !== undefined) ? UNSETTLED : 0;
  },
});

export const init = commandFor(FLEET_INIT, {
  details:
    'Writes five files: a fleet of two clusters and one add-on, its manifest, two kubeconfigs to replace, and a .gitignore. Overwrites nothing.',
  examples: ['curlew fleet init fleet'],
  run: async ({ request }, context) => (await import('../../app/fleet-init.ts')).initFleet(request, context),
  render: (files, { request: { folder } }) => [
    ...files.map((path) => `created ${path}`),
    'next: replace the kubeconfigs, then run',
    `  curlew fleet check ${folder}`,
    `  curlew fleet plan ${folder}`,
    `  curlew fleet apply ${folder} --yes --watch 1m`,
  ],
});

function planExit({ targets }: FleetPlan): number {
  if (targets.some(hasFailed)) return ERROR_CODES.CLUSTER_FAILED;
  return targets.every(isSettled) ? 0 : UNSETTLED;
}

/** Also of what continues only when a person does something. */
function rolloutExit(result: FleetPlan): number {
  const isHeld = result.targets.some(({ reason = '' }) => reason === 'Owner' || reason === 'Downgrade');
  const isStopped = result.addons.some(({ stopped }) => stopped !== undefined);
  return isHeld || isStopped ? ERROR_CODES.CLUSTER_FAILED : planExit(result);
}

function hasFailed({ state }: PlannedTarget): boolean {
  return state === 'Failed' || state === 'TimedOut';
}

function isSettled({ now, state }: PlannedTarget): boolean {
  return now === 'none' && (state === 'Succeeded' || state === 'Skipped');
}

function passText(result: FleetPlan & Partial<FleetPass>): string {
  const { done, targets } = result;
  const isOpen = done === undefined && targets.some(({ now }) => now !== 'none' && now !== 'wait');
  const last = isOpen ? ['add --yes to apply this'] : [];
  return [...(done ?? []).map(doneLine), ...planLines(result, false), ...last].map(visible).join('\n');
}

function doneLine({ cluster, addon, act, result, reason }: FleetPass['done'][number]): string {
  const end = { done: 'done', failed: 'failed', later: 'left to the next pass', asks: 'waits for an approval' }[result];
  return `${cluster}: ${act} ${addon}: ${end}${reason === '' ? '' : `: ${reason}`}`;
}

const MAX_NAMES = 3;

function planLines(result: FleetPlan, isAll: boolean): readonly string[] {
  const { clusters, targets } = result;
  const rows = targets.filter((one) => isAll || !isSettled(one)).map(targetRow);
  const count = (is: (target: PlannedTarget) => boolean): number => targets.filter(is).length;
  const sums = [
    `${count(({ now }) => now !== 'none' && now !== 'wait')} to change now`,
    `${count(({ now }) => now === 'wait')} waiting`,
    `${count((one) => one.now === 'none' && !isSettled(one))} failed or under way`,
    `${count(isSettled)} as they are to be`,
  ];
  return [
    ...(rows.length === 0 ? [] : columns([['CLUSTER', 'ADD-ON', 'STATE', 'NOW', 'WHY'], ...rows])),
    ...diffLines(result.diffs),
    ...noteLines(result),
    ...result.differences.map((text) => `info: ${text}`),
    `${counted(clusters.length, 'cluster')}: ${sums.join(', ')}`,
  ];
}

const MAX_DIFFS = 20;
const MAX_CLUSTERS = 10;
const MAX_OBJECTS = 50;

function diffLines(diffs: readonly FleetDiff[] = []): readonly string[] {
  const lines = diffs.slice(0, MAX_DIFFS).flatMap(({ addon, clusters, objects }) => {
    const more = objects.length - MAX_OBJECTS;
    return [
      `${addon} on ${firstOf(clusters, MAX_CLUSTERS)}:${objects.length === 0 ? ' no object changes' : ''}`,
      ...objects.slice(0, MAX_OBJECTS).flatMap(changeLines),
      ...(more > 0 ? [`  and ${counted(more, 'more object')}`] : []),
    ];
  });
  const more = diffs.length - MAX_DIFFS;
  return [...lines, ...(more > 0 ? [`${more} more with other changes, which --json shows`] : [])];
}

/** How a delivery says that another program has set fields which it is to change. */
const CONFLICT = /(?:^|[:;] )\.\S+ belongs to \S/;
const CONFLICT_HINT =
  'hint: drift: Revert of an add-on takes fields from others, drift: Keep leaves them; then: curlew fleet retry';

function noteLines({ clusters, detached, warnings, targets, addons }: FleetPlan): readonly string[] {
  const texts = [...targets.map(({ message }) => message), ...addons.map(({ stopped }) => stopped)];
  return [
    ...(texts.some((text = '') => CONFLICT.test(text)) ? [CONFLICT_HINT] : []),
    ...clusters.flatMap(({ name, problem }) => (problem === undefined ? [] : [`${name} does not answer: ${problem}`])),
    ...targets.flatMap(({ cluster, addon, left }) =>
      left === undefined ? [] : [`${cluster} still has ${firstOf(left, MAX_NAMES)}, which ${addon} no longer has`],
    ),
    ...addedLines(targets),
    ...detached.map(({ cluster, addon }) => `${addon} stays on ${cluster}: no file has it any more`),
    ...warnings.map((text) => `warning: ${text}`),
  ];
}

const MAX_ADDED = 20;

/** What others have added in the same way on several clusters is one line. */
function addedLines(targets: readonly PlannedTarget[]): readonly string[] {
  const all = targets.flatMap(({ cluster, addon, added = [] }) => added.map((what) => ({ cluster, addon, what })));
  const lines = [...groupBy(all, ({ addon, what }) => `${addon} ${what}`).values()].map((same) => {
    const [{ addon, what } = { addon: '', what: '' }] = same;
    const where = firstOf(
      same.map(({ cluster }) => cluster),
      MAX_NAMES,
    );
    return `added by others, and stays: ${what} (${addon} on ${where})`;
  });
  const more = lines.length - MAX_ADDED;
  return [
    ...lines.slice(0, MAX_ADDED),
    ...(more > 0 ? [`added by others, and stays: ${more} more, which --json shows`] : []),
  ];
}

function statusLines(result: FleetPlan, isWhy: boolean): readonly string[] {
  const { targets, addons, at } = result;
  const rows = addons.map(({ name, paused, stopped }) => {
    const own = targets.filter(({ addon }) => addon === name);
    const failed = own.filter(hasFailed).length;
    const waiting = own.filter((one) => one.now === 'wait' && !hasFailed(one)).length;
    const settled = own.filter(isSettled).length;
    const rest = own.length - failed - waiting - settled;
    const how = paused ? 'paused' : stopped !== undefined ? `stopped: ${stopped}` : '';
    return [name, ...[settled, rest, waiting, failed].map(String), how];
  });
  const held = targets
    .filter((one) => !isSettled(one))
    .map(({ cluster, addon, state, now, since, reason, message }) => {
      const why = message ?? (now === 'none' ? '' : `nothing: ${now} begins with the next pass`);
      return [cluster, addon, since === undefined ? '-' : age(at - since), reason ?? state, why];
    });
  return [
    ...wrapped([['ADD-ON', 'DONE', 'ROLLING', 'WAITING', 'FAILED', ''], ...rows]),
    ...(isWhy && held.length > 0 ? ['', ...wrapped([['CLUSTER', 'ADD-ON', 'SINCE', 'REASON', 'WHY'], ...held])] : []),
    ...noteLines(result),
    ...(!isWhy && held.length > 0 ? [`--why shows what holds ${counted(held.length, 'cluster')}`] : []),
  ];
}

/** `40s`, `12m`, `3h` or `2d`. */
function age(seconds: number): string {
  const units = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
  ] as const;
  const [unit, length] = units.find(([, least]) => seconds >= least) ?? ['s', 1];
  return `${Math.max(0, Math.floor(seconds / length))}${unit}`;
}

function targetRow(target: PlannedTarget): readonly string[] {
  const { cluster, addon, state, now, current, wanted, reason, message, deletes = [], stays = [] } = target;
  const isMove = current !== undefined && wanted !== undefined && current !== wanted;
  const to =
    now === 'remove' || now === 'forget' ? (current ?? '') : isMove ? `${current} -> ${wanted}` : (wanted ?? '');
  const what = now === 'none' || now === 'wait' ? (now === 'none' ? '-' : now) : `${now} ${to}`.trim();
  const why = [reason, message].filter((text) => text !== undefined).join(': ');
  const gone = deletes.length === 0 || now === 'wait' ? '' : `will delete ${firstOf(deletes, MAX_NAMES)}`;
  const kept =
    stays.length === 0
      ? ''
      : `leaves ${firstOf(
          stays.map(({ object, why: reason }) => `${object} (${reason})`),
          MAX_NAMES,
        )}`;
  return [cluster, addon, state, what, [why, gone, kept].filter((text) => text !== '').join('; ')];
}
