/** `curlew logs`: shows the output of hooks. */
import { FOLDER_OPTIONS } from '../options.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import type { HookLog, RunSummary } from '../../runtime/history/hook-logs.ts';
import { LINES } from '../../runtime/hooks/log-tail.ts';
import { command, useCase } from '../command.ts';
import { runLine } from '../render/run-line.ts';
import { formatBytes } from '../render/units.ts';

const logs = useCase(async () => (await import('../../app/logs.ts')).logs);

const MAX_LINES = 100_000;

const DETAILS = `Without an add-on, lists recorded runs, latest first, with their logs. With an add-on, shows the logs of its hooks from the latest run that has any. HOOK is install, pre_init, post_init, outro, already_applied, join, or the name of a function. Shows the end of each log, without escape sequences; the printed path contains the whole log.`;

const lineCount = (text: string): number => {
  const count = Number(text);
  if (/^\d{1,6}$/.test(text) && count > 0 && count <= MAX_LINES) return count;
  throw new CurlewError('USAGE', `--lines ${text}: not a number from 1 to ${MAX_LINES}`);
};

export const logsCommand = command({
  name: 'logs',
  operands: '[ADDON [HOOK]]',
  details: DETAILS,
  examples: ['curlew logs', 'curlew logs ekco install --lines 50'],
  options: {
    run: { type: 'string', value: 'ID', help: 'show this run' },
    lines: {
      type: 'string',
      read: lineCount,
      value: 'N',
      help: `the last N lines of each log, within its last 64 KiB (default: ${LINES})`,
    },
    ...FOLDER_OPTIONS,
  },
  run: async ({ operands: [addon, hook], options }, context) => logs({ addon, hook, ...options }, context),
  render: ({ runs = [], logs: found }) => (found === undefined ? runTable(runs) : found.map(logText).join('\n\n')),
});

function runTable(runs: readonly RunSummary[]): string {
  if (runs.length === 0) return 'No recorded runs.';
  return runs
    .map((one) => {
      const rows = one.logs.map(({ hook, bytes }) => `  ${hook} (${formatBytes(bytes)})`);
      return [runLine(one), ...rows].map(visibleLines).join('\n');
    })
    .join('\n');
}

function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n');
}

function logText({ run, hook, path, bytes, lines, cut }: HookLog): string {
  const more = cut ? `, the end of ${formatBytes(bytes)}` : '';
  return [`== ${hook}, run ${run}${more}: ${path}`, ...lines.map(redact)].map(visible).join('\n');
}
