const MARK = '…';

/**
 * A text of at most `limit` characters. A long one keeps its beginning, which says what a program did, and its end, which says why
 * that failed.
 */
export function shortened(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const end = Math.floor((limit - MARK.length) / 2);
  return `${text.slice(0, limit - MARK.length - end)}${MARK}${text.slice(-end)}`;
}
