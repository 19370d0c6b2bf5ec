/** Comparisons in conditions. Pure. */
import { JudgeProblem } from './analyzer.ts';

/** Exactly so many words with one blank between, as Troubleshoot wants it. */
export function wordsOf(when: string, count: number, example: string): readonly string[] {
  const words = when.split(' ');
  if (words.length === count) return words;
  throw new JudgeProblem(`the condition ${JSON.stringify(when)} has not the form of ${JSON.stringify(example)}`);
}

/** `<`, `<=`, `>`, `>=`, `=`, `==`, `===`; with `unequal` also `!=`, `!==`. */
export function compareNumbers(sign: string, actual: number, wanted: number, unequal = false): boolean {
  switch (sign) {
    case '<':
      return actual < wanted;
    case '<=':
      return actual <= wanted;
    case '>':
      return actual > wanted;
    case '>=':
      return actual >= wanted;
    case '=':
    case '==':
    case '===':
      return actual === wanted;
    case '!=':
    case '!==':
      if (unequal) return actual !== wanted;
      break;
  }
  throw new JudgeProblem(`${JSON.stringify(sign)} is no comparison that is known here`);
}

export function wholeNumber(text: string): number {
  if (/^[+-]?\d{1,15}$/.test(text)) return Number(text);
  throw new JudgeProblem(`${JSON.stringify(text)} is no whole number`);
}
