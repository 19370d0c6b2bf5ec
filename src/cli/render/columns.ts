/** Columns and line wrapping. */

/**
 * Width that results and help are wrapped to. `main` sets it once, to that of a terminal; everywhere else it is 80, and rows of a
 * table stay whole: programs read them.
 */
export const screen = { columns: 80, isTerminal: false };

/** Narrower terminals get lines of this width, and wider ones no longer lines than the other. */
const NARROWEST = 40;
const WIDEST = 200;

/** Width for a stream; undefined if it is not a terminal. */
export function widthFor(stream: { readonly isTTY?: boolean; readonly columns?: number }): number | undefined {
  const { isTTY, columns: wide } = stream;
  return isTTY === true && wide !== undefined ? Math.min(WIDEST, Math.max(NARROWEST, wide)) : undefined;
}

/** Sequences that choose a color have no width. */
const COLOR = /\u001b\[[0-9;]*m/g;

function widthOf(text: string): number {
  return text.replaceAll(COLOR, '').length;
}

/** Marks under a line what is meant in it. */
const CARETS = /^( *)(\^+)$/;

/**
 * Breaks lines that are wider between words; the rest of a line is indented by two more columns, or is below the text after a tag.
 * A line above carets is cut instead, around them.
 */
export function fitted(text: string, width: number): string {
  const lines = text.split('\n');
  return lines
    .flatMap((line, at) => {
      const cut = cutAbove(lines[at + 1], width);
      if (cut !== undefined) return [cut.above(line)];
      return cutAbove(line, width)?.carets ?? fittedLine(line, width);
    })
    .join('\n');
}

/** How a line with carets and the one above are cut to a width; undefined for another line. */
function cutAbove(
  line: string | undefined,
  width: number,
): { readonly above: (text: string) => string; readonly carets: readonly string[] } | undefined {
  const [, blanks = '', marks] = CARETS.exec(line?.replaceAll(COLOR, '') ?? '') ?? [];
  if (line === undefined || marks === undefined) return undefined;
  const from = blanks.length + marks.length < width ? 0 : Math.max(0, blanks.length - Math.floor(width / 2));
  const fewer = marks.slice(0, Math.max(1, width - 1 - blanks.length + from));
  return {
    above: (text) => {
      if (text.length <= width) return text;
      const rest = from === 0 ? text : `…${text.slice(from + 1)}`;
      return rest.length <= width ? rest : `${rest.slice(0, width - 1)}…`;
    },
    carets: [line.replace(' '.repeat(from), '').replace(marks, fewer)],
  };
}

/** A line begins with a tag such as `[PASS] `, whose text is a column of its own, or with blanks. */
const TAG = /^(?:( *\[[A-Z]+\] )|( *))/;

function fittedLine(line: string, width: number): readonly string[] {
  if (widthOf(line) <= width) return [line];
  const [, tag, blanks = ''] = TAG.exec(line.replaceAll(COLOR, '')) ?? [];
  const indent = ' '.repeat(Math.min(tag?.length ?? blanks.length + 2, Math.floor(width / 2)));
  const lines: string[] = [];
  let current = '';
  for (const [, space = '', word = ''] of line.matchAll(/( *)([^ ]+)/g)) {
    if (current.trim() !== '' && widthOf(current + space + word) > width) {
      lines.push(current);
      current = indent + word;
    } else {
      current += space + word;
    }
  }
  return [...lines, current];
}

/** A last column that would be narrower is below the others. */
const MIN_LAST = 20;
/** Columns before what is below a row of a table. */
const BELOW = 6;

/**
 * Rows of a table, each column as wide as its widest cell. On a terminal that is too narrow, the columns that do not fit are below
 * the others.
 */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const whole = aligned(rows);
  if (!screen.isTerminal || whole.every((line) => line.length <= screen.columns)) return whole;
  const fits = (count: number): boolean =>
    aligned(rows.map((row) => row.slice(0, count))).every((line) => line.length <= screen.columns);
  let count = (rows[0] ?? []).length - 1;
  while (count > 1 && !fits(count)) count -= 1;
  const left = aligned(rows.map((row) => row.slice(0, count)));
  return rows.flatMap((row, at) => {
    const below = row.slice(count).filter((cell) => cell !== '');
    const indent = ' '.repeat(BELOW);
    return [left[at] ?? '', ...wrap(below.join(', '), screen.columns - BELOW).map((line) => indent + line)];
  });
}

function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Wraps a text between words. Words longer than a line are on a separate line. */
export function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).filter((part) => part !== '')) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return line === '' ? lines : [...lines, line];
}

/** Where the last column of a table begins: after `width`, or `below` the others if that leaves too little room. */
export function lastColumnAt(width: number, below: number = BELOW): number {
  return screen.columns - width >= MIN_LAST ? width : below;
}

/** Rows of a table, whose last cell is wrapped in its column, or below the others if these leave too little room. */
export function wrapped(rows: readonly (readonly string[])[]): readonly string[] {
  const left = columns(rows.map((row) => row.slice(0, -1)));
  const width = Math.max(...left.map((line) => line.length)) + 2;
  const indent = lastColumnAt(width);
  const isColumn = indent === width;
  return rows.flatMap((row, at) => {
    const lines = wrap(row.at(-1) ?? '', screen.columns - indent).map((line) => ' '.repeat(indent) + line);
    const line = left[at] ?? '';
    if (!isColumn && at === 0) return [line];
    if (!isColumn || lines[0] === undefined) return [line, ...lines];
    return [line.padEnd(indent) + lines[0].slice(indent), ...lines.slice(1)];
  });
}
