/** How analyzers evaluate facts by the outcomes of a spec: conditions, comparisons, messages. Pure. */
import { TemplateProblem } from '../../formats/go-template/lex.ts';
import { renderText } from '../../formats/go-template/render.ts';
import type { ValueMap } from '../../formats/go-template/values.ts';
import { parseQuantity } from './go-notation.ts';
import type { Settings } from './check-settings.ts';
import type { AnalyzerSpec, OutcomeRule } from './spec.ts';

export type AnalyzerResult = Pick<OutcomeRule, 'verdict' | 'message' | 'uri'>;

/** A condition that is invalid, or cannot be evaluated on the facts. */
export class AnalyzerProblem extends Error {
  /** The outcome that contains it. */
  readonly outcome: OutcomeRule | undefined;
  constructor(message: string, options: { readonly outcome?: OutcomeRule | undefined; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.outcome = options.outcome;
  }
}

export function checkResult({ verdict, message, uri }: OutcomeRule): AnalyzerResult {
  return { verdict, message, uri };
}

/** The default evaluation: the first outcome that holds. */
export function firstOutcome<Facts>(
  holds: (when: string, facts: Facts, settings: Settings) => boolean,
): (facts: Facts, spec: AnalyzerSpec) => readonly AnalyzerResult[] {
  return (facts, { outcomes, settings }) => {
    const match = outcomes.find(
      (outcome) => outcome.when === '' || inOutcome(outcome, () => holds(outcome.when, facts, settings)),
    );
    return match === undefined ? noOutcome(outcomes) : [checkResult(match)];
  };
}

/** The result if no outcome holds: a check that names only problems found none; one that says what passes is not met. */
export function noOutcome(outcomes: readonly OutcomeRule[]): readonly AnalyzerResult[] {
  if (outcomes.every(({ verdict }) => verdict !== 'pass')) {
    return [{ verdict: 'pass', message: 'none of its problems was found', uri: undefined }];
  }
  const message = 'none of its outcomes holds for this machine, neither pass nor any other';
  return [{ verdict: 'warn', message, uri: undefined }];
}

/** Adds the outcome to a problem. */
export function inOutcome<Result>(outcome: OutcomeRule, body: () => Result): Result {
  try {
    return body();
  } catch (error) {
    if (!(error instanceof AnalyzerProblem)) throw error;
    throw new AnalyzerProblem(error.message, { outcome, cause: error });
  }
}

/** Splits a condition at single spaces into exactly `count` words, as Troubleshoot does. */
export function splitCondition(when: string, count: number, example: string): readonly string[] {
  const words = when.split(' ');
  if (words.length === count) return words;
  throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} does not have the form ${JSON.stringify(example)}`);
}

/** `<`, `<=`, `>`, `>=`, `=`, `==`, `===`; with `unequal` also `!=`, `!==`. */
export function compareNumbers(sign: string, actual: number, expected: number, unequal = false): boolean {
  switch (sign) {
    case '<':
      return actual < expected;
    case '<=':
      return actual <= expected;
    case '>':
      return actual > expected;
    case '>=':
      return actual >= expected;
    case '=':
    case '==':
    case '===':
      return actual === expected;
    case '!=':
    case '!==':
      if (unequal) return actual !== expected;
      break;
  }
  throw new AnalyzerProblem(`${JSON.stringify(sign)} is not a known comparison`);
}

export function wholeNumber(text: string): number {
  if (/^[+-]?\d{1,15}$/.test(text)) return Number(text);
  throw new AnalyzerProblem(`${JSON.stringify(text)} is not an integer`);
}

/** The bytes of `30Gi` or `4G`. Throws {@link AnalyzerProblem} for anything else, including negative ones. */
export function quantityOf(text: string): number {
  const quantity = parseQuantity(text);
  if (quantity !== undefined && quantity >= 0) return quantity;
  throw new AnalyzerProblem(`${JSON.stringify(text)} is not a quantity such as 30Gi`);
}

/** Renders the message of an outcome, a template with plain `{{ … }}`. Throws {@link AnalyzerProblem} if it is invalid. */
export function messageOf(text: string, data: ValueMap): string {
  try {
    return renderText(text, data);
  } catch (error) {
    if (error instanceof TemplateProblem) throw new AnalyzerProblem(`${JSON.stringify(text)}: ${error.message}`);
    throw error;
  }
}
