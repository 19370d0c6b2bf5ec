/** `curlew fleet …`: clusters and the add-ons that they run, from files. */
import type { FleetPlan, PlannedTarget } from '../../app/fleet-plan.ts';
import { FLEET_CHECK, FLEET_PLAN } from '../../app/requests/fleet.ts';
import { counted } from '../../core/counted.ts';
import { renderDiagnostic, visible } from '../../core/diagnostic.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { columns } from '../render/columns.ts';
import { paintDiagnostic } from '../render/paint.ts';

export const check = commandFor(FLEET_CHECK, {
  details:
    'Reads all YAML files of folders that say fleet.curlew.dev, and reports every mistake in one of them and between them. Contacts no cluster. Exits with status 11 if there is an error; warnings do not count.',
  examples: ['curlew fleet check fleet/'],
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

/** Exit status of a plan by which something would change, as of diff tools. */
const WOULD_CHANGE = 2;

export const plan = commandFor(FLEET_PLAN, {
  details:
    'Reads the files of a fleet and what each cluster records, 20 clusters at once, and shows for each cluster and add-on its state, what would happen now, and the reason for each that waits. A cluster that does not answer holds no other. Changes nothing. Exits with status 33 if an add-on has failed, otherwise with 2 if something is to change or under way.',
  examples: ['curlew fleet plan fleet/', 'curlew fleet plan fleet/ --all --timeout 5s'],
  run: async ({ request }, context) => (await import('../../app/fleet-plan.ts')).planFleets(request, context),
  render: (result, { options }) => planLines(result, options.all).map(visible).join('\n'),
  exitCode: ({ targets }) => {
    if (targets.some(hasFailed)) return ERROR_CODES.CLUSTER_FAILED;
    return targets.every(isSettled) ? 0 : WOULD_CHANGE;
  },
});

function hasFailed({ state }: PlannedTarget): boolean {
  return state === 'Failed' || state === 'TimedOut';
}

function isSettled({ now, state }: PlannedTarget): boolean {
  return now === 'none' && (state === 'Succeeded' || state === 'Skipped');
}

function planLines({ clusters, targets, detached, warnings }: FleetPlan, isAll: boolean): readonly string[] {
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
    ...clusters.flatMap(({ name, problem }) => (problem === undefined ? [] : [`${name} does not answer: ${problem}`])),
    ...detached.map(({ cluster, addon }) => `${addon} stays on ${cluster}: no file has it any more`),
    ...warnings.map((text) => `warning: ${text}`),
    `${counted(clusters.length, 'cluster')}: ${sums.join(', ')}`,
  ];
}

function targetRow({ cluster, addon, state, now, current, wanted, reason, message }: PlannedTarget): readonly string[] {
  const isMove = current !== undefined && wanted !== undefined && current !== wanted;
  const to =
    now === 'remove' || now === 'forget' ? (current ?? '') : isMove ? `${current} -> ${wanted}` : (wanted ?? '');
  const what = now === 'none' || now === 'wait' ? (now === 'none' ? '-' : now) : `${now} ${to}`.trim();
  return [cluster, addon, state, what, [reason, message].filter((text) => text !== undefined).join(': ')];
}
