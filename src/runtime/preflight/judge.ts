/** Specs and facts become results. Pure. */
import { ANALYZERS } from './analyzers.ts';
import { JudgeProblem, type Judgement } from './analyzer.ts';
import { findFact, type Fact } from './facts.ts';
import type { AnalyzerSpec, HostPreflight, Verdict } from './spec.ts';

export interface PreflightResult {
  readonly verdict: Verdict;
  readonly title: string;
  readonly message: string;
  readonly uri?: string;
  /** The spec says that whoever ships it does not support a machine that fails here. */
  readonly strict: boolean;
  /** The spec's name. */
  readonly spec: string;
  /** The operator has said that it does not count. */
  readonly ignored?: true;
}

/**
 * The same results, those with one of these titles marked when they are not `pass`; case does not matter. With the titles
 * that no result has.
 */
export function ignoring(
  results: readonly PreflightResult[],
  titles: readonly string[],
): { readonly results: readonly PreflightResult[]; readonly unknown: readonly string[] } {
  const wanted = new Set(titles.map(comparable));
  const has = ({ title }: PreflightResult): boolean => wanted.has(comparable(title));
  const known = new Set(results.filter(has).map(({ title }) => comparable(title)));
  return {
    results: results.map((one) => (one.verdict !== 'pass' && has(one) ? { ...one, ignored: true } : one)),
    unknown: titles.filter((title) => !known.has(comparable(title))),
  };
}

function comparable(title: string): string {
  return title.trim().toLowerCase();
}

/** The results of all analyzers, in the order of the specs. */
export function judgeFacts(specs: readonly HostPreflight[], facts: readonly Fact[]): readonly PreflightResult[] {
  return specs.flatMap(({ name, analyzers }) =>
    analyzers
      .filter(({ excluded }) => !excluded)
      .flatMap((analyzer) =>
        judgeOne(analyzer, facts).map(({ verdict, message, uri }) => ({
          verdict,
          title: titleOf(analyzer),
          message,
          ...(uri === undefined ? {} : { uri }),
          strict: analyzer.strict,
          spec: name ?? '',
        })),
      ),
  );
}

/** Headline of its results. */
export function titleOf({ kind, checkName, collectorName }: AnalyzerSpec): string {
  return (
    checkName ??
    ANALYZERS.get(kind)
      ?.title(collectorName ?? '')
      .trim() ??
    kind
  );
}

function judgeOne(spec: AnalyzerSpec, facts: readonly Fact[]): readonly Judgement[] {
  const analyzer = ANALYZERS.get(spec.kind);
  if (analyzer === undefined) return [failed(`there is no analyzer ${spec.kind}`, spec.place)];
  const name = analyzer.factName === undefined ? spec.collectorName : analyzer.factName(spec);
  const fact = findFact(facts, analyzer.collector, name);
  if (fact?.status !== 'collected') {
    const because = fact === undefined ? '' : ` (${fact.problem})`;
    const without = analyzer.withoutFacts?.(spec)?.map((one) => ({ ...one, message: `${one.message}${because}` }));
    return (
      without ?? [failed(fact?.problem ?? `nothing was collected for it`, fact === undefined ? spec.place : undefined)]
    );
  }
  try {
    return analyzer.judge(fact.data, spec);
  } catch (error) {
    if (error instanceof JudgeProblem) return [failed(error.message, error.outcome?.place ?? spec.place)];
    throw error;
  }
}

/** What cannot be judged must not pass. */
function failed(why: string, place: AnalyzerSpec['place'] | undefined): Judgement {
  const where = place === undefined ? '' : `${place.file}:${place.line}: `;
  return { verdict: 'fail', message: `cannot be judged: ${where}${why}`, uri: undefined };
}

export interface Counts {
  readonly pass: number;
  readonly warn: number;
  readonly fail: number;
  /** Those that the operator has said do not count; absent when there are none. */
  readonly ignored?: number;
}

export function countsOf(results: readonly PreflightResult[]): Counts {
  const counted = results.filter(({ ignored }) => ignored !== true);
  const count = (wanted: Verdict): number => counted.filter(({ verdict }) => verdict === wanted).length;
  const ignored = results.length - counted.length;
  return { pass: count('pass'), warn: count('warn'), fail: count('fail'), ...(ignored === 0 ? {} : { ignored }) };
}

/** kURL's statuses: 0 all is well, 1 something failed, 2 warnings that are ignored, 3 warnings. */
export function statusOf({ warn, fail }: Counts, ignoreWarnings: boolean): 0 | 1 | 2 | 3 {
  if (fail > 0) return 1;
  if (warn === 0) return 0;
  return ignoreWarnings ? 2 : 3;
}
