/** Comparisons and values in conditions. Pure. */
import { AnalyzerProblem } from './analyzer.ts';
import { parseQuantity } from './go-notation.ts';

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
