/** Evaluates facts by specs. Pure. */
import type { AnyCheck } from './check.ts';
import { ANALYZERS } from './checks.ts';
import { AnalyzerProblem, type AnalyzerResult } from './outcome.ts';
import { findFact, type Fact } from './facts.ts';
import type { AnalyzerSpec, HostPreflight, Verdict } from './spec.ts';

export interface PreflightResult {
  readonly verdict: Verdict;
  readonly title: string;
  readonly message: string;
  readonly uri?: string;
  /** According to the spec, its author does not support machines that fail this check. */
  readonly strict: boolean;
  /** The spec's name. */
  readonly spec: string;
  /** The operator ignores it. */
  readonly ignored?: true;
}

/**
 * Marks results with one of these titles as ignored unless they are `pass`; case does not matter. Also returns the titles that no
 * result has.
 */
export function ignoring(
  results: readonly PreflightResult[],
  titles: readonly string[],
): { readonly results: readonly PreflightResult[]; readonly unknown: readonly string[] } {
  const selected = new Set(titles.map(comparable));
  const has = ({ title }: PreflightResult): boolean => selected.has(comparable(title));
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
export function analyzeFacts(specs: readonly HostPreflight[], facts: readonly Fact[]): readonly PreflightResult[] {
  return analyzeWith(specs, (analyzer) => analyzeOne(analyzer, facts), analyzerTitle);
}

/** The verdicts of `judge` about each analyzer that is not excluded. */
export function analyzeWith(
  specs: readonly HostPreflight[],
  judge: (analyzer: AnalyzerSpec, spec: string) => readonly AnalyzerResult[],
  title: (analyzer: AnalyzerSpec) => string,
): readonly PreflightResult[] {
  return specs.flatMap(({ name: spec = '', analyzers }) =>
    analyzers
      .filter(({ excluded }) => !excluded)
      .flatMap((analyzer) =>
        judge(analyzer, spec).map(({ verdict, message, uri }) => ({
          verdict,
          title: title(analyzer),
          message,
          ...(uri === undefined ? {} : { uri }),
          strict: analyzer.strict,
          spec,
        })),
      ),
  );
}

/** Title of its results. */
export function analyzerTitle({ kind, checkName, collectorName }: AnalyzerSpec): string {
  const title = ANALYZERS.get(kind)?.title ?? kind;
  return checkName ?? (typeof title === 'string' ? title : title(collectorName ?? '').trim());
}

function analyzeOne(spec: AnalyzerSpec, facts: readonly Fact[]): readonly AnalyzerResult[] {
  const analyzer = ANALYZERS.get(spec.kind);
  if (analyzer === undefined) return [failed(`unknown analyzer ${spec.kind}`, spec.place)];
  const fact = factOf(spec, analyzer, facts);
  if (fact?.status !== 'collected') {
    const because = fact === undefined ? '' : ` (${fact.problem})`;
    const without = analyzer.withoutFacts?.(spec)?.map((one) => ({ ...one, message: `${one.message}${because}` }));
    return (
      without ?? [failed(fact?.problem ?? `nothing was collected for it`, fact === undefined ? spec.place : undefined)]
    );
  }
  try {
    return analyzer.analyze(fact.data, spec);
  } catch (error) {
    if (error instanceof AnalyzerProblem) return [failed(error.message, error.outcome?.place ?? spec.place)];
    throw error;
  }
}

/** The fact that an analyzer evaluates. */
export function factOf(spec: AnalyzerSpec, analyzer: AnyCheck, facts: readonly Fact[]): Fact | undefined {
  return findFact(facts, analyzer, analyzer.factName === undefined ? spec.collectorName : analyzer.factName(spec));
}

/** A check that cannot be evaluated must not pass. */
function failed(why: string, place: AnalyzerSpec['place'] | undefined): AnalyzerResult {
  const where = place === undefined ? '' : `${place.file}:${place.line}: `;
  return { verdict: 'fail', message: `cannot be evaluated: ${where}${why}`, uri: undefined };
}

export interface Counts {
  readonly pass: number;
  readonly warn: number;
  readonly fail: number;
  /** Results that the operator ignores; absent if there are none. */
  readonly ignored?: number;
}

export function countsOf(results: readonly PreflightResult[]): Counts {
  const counted = results.filter(({ ignored }) => ignored !== true);
  const count = (one: Verdict): number => counted.filter(({ verdict }) => verdict === one).length;
  const ignored = results.length - counted.length;
  return { pass: count('pass'), warn: count('warn'), fail: count('fail'), ...(ignored === 0 ? {} : { ignored }) };
}

/** kURL's exit statuses: 0 all passed, 1 failures, 2 ignored warnings, 3 warnings. */
export function analysisStatus({ warn, fail }: Counts, ignoreWarnings: boolean): 0 | 1 | 2 | 3 {
  if (fail > 0) return 1;
  if (warn === 0) return 0;
  return ignoreWarnings ? 2 : 3;
}
