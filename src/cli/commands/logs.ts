/** `curlew logs`: shows the output of hooks. */
import { LOGS } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import type { HookLog, RunChange, RunSummary } from '../../runtime/history/hook-logs.ts';
import { commandFor } from '../command.ts';
import { runLine } from '../render/run-line.ts';
import { versionText } from '../render/run-plan.ts';
import { formatBytes } from '../render/units.ts';

const DETAILS = `Without an add-on, lists recorded runs, latest first, with the versions that they changed and their logs. With an add-on, shows the logs of its hooks from the latest run that has any. HOOK is install, pre_init, post_init, outro, already_applied, join, or the name of a function. Shows the end of each log, without escape sequences; the printed path contains the whole log.`;

export const command = commandFor(LOGS, {
  details: DETAILS,
  examples: ['curlew logs', 'curlew logs ekco install --lines 50'],
  run: async ({ request }, context) => (await import('../../app/logs.ts')).logs(request, context),
  render: ({ runs = [], logs: found }) => (found === undefined ? runTable(runs) : found.map(logText).join('\n\n')),
});

function runTable(runs: readonly RunSummary[]): string {
  if (runs.length === 0) return 'No recorded runs.';
  return runs
    .map((one) => {
      const logs = one.logs.map(({ hook, bytes }) => `  ${hook} (${formatBytes(bytes)})`);
      return [runLine(one), ...one.changes.map(changeLine), ...logs].map(visibleLines).join('\n');
    })
    .join('\n');
}

/** `  greeter 1.0.0 → 1.1.0`. */
function changeLine(change: RunChange): string {
  const removed = { remove: ' removed', leave: ' removed from this node', install: '', join: '' }[change.mode];
  return `  ${change.name} ${versionText(change)}${removed}`;
}

function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

function logText({ run, hook, path, bytes, lines, cut }: HookLog): string {
  const more = cut ? `, the end of ${formatBytes(bytes)}` : '';
  return [`== ${hook}, run ${run}${more}: ${path}`, ...lines.map(redact)].map(visible).join('\n');
}
