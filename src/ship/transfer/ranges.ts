/** The bytes that a file has: ranges that neither touch nor overlap, in order. No I/O. */

/** The bytes from `offset` up to, without, `end`. */
export interface Range {
  readonly offset: number;
  readonly end: number;
}

export interface Ranges {
  readonly add: (range: Range) => void;
  readonly remove: (range: Range) => void;
  /** True if all bytes of the range are included. */
  readonly has: (range: Range) => boolean;
  /** The first missing bytes before `end`; undefined if none are missing. */
  readonly gap: (end: number) => Range | undefined;
  /** The missing parts of a range, in order. */
  readonly missing: (range: Range) => readonly Range[];
  /** Number of bytes. */
  readonly bytes: () => number;
  readonly list: () => readonly Range[];
}

export function createRanges(initial: readonly Range[] = []): Ranges {
  const all: Range[] = [];
  let bytes = 0;
  /** Index of the first range that ends at `at` or later. */
  const from = (at: number): number => {
    let low = 0;
    let high = all.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((all[middle]?.end ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  /** Replaces the ranges that touch `range` with `parts`. */
  const replace = (range: Range, parts: (touched: readonly Range[]) => readonly Range[]): void => {
    const first = from(range.offset);
    let last = first;
    while ((all[last]?.offset ?? Infinity) <= range.end) last += 1;
    const touched = all.slice(first, last);
    const replacement = parts(touched).filter(({ offset, end }) => offset < end);
    all.splice(first, touched.length, ...replacement);
    bytes += sizeOf(replacement) - sizeOf(touched);
  };
  const ranges: Ranges = {
    add: (range) => {
      if (range.offset >= range.end) return;
      replace(range, (touched) => [
        {
          offset: Math.min(range.offset, touched.at(0)?.offset ?? Infinity),
          end: Math.max(range.end, touched.at(-1)?.end ?? 0),
        },
      ]);
    },
    remove: (range) => {
      if (range.offset >= range.end) return;
      replace(range, (touched) =>
        touched.flatMap(({ offset, end }) => [
          { offset, end: Math.min(end, range.offset) },
          { offset: Math.max(offset, range.end), end },
        ]),
      );
    },
    has: ({ offset, end }) => {
      const range = all[from(offset + 1)];
      return offset >= end || (range !== undefined && range.offset <= offset && end <= range.end);
    },
    gap: (end) => {
      const [first, second] = all;
      const gap =
        first === undefined || first.offset > 0
          ? { offset: 0, end: Math.min(end, first?.offset ?? end) }
          : { offset: first.end, end: Math.min(end, second?.offset ?? end) };
      return gap.offset < gap.end ? gap : undefined;
    },
    missing: ({ offset, end }) => {
      const gaps: Range[] = [];
      let at = offset;
      for (let index = from(offset + 1); at < end; index += 1) {
        const next = all[index] ?? { offset: end, end };
        if (at < next.offset) gaps.push({ offset: at, end: Math.min(end, next.offset) });
        at = next.end;
      }
      return gaps;
    },
    bytes: () => bytes,
    list: () => [...all],
  };
  for (const range of initial) ranges.add(range);
  return ranges;
}

function sizeOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, { offset, end }) => sum + end - offset, 0);
}
