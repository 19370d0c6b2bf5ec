/** What a run did, as lines for the operator. */
import { ERROR_CODES } from '../../core/errors.ts';
import type { RunResult } from '../../runtime/execute.ts';
import type { NodeResult } from '../node-run.ts';
import { countsText } from '../../runtime/host-checks.ts';
import { renderDryRun } from './run-plan.ts';

const STAYS = 'stays installed (it is not in the spec)';

export function renderNodeResult(result: NodeResult): string {
  return 'plan' in result ? renderDryRun(result, result.stays) : runTable(result, result.stays);
}

/** A dry run says by its status whether the run would stop before its first change. */
export function nodeExitCode(result: NodeResult): number {
  return 'plan' in result && result.stops !== undefined ? ERROR_CODES[result.stops] : 0;
}

function runTable(
  { addons, images, messages, checks, run, seconds }: RunResult,
  stays: NodeResult['stays'] = [],
): string {
  const width = (texts: readonly string[]): number => Math.max(0, ...texts.map(({ length }) => length));
  const all = [
    ...addons.map((addon) => ({ ...addon, came: `${addon.outcome} (${addon.because})` })),
    ...stays.map((addon) => ({ ...addon, came: STAYS })),
  ];
  const name = width(all.map((addon) => addon.name));
  const version = width(all.map((addon) => addon.version));
  const rows = all.map((addon) => `${addon.name.padEnd(name)}  ${addon.version.padEnd(version)}  ${addon.came}`);
  const loaded =
    images.skipped === undefined
      ? `${images.loaded.length} ${images.loaded.length === 1 ? 'image' : 'images'} loaded`
      : `images not loaded: ${images.skipped}`;
  // Not redacted: an outro prints the addresses and first passwords that its operator needs.
  const told = messages.flatMap(({ addon, text }) => ['', `${addon}:`, ...text.split('\n').map((line) => `  ${line}`)]);
  const checked = checks === undefined ? [] : [`host preflights: ${countsText(checks)}`];
  return [...rows, ...checked, `${loaded}; run ${run}, ${seconds.toFixed(1)} s`, ...told].join('\n');
}
