/** Columns and line wrapping. */

/** Width of a terminal. */
export const COLUMNS = 80;
/** Wider columns have the last one below them. */
const MAX_LEFT = 60;

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

/** Rows of a table, whose last cell is wrapped in its column, or below the others if these are wide. */
export function wrapped(rows: readonly (readonly string[])[]): readonly string[] {
  const left = columns(rows.map((row) => row.slice(0, -1)));
  const width = Math.max(...left.map((line) => line.length)) + 2;
  const isColumn = width <= MAX_LEFT;
  const indent = isColumn ? width : 6;
  return rows.flatMap((row, at) => {
    const lines = wrap(row.at(-1) ?? '', COLUMNS - indent).map((line) => ' '.repeat(indent) + line);
    const line = left[at] ?? '';
    if (!isColumn && at === 0) return [line];
    if (!isColumn || lines[0] === undefined) return [line, ...lines];
    return [line.padEnd(indent) + lines[0].slice(indent), ...lines.slice(1)];
  });
}
