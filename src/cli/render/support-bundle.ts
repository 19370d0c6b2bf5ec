/** The contents of a support bundle, what is missing, and the verdicts of its checks. */
import { visible } from '../../core/diagnostic.ts';
import { countsOf } from '../../runtime/preflight/analyze.ts';
import { countsText, resultLine } from '../../runtime/preflight/report.ts';
import type { SupportIndex } from '../../runtime/support/support-index.ts';

const MAX_MISSING = 20;

/** Checks that pass are only counted. */
export function supportLines({ about, files, results, notEvaluated }: SupportIndex): readonly string[] {
  const there = files.filter(({ state }) => state === 'collected' || state === 'shortened');
  const missing = files.filter(({ state }) => state === 'failed' || state === 'left out');
  const notable = results.filter(({ verdict }) => verdict !== 'pass');
  const more = missing.length - MAX_MISSING;
  return [
    `${about}: ${there.length} files${missing.length === 0 ? '' : `, and ${missing.length} are missing`}`,
    ...missing.slice(0, MAX_MISSING).map(({ path, problem = '' }) => `missing: ${path}: ${problem}`),
    ...(more > 0 ? [`missing: ${more} more; --json lists all`] : []),
    ...notable.map((one) => `${one.host === undefined ? '' : `${one.host}: `}${resultLine(one)}`),
    ...notEvaluated.map(({ title, reason, host }) => {
      return `not evaluated: ${host === undefined ? '' : `${host}: `}${title}: ${reason}`;
    }),
    `checks: ${countsText(countsOf(results))}`,
  ].map(visible);
}
