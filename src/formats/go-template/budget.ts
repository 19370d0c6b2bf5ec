/** The total cost that evaluating templates may have. It is charged before a result is made, since the result may not fit in memory. */
import { TemplateProblem } from './lex.ts';
import { weightOf, type Value } from './values.ts';

/** Limit on actions and loop iterations. */
const MAX_STEPS = 100_000;
const MAX_OUTPUT = 1 << 20;
/** Limit on the {@link weightOf} all values that actions and functions look at or make: about a second. */
const MAX_WORK = 1 << 28;
/** Limit on the weight of one value, and of the arguments of one call. */
const MAX_WEIGHT = 1 << 22;
const HINT = 'shorten its loops, texts and lists';

/** One for all texts that are rendered for one purpose, such as the values of a chart. */
export class Budget {
  #steps = 0;
  #output = 0;
  #work = 0;

  step(offset: number): void {
    this.#steps += 1;
    if (this.#steps > MAX_STEPS)
      throw new TemplateProblem(`the template needs more than ${MAX_STEPS} steps`, offset, HINT);
  }

  /** Throws a {@link TemplateProblem} if these values together are too large for one result. */
  work(values: readonly Value[], offset: number): void {
    const weight = values.reduce<number>((sum, value) => sum + weightOf(value), 0);
    this.#work += weight;
    if (weight > MAX_WEIGHT) throw new TemplateProblem('the texts and lists are too large', offset, HINT);
    if (this.#work > MAX_WORK) throw new TemplateProblem('the template needs too much work', offset, HINT);
  }

  output(length: number, offset: number): void {
    this.#output += length;
    if (this.#output > MAX_OUTPUT)
      throw new TemplateProblem(`the output is longer than ${MAX_OUTPUT} characters`, offset);
  }
}
