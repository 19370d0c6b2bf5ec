/** `curlew logs`: what hooks printed. */
import { FOLDER_OPTIONS } from '../options.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { listRunLogs, readHookLogs, type HookLog, type RunSummary } from '../../runtime/hooks/hook-logs.ts';
import type { Command } from '../command.ts';
import { folderOf } from '../../app/install-folder.ts';
import { runLine } from '../render/run-line.ts';
import { formatBytes } from '../render/units.ts';

const LINES = 200;
const MOST_LINES = 100_000;

const DETAILS = `Without an add-on: the runs that are still known, the latest first, and what has a log. With one: the logs of its hooks in the latest run that has any. HOOK is install, pre_init, post_init, outro, already_applied, join, or the name of a function. Of each log the end is shown, without escape sequences; its whole lies in the file named.`;

interface Logs {
  readonly runs?: readonly RunSummary[];
  readonly logs?: readonly HookLog[];
}

export const logs: Command<Logs> = {
  name: 'logs',
  summary: 'Show what the hooks of a run printed',
  operands: '[ADDON [HOOK]]',
  details: DETAILS,
  examples: ['curlew logs', 'curlew logs ekco install --lines 50'],
  options: {
    run: { type: 'string', value: 'ID', help: 'look at this run' },
    lines: { type: 'string', value: 'N', help: `of each log, the last N lines of its last 64 KiB (default: ${LINES})` },
    ...FOLDER_OPTIONS,
  },
  run: async (args, context) => {
    const [addon, hook] = args.positionals;
    const directory = folderOf(args.options, context);
    const run = args.text('run');
    const lines = linesOf(args.text('lines'));
    if (addon !== undefined) return { logs: await readHookLogs(directory, { run, addon, hook, lines }) };
    const runs = await listRunLogs(directory);
    if (run === undefined) return { runs };
    const found = runs.filter((one) => one.run === run);
    if (found.length > 0) return { runs: found };
    throw new CurlewError('NOT_FOUND', `${directory} knows no run ${JSON.stringify(run.slice(0, 60))}`, {
      hint: 'curlew logs lists the runs',
    });
  },
  render: ({ runs = [], logs: found }) => (found === undefined ? runTable(runs) : found.map(logText).join('\n\n')),
};

function linesOf(text: string | undefined): number {
  if (text === undefined) return LINES;
  const count = Number(text);
  if (/^\d{1,6}$/.test(text) && count > 0 && count <= MOST_LINES) return count;
  throw new CurlewError('USAGE', `--lines ${text}: not a number from 1 to ${MOST_LINES}`);
}

function runTable(runs: readonly RunSummary[]): string {
  if (runs.length === 0) return 'No run is known here.';
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
