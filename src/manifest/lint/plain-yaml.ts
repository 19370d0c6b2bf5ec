/**
 * Reads documents that are surely well-formed, without the parser: block maps and lists, values on one line, text in blocks.
 * Most documents of add-ons are no more than that, and the parser takes a second for two megabytes. Pure.
 */
import { Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';

/** Deeper documents are not plain: the reader that asks the parser refuses them. */
const DEEPEST = 200;

interface Level {
  readonly indent: number;
  readonly list: boolean;
  readonly keys: Set<string>;
  readonly node: YAMLMap | YAMLSeq | undefined;
}

interface Reader {
  readonly levels: Level[];
  /** Whether nodes are made of what is read. */
  readonly build: boolean;
  root: YAMLMap | YAMLSeq | undefined;
  /** Where the next node belongs. */
  slot: Pair | YAMLSeq | undefined;
  /** Something deeper may follow: a key without a value, or a dash. */
  open: boolean;
  /** Column of the node whose text in a block scalar follows. */
  textOf: number | undefined;
  /** Column of that text, once there is some. */
  textAt: number | undefined;
  /** Lines of that text. */
  textLines: number;
}

interface Line {
  /** Without blanks at the end. */
  readonly text: string;
  /** Of its first character in the document. */
  readonly offset: number;
}

const KEY = /^("[^"\\]*"|'[^']*'|[A-Za-z0-9_$./~][A-Za-z0-9_$./~-]*):(?: +([^ ].*))?$/;
const COMMENT = /(?: +#.*)?$/.source;
const QUOTED = new RegExp(`^("[^"\\\\]*"|'(?:[^']|'')*')${COMMENT}`);
const EMPTY = new RegExp(`^(?:\\{ *\\}|\\[ *\\])${COMMENT}`);
const ITEM = /(?:"[^"\\]*"|'[^']*'|[A-Za-z0-9_./][A-Za-z0-9_./-]*)/.source;
const FLAT_LIST = new RegExp(`^\\[ *${ITEM}(?: *, *${ITEM})* *\\]${COMMENT}`);
const BLOCK_SCALAR = /^[|>][+-]?$/;
/** What a scalar without quotes may begin with, whatever follows. */
const BEGINNING = /^(?:[A-Za-z0-9_$./~+=(<^;\\]|[:-](?=[^ ]))/;
/** Scalars without quotes that are no text: nothing, true and false, numbers. */
const NO_TEXT =
  /^(?:~|null|Null|NULL|true|True|TRUE|false|False|FALSE|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

/**
 * True only for documents without mistakes and without keys that stand twice; false says nothing. `each` is given every line
 * that is neither a comment nor text in a block, until the answer is false.
 */
export function isPlainYaml(document: string, each?: (line: string) => void): boolean {
  return read(document, false, each) !== undefined;
}

/**
 * The nodes of a plain document, with their ranges: maps, lists, keys, and texts that stand on one line. Other values are
 * null. Undefined where `isPlainYaml` is false, for documents without a map or a list, and for texts of one line in a block.
 */
export function plainTree(document: string): YAMLMap | YAMLSeq | undefined {
  return read(document, true)?.root;
}

function read(document: string, build: boolean, each?: (line: string) => void): Reader | undefined {
  if (document.includes('\r')) return undefined;
  const reader: Reader = {
    levels: [],
    build,
    root: undefined,
    slot: undefined,
    open: true,
    textOf: undefined,
    textAt: undefined,
    textLines: 0,
  };
  for (let from = 0; from < document.length;) {
    const newline = document.indexOf('\n', from);
    const to = newline === -1 ? document.length : newline;
    if (!readRaw(reader, document, { from, to }, each)) return undefined;
    from = to + 1;
  }
  return endText(reader) ? reader : undefined;
}

function readRaw(
  reader: Reader,
  document: string,
  { from, to }: { readonly from: number; readonly to: number },
  each: ((line: string) => void) | undefined,
): boolean {
  let start = from;
  while (start < to && document.charCodeAt(start) === 0x20) start += 1;
  if (reader.textOf !== undefined) {
    const inside = readText(reader, reader.textOf, start - from, start === to);
    if (inside === 'bad') return false;
    if (inside === 'text') return true;
    if (!endText(reader)) return false;
  }
  if (start === to || document.charCodeAt(start) === 0x23) return true;
  const text = document.slice(from, to).trimEnd();
  if (from === 0 && /^---(?: +#.*)?$/.test(text)) return true;
  if (text.includes('\t')) return false;
  each?.(text);
  return readLine(reader, { text, offset: from }, start - from);
}

function readText(reader: Reader, column: number, indent: number, blank: boolean): 'text' | 'end' | 'bad' {
  if (blank) {
    // Blanks before the first text may not be deeper than it; how deep that is, is not known yet.
    return reader.textAt === undefined && indent > 0 ? 'bad' : 'text';
  }
  if (indent <= column) return 'end';
  reader.textAt ??= indent;
  reader.textLines += 1;
  return indent >= reader.textAt ? 'text' : 'bad';
}

/** Text of one line could be what a rule looks for, and no node is made of it. */
function endText(reader: Reader): boolean {
  reader.textOf = undefined;
  return !reader.build || reader.textLines !== 1;
}

function readLine(reader: Reader, { text, offset }: Line, indent: number): boolean {
  let column = indent;
  let rest = column === 0 ? text : text.slice(column);
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
  if (key === undefined) return readAlone(reader, { text: rest, offset: offset + column }, column, item);
  if (!place(reader, column, false)) return false;
  const name = key.replace(/^["'](.*)["']$/, '$1');
  const level = reader.levels.at(-1);
  if (level === undefined || level.keys.has(name)) return false;
  level.keys.add(name);
  if (level.node instanceof YAMLMap) {
    reader.slot = new Pair(new Scalar(name), null);
    level.node.items.push(reader.slot);
  }
  if (value === undefined || value.startsWith('#')) {
    reader.open = true;
    return true;
  }
  return readValue(reader, { text: value, offset: offset + text.length - value.length }, column);
}

/** What stands behind a dash, or on a line of its own below its key or dash, and is no key. */
function readAlone(reader: Reader, line: Line, column: number, item: boolean): boolean {
  const above = reader.levels.at(-1);
  // The dash is the node that a block scalar belongs to: two columns before, at least.
  if (item) return readValue(reader, line, above?.indent ?? 0);
  const fits = reader.open && above !== undefined && column > above.indent;
  return fits && !BLOCK_SCALAR.test(line.text) && readValue(reader, line, column);
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
  if (top?.indent === column && top.list === list) {
    if (top.node instanceof YAMLSeq) reader.slot = top.node;
    return true;
  }
  // A list may stand right below its key, without being indented.
  const fits = top === undefined ? levels.length === 0 && stayed : top.indent < column || (list && !top.list);
  if (!fits || !stayed || !ready || levels.length === DEEPEST) return false;
  levels.push({ indent: column, list, keys: new Set(), node: openNode(reader, list) });
  return true;
}

function openNode(reader: Reader, list: boolean): YAMLMap | YAMLSeq | undefined {
  if (!reader.build) return undefined;
  const node = list ? new YAMLSeq() : new YAMLMap();
  reader.root ??= node;
  put(reader, node);
  if (node instanceof YAMLSeq) reader.slot = node;
  return node;
}

function put({ slot }: Reader, node: YAMLMap | YAMLSeq | Scalar): void {
  if (slot instanceof YAMLSeq) slot.items.push(node);
  else if (slot !== undefined) slot.value = node;
}

function readValue(reader: Reader, { text, offset }: Line, column: number): boolean {
  reader.open = false;
  if (BLOCK_SCALAR.test(text)) {
    reader.textOf = column;
    reader.textAt = undefined;
    reader.textLines = 0;
    return true;
  }
  const [, quoted] = QUOTED.exec(text) ?? [];
  if (quoted !== undefined) {
    const inner = quoted.slice(1, -1);
    putText(reader, quoted.startsWith("'") ? inner.replaceAll("''", "'") : inner, { text: quoted, offset });
    return true;
  }
  if (EMPTY.test(text) || FLAT_LIST.test(text)) return true;
  const comment = text.indexOf(' #');
  const bare = comment === -1 ? text : text.slice(0, comment).trimEnd();
  if (!BEGINNING.test(bare) || /:(?: |$)/.test(bare)) return false;
  if (reader.build && !NO_TEXT.test(bare)) putText(reader, bare, { text: bare, offset });
  return true;
}

function putText(reader: Reader, value: string, { text, offset }: Line): void {
  if (!reader.build) return;
  const node = new Scalar(value);
  node.range = [offset, offset + text.length, offset + text.length];
  put(reader, node);
}
