/** What came of each add-on in each stage, against what is known, as a table and as data. */
import type { Imported } from '../../src/app/import.ts';

export const STAGES = ['lint', 'plan', 'build', 'hooks', 'objects', 'reruns', 'upgrade'] as const;
export type Stage = (typeof STAGES)[number];

export interface Outcome {
  readonly stage: Stage;
  /** `name-version`, or the name alone where all its versions are meant. */
  readonly addon: string;
  /** How many were looked at: versions, objects; 1 where it is the add-on itself. */
  readonly count: number;
  /** One line each; none when all is well. */
  readonly failures: readonly string[];
  /** What was stood in for, or left out. */
  readonly remarks: readonly string[];
}

/** A failure that is known, and why it is none of curlew's. */
export interface Explanation {
  readonly stage: Stage;
  readonly addon: string;
  /** Regular expression that the failure matches. */
  readonly failure: string;
  readonly why: string;
  /** It is to be mended. */
  readonly pending?: boolean;
}

export interface Judged extends Outcome {
  readonly unexplained: readonly string[];
  readonly explained: readonly { readonly failure: string; readonly why: string; readonly pending: boolean }[];
}

export function judge(outcome: Outcome, known: readonly Explanation[]): Judged {
  const fitting = known.filter(
    ({ stage, addon }) => stage === outcome.stage && (addon === '*' || isNamed(outcome.addon, addon)),
  );
  const unexplained: string[] = [];
  const explained: { failure: string; why: string; pending: boolean }[] = [];
  for (const failure of outcome.failures) {
    const found = fitting.find((one) => new RegExp(one.failure).test(failure));
    if (found === undefined) unexplained.push(failure);
    else explained.push({ failure, why: found.why, pending: found.pending ?? false });
  }
  return { ...outcome, unexplained, explained };
}

function isNamed(addon: string, name: string): boolean {
  return addon === name || addon.startsWith(`${name}-`);
}

type State = 'ok' | 'explained' | 'pending' | 'FAILED';

function stateOf({ unexplained, explained }: Judged): State {
  if (unexplained.length > 0) return 'FAILED';
  if (explained.some(({ pending }) => pending)) return 'pending';
  return explained.length > 0 ? 'explained' : 'ok';
}

/** A Markdown table: a row for each add-on, a column for each stage that was run; totals below. */
export function formatTable(report: RunReport): string {
  const { rows: all, stages } = report;
  const name = ({ addon }: Judged): string => addon.replace(/^(.+?)-(?=v?\d).*$/, '$1');
  const names = [...new Set(all.map(name))].toSorted();
  const cell = (addon: string, stage: Stage): string => {
    const found = all.filter((one) => one.stage === stage && name(one) === addon);
    return found.map((one) => `${stateOf(one)}${one.count === 1 ? '' : ` (${one.count})`}`).join(', ') || '–';
  };
  const rows = [
    ['add-on', ...stages],
    ['---', ...stages.map(() => '---')],
    ...names.map((addon) => [addon, ...stages.map((stage) => cell(addon, stage))]),
    ['ok', ...stages.map((stage) => share(report, stage))],
  ];
  return rows.map((row) => `| ${row.join(' | ')} |`).join('\n');
}

/** A run as it is kept, and shown in docs/kurl-compatibility.md. */
export interface RunReport {
  /** The commit of the repository, where it has one. */
  readonly commit: string | undefined;
  readonly stages: readonly Stage[];
  /** What `curlew import kurl` says of all versions. */
  readonly imported: Imported['sums'];
  readonly rows: readonly Judged[];
}

/** How many add-ons went through a stage as they are: `20 of 24`. */
export function share({ rows }: RunReport, stage: Stage): string {
  const found = rows.filter((one) => one.stage === stage);
  return `${found.filter((one) => stateOf(one) === 'ok').length} of ${found.length}`;
}

/**
 * What is behind the words of the table: a line for each failure that nothing explains, one for each explanation, and with
 * `remarks` what was stood in for.
 */
export function formatDetails(
  all: readonly Judged[],
  { remarks: shown }: { readonly remarks: boolean },
): readonly string[] {
  return all.flatMap(({ stage, addon, unexplained, explained, remarks }) => [
    ...unexplained.map((failure) => `FAILED ${stage} ${addon}: ${failure}`),
    ...[...new Set(explained.map(({ why }) => why))].map((why) => {
      const of = explained.filter((one) => one.why === why);
      const word = of.some(({ pending }) => pending) ? 'pending' : 'explained';
      const times = of.length === 1 ? '' : `${of.length} times, first: `;
      return `${word} ${stage} ${addon}: ${why} (${times}${of[0]?.failure ?? ''})`;
    }),
    ...(shown ? remarks.map((remark) => `remark ${stage} ${addon}: ${remark}`) : []),
  ]);
}
