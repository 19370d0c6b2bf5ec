/** What an analyzer is: a judgement of facts by the outcomes of a spec. Pure. */
import type { Json } from '../../formats/yaml/yaml.ts';
import type { Collector } from './collector.ts';
import type { SettingForms, Settings } from './settings.ts';
import type { AnalyzerSpec, Outcome, Verdict } from './spec.ts';

export interface Judgement {
  readonly verdict: Verdict;
  readonly message: string;
  readonly uri: string | undefined;
}

export interface Analyzer<Facts extends Json> {
  /** The key in a spec. */
  readonly kind: string;
  /** Whose facts it judges. */
  readonly collector: Collector<Facts>;
  /** Beside `collectorName`, `outcomes` and the like. */
  readonly settings: SettingForms;
  /** Headline of its results when a spec gives none. */
  readonly title: (collectorName: string) => string;
  /** All judgements; none when no outcome holds. What cannot be judged is a {@link JudgeProblem}. */
  readonly judge: (facts: Facts, spec: AnalyzerSpec) => readonly Judgement[];
  /** The judgements when there are no facts; undefined, or absent: it fails. */
  readonly withoutFacts?: (spec: AnalyzerSpec) => readonly Judgement[] | undefined;
  /** The name of its facts, where `collectorName` does not say it. */
  readonly factName?: (spec: AnalyzerSpec) => string | undefined;
}

/** An analyzer whose type of facts is forgotten: the table gives it those of its own collector only. */
export type AnyAnalyzer = Analyzer<Json>;

/** A condition that is none, or cannot be held against the facts. */
export class JudgeProblem extends Error {
  /** The outcome that it stands in. */
  readonly outcome: Outcome | undefined;
  constructor(message: string, options: { readonly outcome?: Outcome | undefined; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.outcome = options.outcome;
  }
}

export function judgementOf({ verdict, message, uri }: Outcome): Judgement {
  return { verdict, message, uri };
}

/** The usual way: the first outcome that holds. */
export function firstOutcome<Facts>(
  holds: (when: string, facts: Facts, settings: Settings) => boolean,
): (facts: Facts, spec: AnalyzerSpec) => readonly Judgement[] {
  return (facts, { outcomes, settings }) => {
    const found = outcomes.find(
      (outcome) => outcome.when === '' || inOutcome(outcome, () => holds(outcome.when, facts, settings)),
    );
    return found === undefined ? [] : [judgementOf(found)];
  };
}

/** Tells in which outcome a problem arose. */
export function inOutcome<Result>(outcome: Outcome, body: () => Result): Result {
  try {
    return body();
  } catch (error) {
    if (!(error instanceof JudgeProblem)) throw error;
    throw new JudgeProblem(error.message, { outcome, cause: error });
  }
}
