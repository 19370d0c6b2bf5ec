/** Renders the result of a run. */
import { counted } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import type { NodeResult } from '../../app/install-result.ts';
import { countsText } from '../../runtime/preflight/report.ts';
import { ROLLBACK } from '../../requests/node.ts';
import type { Arguments } from '../command.ts';
import { suggesting } from '../suggested-commands.ts';
import { renderDryRun, versionText, type Suggest } from './run-plan.ts';
import { otherVersion } from '../../runtime/plan/plan.ts';
import type { Mark, Paint } from './paint.ts';
import type { RunResult } from '../../runtime/run/run-result.ts';

const STAYS = 'stays installed (not in the spec)';

/** `given` are the arguments of the run: the commands that are next are for the same node. */
export function renderNodeResult(result: NodeResult, paint: Paint, given: Pick<Arguments, 'request'>): string {
  const suggest = suggesting([ROLLBACK], given, process.env['CURLEW_CALLED']);
  const { upgrade, next } = result;
  const steps =
    upgrade === undefined ? [] : [`Upgrade of ${upgrade.node}:`, ...upgrade.steps.map((step) => `  ${step}`)];
  const lines = next === undefined ? steps : [...steps, next];
  const shown = 'plan' in result ? renderDryRun(result, result.stays ?? [], suggest) : runTable(result, paint, suggest);
  return [shown, ...(lines.length === 0 ? [] : ['', ...lines.map(visible)])].join('\n');
}

/** Exit status: of a dry run, whether the run would stop before its first change; of a run, whether a hook failed. */
export function nodeExitCode(result: NodeResult): number {
  if (!('plan' in result)) return result.failed === undefined ? 0 : ERROR_CODES.HOOK_FAILED;
  return result.stops === undefined ? 0 : ERROR_CODES[result.stops];
}

function runTable(
  { addons, images, messages, checks, failed = [], run, seconds, stays = [] }: RunResult & Pick<NodeResult, 'stays'>,
  paint: Paint,
  suggest: Suggest,
): string {
  const width = (texts: readonly string[]): number => Math.max(0, ...texts.map(({ length }) => length));
  const all = [
    ...addons.map((addon) => ({ ...addon, mark: markOf(addon), result: resultText(addon) })),
    ...stays.map((addon) => ({ ...addon, mark: 'same' as const, result: STAYS })),
  ];
  const name = width(all.map((addon) => addon.name));
  const version = width(all.map(versionText));
  const rows = all.map(
    (addon) =>
      `${paint.mark(addon.mark)}${addon.name.padEnd(name)}  ${versionText(addon).padEnd(version)}  ${addon.result}`,
  );
  const checked = checks === undefined ? [] : [`host preflights: ${countsText(checks)}`];
  const isRemoval = addons.every(({ outcome }) => outcome === 'removed');
  const skipped = images.skipped === undefined ? [] : [`images not loaded: ${images.skipped}`];
  const last = [
    ...(isRemoval || skipped.length > 0 ? [] : [`${counted(images.loaded.length, 'image')} loaded`]),
    ...(images.removed === undefined ? [] : [`${counted(images.removed.length, 'image')} removed`]),
    `run ${run}, ${seconds.toFixed(1)} s`,
  ];
  const end = [
    last.join('; '),
    ...leftLines(addons),
    ...failedLines(failed),
    ...backLines(addons, suggest),
    ...messageLines(messages),
  ];
  return [...rows, ...checked, ...(isRemoval ? [] : skipped), ...end].join('\n');
}

/** How to return to the replaced versions. */
function backLines(addons: RunResult['addons'], suggest: Suggest): readonly string[] {
  return addons.flatMap(({ name, back }) =>
    back === undefined ? [] : [suggest(`curlew rollback ${name} restores ${back}`)],
  );
}

type Row = RunResult['addons'][number];

export function markOf({ outcome, leaves }: Pick<Row, 'outcome' | 'leaves'>): Mark {
  if (leaves !== undefined) return 'left';
  return outcome === 'already applied' ? 'same' : 'done';
}

function resultText({ outcome, because, replaces, seconds }: Row): string {
  // The versions are shown next to each other.
  const reason = because === otherVersion(replaces ?? '') ? '' : ` (${because})`;
  return `${outcome}${reason}${seconds === undefined ? '' : `, ${seconds.toFixed(1)} s`}`;
}

/** Lines about what removed add-ons have left behind. */
export function leftLines(addons: RunResult['addons']): readonly string[] {
  return addons.flatMap(({ name, leaves }) => (leaves === undefined ? [] : [`${name} leaves ${leaves}`]));
}

/** Not redacted: an outro prints addresses and initial passwords for the operator. */
export function messageLines(messages: RunResult['messages']): readonly string[] {
  return messages.flatMap(({ addon, text }) => ['', `${addon}:`, ...text.split('\n').map((line) => `  ${line}`)]);
}

/** Lines about failed hooks of add-ons that were removed despite the failure. */
export function failedLines(failed: RunResult['failed'] = []): readonly string[] {
  return failed.map(({ message }) => `not removed: ${message.split('\n', 1)[0] ?? ''}`);
}
