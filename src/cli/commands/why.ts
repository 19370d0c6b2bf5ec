/** `curlew why`: explains the state of an add-on. */
import { WHY } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { redact } from '../../core/errors.ts';
import type { AddonHistory } from '../../runtime/history/why.ts';
import { commandFor } from '../command.ts';
import { columns, screen, wrap } from '../render/columns.ts';
import { runLine } from '../render/run-line.ts';

const DETAILS = `Reads the records and journals of recorded runs, and reports differences from the records of the cluster, which take precedence. \`curlew install --dry-run\` shows what the next run would do with its packages and settings.`;

export const command = commandFor(WHY, {
  details: DETAILS,
  examples: ['curlew why ekco'],
  run: async ({ request }, context) => (await import('../../app/why.ts')).why(request, context),
  render: renderWhy,
});

const LABEL = 11;

function entry(label: string, text: string): readonly string[] {
  const lines = wrap(visible(redact(text)), screen.columns - LABEL);
  return lines.map((line, index) => `${(index === 0 ? label : '').padEnd(LABEL)}${line}`);
}

function renderWhy({ name, version, last, record, cluster, next }: AddonHistory): string {
  const title = version === undefined ? name : `${name} ${version}`;
  return [
    title,
    ...(last === undefined ? entry('last run', 'no record of the run that installed it') : lastLines(last)),
    ...(record === undefined ? [] : entry('record', recordText(record))),
    ...(cluster === undefined ? [] : entry('cluster', cluster)),
    ...entry('next run', next),
  ].join('\n');
}

function lastLines(last: NonNullable<AddonHistory['last']>): readonly string[] {
  const { run, state, mode, because, before, actions, message, culprit } = last;
  const rows = actions.map(({ id, state: result, outcome, because: reason }) => [
    `  ${visible(id)}`,
    result === 'done' ? (outcome ?? 'done') : result,
    visible(redact(result === 'failed' ? (outcome ?? '') : reason)),
  ]);
  return [
    ...entry('last run', runLine({ run, state, kind: undefined, began: undefined, message: undefined })),
    ...entry(mode === 'already applied' ? 'skipped' : mode, because),
    ...(message === undefined || state === 'finished' ? [] : entry(culprit ? 'failed' : 'run failed', message)),
    ...(before.length === 0
      ? []
      : entry('before', before.map(({ action, run: by }) => `${action} (${by})`).join(', '))),
    ...columns(rows).map((line) => (line.length > screen.columns ? `${line.slice(0, screen.columns - 1)}…` : line)),
  ];
}

function recordText({ version, digest, run, finished }: NonNullable<AddonHistory['record']>): string {
  return `version ${version}, package ${digest ?? 'unknown'}, run ${run}${finished ? '' : ', which did not finish'}`;
}
