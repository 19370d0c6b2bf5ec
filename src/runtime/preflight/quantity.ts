/** Amounts of bytes in conditions. Pure. */
import { JudgeProblem } from './analyzer.ts';
import { parseQuantity } from './go-words.ts';

/** The bytes of `30Gi` or `4G`; anything else, or less than nothing, is a {@link JudgeProblem}. */
export function quantityOf(text: string): number {
  const quantity = parseQuantity(text);
  if (quantity !== undefined && quantity >= 0) return quantity;
  throw new JudgeProblem(`${JSON.stringify(text)} is no amount such as 30Gi`);
}
