/** The interface of analyzers, which evaluate facts by the outcomes of a spec. Pure. */
import type { Json } from '../../formats/yaml/yaml.ts';
import type { Collector } from './collector.ts';
import type { SettingForms, Settings } from './settings.ts';
import type { AnalyzerSpec, Outcome, Verdict } from './spec.ts';

export interface AnalyzerResult {
  readonly verdict: Verdict;
  readonly message: string;
  readonly uri: string | undefined;
}

export interface Analyzer<Facts extends Json> {
  /** The key in a spec. */
  readonly kind: string;
  /** The collector of the facts that it evaluates. */
  readonly collector: Collector<Facts>;
  /** In addition to `collectorName`, `outcomes` and the other common settings. */
  readonly settings: SettingForms;
  /** Default title of its results. */
  readonly title: (collectorName: string) => string;
  /** All results; none if there is nothing to check. Throws {@link AnalyzerProblem} if the facts cannot be evaluated. */
  readonly analyze: (facts: Facts, spec: AnalyzerSpec) => readonly AnalyzerResult[];
  /** The results if there are no facts; undefined or absent: it fails. */
  readonly withoutFacts?: (spec: AnalyzerSpec) => readonly AnalyzerResult[] | undefined;
  /** The name of its facts, if it is not `collectorName`. */
  readonly factName?: (spec: AnalyzerSpec) => string | undefined;
}

/** An analyzer with the type of its facts erased: it gets only those of its own collector. */
export type AnyAnalyzer = Analyzer<Json>;

/** A condition that is invalid, or cannot be evaluated on the facts. */
export class AnalyzerProblem extends Error {
  /** The outcome that contains it. */
  readonly outcome: Outcome | undefined;
  constructor(message: string, options: { readonly outcome?: Outcome | undefined; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.outcome = options.outcome;
  }
}

export function resultOf({ verdict, message, uri }: Outcome): AnalyzerResult {
  return { verdict, message, uri };
}

/** The default evaluation: the first outcome that holds. */
export function firstOutcome<Facts>(
  holds: (when: string, facts: Facts, settings: Settings) => boolean,
): (facts: Facts, spec: AnalyzerSpec) => readonly AnalyzerResult[] {
  return (facts, { outcomes, settings }) => {
    const found = outcomes.find(
      (outcome) => outcome.when === '' || inOutcome(outcome, () => holds(outcome.when, facts, settings)),
    );
    return found === undefined ? noOutcome(outcomes) : [resultOf(found)];
  };
}

/** The result if no outcome holds: a check that names only problems found none; one that says what passes is not met. */
export function noOutcome(outcomes: readonly Outcome[]): readonly AnalyzerResult[] {
  if (outcomes.every(({ verdict }) => verdict !== 'pass')) {
    return [{ verdict: 'pass', message: 'none of its problems was found', uri: undefined }];
  }
  const message = 'none of its outcomes holds for this machine, neither pass nor any other';
  return [{ verdict: 'warn', message, uri: undefined }];
}

/** Adds the outcome to a problem. */
export function inOutcome<Result>(outcome: Outcome, body: () => Result): Result {
  try {
    return body();
  } catch (error) {
    if (!(error instanceof AnalyzerProblem)) throw error;
    throw new AnalyzerProblem(error.message, { outcome, cause: error });
  }
}
