/**
 * Tells documents that are surely well-formed from those that need the parser: block maps and lists, values on one line, block
 * scalars. Most documents of add-ons are no more than that, and the parser takes a second for two megabytes. Pure.
 */

interface Level {
  readonly indent: number;
  readonly list: boolean;
  readonly keys: Set<string>;
}

interface Reader {
  readonly levels: Level[];
  /** Something deeper may follow: a key without a value, or a dash. */
  open: boolean;
  /** Column of the node whose text in a block scalar follows. */
  textOf: number | undefined;
  /** Column of that text, once there is some. */
  textAt: number | undefined;
}

const KEY = /^("[^"\\]*"|'[^']*'|[A-Za-z0-9_$./~][A-Za-z0-9_$./~-]*):(?: +([^ ].*))?$/;
const QUOTED = /^(?:"[^"\\]*"|'[^']*')(?: +#.*)?$/;
const EMPTY = /^(?:\{ *\}|\[ *\])(?: +#.*)?$/;
const FLAT_LIST =
  /^\[ *(?:"[^"\\]*"|[A-Za-z0-9_./][A-Za-z0-9_./-]*)(?:, *(?:"[^"\\]*"|[A-Za-z0-9_./][A-Za-z0-9_./-]*))* *\]$/;
const BLOCK_SCALAR = /^[|>][+-]?$/;
/** What a scalar without quotes may begin with, whatever follows. */
const BEGINNING = /^(?:[A-Za-z0-9_$./~+=(<^;\\]|-(?=[^ ]))/;

/** True only for documents without mistakes and without keys that stand twice; false says nothing. */
export function isPlainYaml(document: string): boolean {
  if (/[\t\r]/.test(document)) return false;
  const reader: Reader = { levels: [], open: true, textOf: undefined, textAt: undefined };
  for (const [index, raw] of document.split('\n').entries()) {
    const line = raw.trimEnd();
    if (reader.textOf !== undefined) {
      const inside = readText(reader, raw, reader.textOf);
      if (inside === 'bad') return false;
      if (inside === 'text') continue;
      reader.textOf = undefined;
    }
    if (line === '' || line.trimStart().startsWith('#')) continue;
    if (index === 0 && /^---(?: +#.*)?$/.test(line)) continue;
    if (!readLine(reader, line)) return false;
  }
  return true;
}

function readText(reader: Reader, raw: string, column: number): 'text' | 'end' | 'bad' {
  const indent = raw.length - raw.trimStart().length;
  if (indent === raw.length) {
    // Blanks before the first text may not be deeper than it; how deep that is, is not known yet.
    return reader.textAt === undefined && indent > 0 ? 'bad' : 'text';
  }
  if (indent <= column) return 'end';
  reader.textAt ??= indent;
  return indent >= reader.textAt ? 'text' : 'bad';
}

function readLine(reader: Reader, line: string): boolean {
  let column = line.length - line.trimStart().length;
  let rest = line.slice(column);
  let item = false;
  while (rest === '-' || rest.startsWith('- ')) {
    if (!place(reader, column, true)) return false;
    item = true;
    reader.open = true;
    const inner = rest.slice(1).trimStart();
    if (inner === '') return true;
    column += rest.length - inner.length;
    rest = inner;
  }
  const [, key, value] = KEY.exec(rest) ?? [];
  if (key === undefined) {
    // The dash is the node that a block scalar belongs to: two columns before, at least.
    return item && readValue(reader, rest, reader.levels.at(-1)?.indent ?? 0);
  }
  if (!place(reader, column, false)) return false;
  const name = key.replace(/^["'](.*)["']$/, '$1');
  const keys = reader.levels.at(-1)?.keys;
  if (keys === undefined || keys.has(name)) return false;
  keys.add(name);
  if (value === undefined || value.startsWith('#')) {
    reader.open = true;
    return true;
  }
  return readValue(reader, value, column);
}

/** Goes back to the level of a column, or opens one. */
function place(reader: Reader, column: number, list: boolean): boolean {
  const { levels } = reader;
  const ready = reader.open;
  reader.open = false;
  let top = levels.at(-1);
  let stayed = true;
  // A key ends the list that stands right below the key before it.
  const isBelow = ({ indent, list: inList }: Level): boolean =>
    indent > column || (indent === column && inList && !list);
  while (top !== undefined && isBelow(top)) {
    levels.pop();
    stayed = false;
    top = levels.at(-1);
  }
  if (top?.indent === column && top.list === list) return true;
  // A list may stand right below its key, without being indented.
  const fits = top === undefined ? levels.length === 0 && stayed : top.indent < column || (list && !top.list);
  if (!fits || !stayed || !ready) return false;
  levels.push({ indent: column, list, keys: new Set() });
  return true;
}

function readValue(reader: Reader, value: string, column: number): boolean {
  reader.open = false;
  if (BLOCK_SCALAR.test(value)) {
    reader.textOf = column;
    reader.textAt = undefined;
    return true;
  }
  if (QUOTED.test(value) || EMPTY.test(value) || FLAT_LIST.test(value)) return true;
  return BEGINNING.test(value) && !/:(?: |$)| #/.test(value);
}
