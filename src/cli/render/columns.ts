/** Columns and line wrapping. */

/** Width that results and help are wrapped to. `main` sets it once, to that of a terminal; everywhere else it is 80. */
export const screen = { columns: 80 };

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

/** Breaks lines that are wider between words; the rest of a line is indented by two more columns. */
export function fitted(text: string, width: number): string {
  return text
    .split('\n')
    .flatMap((line) => fittedLine(line, width))
    .join('\n');
}

function fittedLine(line: string, width: number): readonly string[] {
  if (widthOf(line) <= width) return [line];
  const own = /^ */.exec(line)?.[0].length ?? 0;
  const indent = ' '.repeat(Math.min(own + 2, Math.floor(width / 2)));
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

/** Rows of a table, each column as wide as its widest cell. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
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

/** Rows of a table, whose last cell is wrapped in its column, or below the others if these leave too little room. */
export function wrapped(rows: readonly (readonly string[])[]): readonly string[] {
  const left = columns(rows.map((row) => row.slice(0, -1)));
  const width = Math.max(...left.map((line) => line.length)) + 2;
  const isColumn = screen.columns - width >= MIN_LAST;
  const indent = isColumn ? width : 6;
  return rows.flatMap((row, at) => {
    const lines = wrap(row.at(-1) ?? '', screen.columns - indent).map((line) => ' '.repeat(indent) + line);
    const line = left[at] ?? '';
    if (!isColumn && at === 0) return [line];
    if (!isColumn || lines[0] === undefined) return [line, ...lines];
    return [line.padEnd(indent) + lines[0].slice(indent), ...lines.slice(1)];
  });
}
