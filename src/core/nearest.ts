/** Edit distance between words, for "did you mean". */

/** Longer words are not compared: a typo does not produce a word of hundreds of letters. */
const MAX_LENGTH = 200;
/** A replaced letter of words with at most as many letters makes another word as often as a typo does. */
const SHORT = 4;

/**
 * Letters to insert, delete, replace or swap with their neighbor to get from one word to the other (optimal string
 * alignment). A replaced letter counts as `replaced`. Infinity for words that are too long.
 */
export function editDistance(a: string, b: string, replaced = 1): number {
  if (a.length > MAX_LENGTH || b.length > MAX_LENGTH) return a === b ? 0 : Number.POSITIVE_INFINITY;
  let beforeLast: readonly number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let best = Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      best = Math.min(best, (last[column - 1] ?? 0) + (same ? 0 : replaced));
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1);
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}

/**
 * The closest known word, regardless of case, or undefined if more than a third of the letters differ from each of them. `isAnyWord`
 * if people guess it, such as a command: a replaced letter of a short word counts twice then. Names that others chose are copied.
 */
export function nearest(
  word: string,
  known: Iterable<string>,
  { isAnyWord = false }: { readonly isAnyWord?: boolean } = {},
): string | undefined {
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const length = Math.max(word.length, candidate.length);
    const limit = Math.max(1, Math.floor(length / 3));
    // At least that many letters must be inserted.
    if (Math.abs(word.length - candidate.length) > limit) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), isAnyWord && length <= SHORT ? 2 : 1);
    if (distance <= limit && distance < (best?.distance ?? Number.POSITIVE_INFINITY))
      best = { word: candidate, distance };
  }
  return best?.word;
}
