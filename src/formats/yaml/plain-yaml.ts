/**
 * Recognizes documents that are certainly well-formed without the parser: block maps and lists, values on one line, block
 * scalars. Most documents of add-ons use no more, and the parser takes a second for two megabytes. Pure.
 */
import { Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';

/** Deeper documents are not plain: the reader that uses the parser refuses them. */
const DEEPEST = 200;

interface Level {
  readonly indent: number;
  readonly list: boolean;
  readonly keys: Set<string>;
  readonly node: YAMLMap | YAMLSeq | undefined;
}

interface Reader {
  readonly levels: Level[];
  /** Whether to build nodes. */
  readonly build: boolean;
  /** A line may contain a line terminator of JavaScript, so keys are matched by the regular expression. */
  readonly odd: boolean;
  root: YAMLMap | YAMLSeq | undefined;
  /** The parent of the next node. */
  slot: Pair | YAMLSeq | undefined;
  /** Something deeper may follow: a key without a value, or a dash. */
  open: boolean;
  /** Column of the node whose block scalar continues. */
  textOf: number | undefined;
  /** Column of its text, once known. */
  textAt: number | undefined;
  /** Lines of its text. */
  textLines: number;
  /** Column of the node whose quoted text continues, and the pattern of its end. */
  quoteOf: number | undefined;
  quoteEnd: RegExp;
  /** A value that a rule may look for has no node. */
  incomplete: boolean;
}

interface Line {
  /** Without trailing blanks. */
  readonly text: string;
  /** Offset of its first character in the document. */
  readonly offset: number;
}

const KEY = /^("[^"\\]*"|'[^']*'|[A-Za-z0-9_$./~][A-Za-z0-9_$./~-]*):(?: +([^ ].*))?$/;
const COMMENT = /(?: +#.*)?$/.source;
const QUOTED = new RegExp(`^("[^"\\\\]*"|'(?:[^']|'')*')${COMMENT}`);
const EMPTY = new RegExp(`^(?:\\{ *\\}|\\[ *\\])${COMMENT}`);
const ITEM = /(?:"[^"\\]*"|'[^']*'|[A-Za-z0-9_./][A-Za-z0-9_./-]*)/.source;
const FLAT_LIST = new RegExp(`^\\[ *${ITEM}(?: *, *${ITEM})* *\\]${COMMENT}`);
const PAIR = `(?:"[^"\\\\]*"|'[^']*'|[A-Za-z0-9_./][A-Za-z0-9_./-]*): +(?:${ITEM}|\\[ *${ITEM}(?: *, *${ITEM})* *\\])`;
const FLAT_MAP = new RegExp(`^\\{ *${PAIR}(?: *, *${PAIR})* *\\}${COMMENT}`);
const KEY_IN_BRACES = /(?:^\{|,) *("[^"\\]*"|'[^']*'|[A-Za-z0-9_./][A-Za-z0-9_./-]*):/g;
/** Quoted text that does not end on its first line, and its end on a later line. */
const OPEN_QUOTE = /^(?:"[^"\\]*|'(?:[^']|'')*)$/;
const OPEN_SINGLE = /^(?:[^']|'')*$/;
const DOUBLE_END = new RegExp(`^[^"\\\\]*"${COMMENT}`);
const SINGLE_END = new RegExp(`^(?:[^']|'')*'(?!')${COMMENT}`);
const BLOCK_SCALAR = /^[|>][+-]?$/;
/** Scalars without quotes that are not text: null, true and false, numbers. */
const NO_TEXT =
  /^(?:~|null|Null|NULL|true|True|TRUE|false|False|FALSE|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;

/** Bits for characters that may be in a key, and for characters that may begin a scalar without quotes. */
const IN_KEY = 1;
const BEGINS = 2;
const CHARS = new Uint8Array(128);
for (let code = 0; code < CHARS.length; code += 1) {
  const char = String.fromCharCode(code);
  if (/[A-Za-z0-9_$./~-]/.test(char)) CHARS[code] = IN_KEY;
  if (/[A-Za-z0-9_$./~+=(<^;\\]/.test(char)) CHARS[code] = (CHARS[code] ?? 0) | BEGINS;
}
const [SPACE, HASH, DASH, COLON] = [0x20, 0x23, 0x2d, 0x3a] as const;
const [DOUBLE_QUOTE, SINGLE_QUOTE, BRACKET, BRACE, PIPE, GREATER] = [0x22, 0x27, 0x5b, 0x7b, 0x7c, 0x3e] as const;

/** A document that is certainly well-formed. */
export interface PlainYaml {
  /**
   * Undefined if it was not requested, and for documents without a map or a list, or with a block scalar of one line, a quoted
   * text of several lines, or a map in braces.
   */
  readonly root: YAMLMap | YAMLSeq | undefined;
}

/**
 * Undefined unless a document certainly has neither errors nor duplicate keys; undefined itself proves nothing. Until then,
 * `each` receives every line that is neither a comment nor in a block scalar. `build` creates nodes with ranges: maps, lists,
 * keys, and texts on one line. Other values are null.
 */
export function readPlain(
  document: string,
  { build, each }: { readonly build: boolean; readonly each?: ((line: string) => void) | undefined },
): PlainYaml | undefined {
  if (document.includes('\r')) return undefined;
  const reader: Reader = {
    levels: [],
    build,
    odd: document.includes('\u2028') || document.includes('\u2029'),
    root: undefined,
    slot: undefined,
    open: true,
    textOf: undefined,
    textAt: undefined,
    textLines: 0,
    quoteOf: undefined,
    quoteEnd: SINGLE_END,
    incomplete: false,
  };
  for (let from = 0; from < document.length;) {
    const newline = document.indexOf('\n', from);
    const to = newline === -1 ? document.length : newline;
    if (!readRaw(reader, document, from, to, each)) return undefined;
    from = to + 1;
  }
  endText(reader);
  return reader.quoteOf === undefined ? { root: reader.incomplete ? undefined : reader.root } : undefined;
}

function readRaw(
  reader: Reader,
  document: string,
  from: number,
  to: number,
  each: ((line: string) => void) | undefined,
): boolean {
  let start = from;
  while (start < to && document.charCodeAt(start) === SPACE) start += 1;
  if (reader.textOf !== undefined) {
    const inside = readText(reader, reader.textOf, start - from, start === to);
    if (inside === 'bad') return false;
    if (inside === 'text') return true;
    endText(reader);
  }
  if (reader.quoteOf !== undefined) return start === to || readQuoted(reader, document.slice(start, to), start - from);
  if (start === to || document.charCodeAt(start) === HASH) return true;
  const text = document.slice(from, to).trimEnd();
  if (from === 0 && /^---(?: +#.*)?$/.test(text)) return true;
  if (text.includes('\t')) return false;
  each?.(text);
  return readLine(reader, { text, offset: from }, start - from);
}

function readText(reader: Reader, column: number, indent: number, blank: boolean): 'text' | 'end' | 'bad' {
  if (blank) {
    // Leading blank lines must not be indented deeper than the first text, whose indentation is not known yet.
    return reader.textAt === undefined && indent > 0 ? 'bad' : 'text';
  }
  if (indent <= column) return 'end';
  reader.textAt ??= indent;
  reader.textLines += 1;
  return indent >= reader.textAt ? 'text' : 'bad';
}

function endText(reader: Reader): void {
  reader.textOf = undefined;
  if (reader.textLines === 1) reader.incomplete = true;
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
  const end = reader.odd ? undefined : endOfKey(rest);
  const [, key, value] = end === undefined ? (KEY.exec(rest) ?? []) : keyAndValue(rest, end);
  if (key === undefined) return readAlone(reader, { text: rest, offset: offset + column }, column, item);
  if (!place(reader, column, false)) return false;
  const name = end === undefined ? key.replace(/^["'](.*)["']$/, '$1') : key;
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

/** End of a key without quotes, -1 if the line certainly has no key; undefined if the regular expression must decide. */
function endOfKey(text: string): number | undefined {
  const first = text.charCodeAt(0);
  if (first === DOUBLE_QUOTE || first === SINGLE_QUOTE) return undefined;
  if (first === DASH) return -1;
  let at = 0;
  while (at < text.length && ((CHARS[text.charCodeAt(at)] ?? 0) & IN_KEY) !== 0) at += 1;
  const ends = at > 0 && text.charCodeAt(at) === COLON;
  return ends && (at + 1 === text.length || text.charCodeAt(at + 1) === SPACE) ? at : -1;
}

function keyAndValue(text: string, end: number): readonly [string, string?, string?] {
  if (end === -1) return [text];
  let from = end + 1;
  while (text.charCodeAt(from) === SPACE) from += 1;
  const key = text.slice(0, end);
  return from < text.length ? [text, key, text.slice(from)] : [text, key];
}

/** A value after a dash, or on a separate line under its key or dash, that is not a key. */
function readAlone(reader: Reader, line: Line, column: number, item: boolean): boolean {
  const above = reader.levels.at(-1);
  // A block scalar belongs to the dash, which is at least two columns before.
  if (item) return readValue(reader, line, above?.indent ?? 0);
  const fits = reader.open && above !== undefined && column > above.indent;
  return fits && !BLOCK_SCALAR.test(line.text) && readValue(reader, line, column);
}

/** A continuation line of quoted text, which must be indented deeper than its node. */
function readQuoted(reader: Reader, raw: string, indent: number): boolean {
  const text = raw.trimEnd();
  if (indent <= (reader.quoteOf ?? 0) || text.includes('\t')) return false;
  if (reader.quoteEnd.test(text)) {
    reader.quoteOf = undefined;
    return true;
  }
  return reader.quoteEnd === DOUBLE_END ? !/["\\]/.test(text) : OPEN_SINGLE.test(text);
}

/** Returns to the level of a column, or opens one. */
function place(reader: Reader, column: number, list: boolean): boolean {
  const { levels } = reader;
  const ready = reader.open;
  reader.open = false;
  let top = levels.at(-1);
  let stayed = true;
  // A key ends the unindented list under the previous key.
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
  // A list may follow its key without indentation.
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
  const first = text.charCodeAt(0);
  if (first === PIPE || first === GREATER) {
    if (!BLOCK_SCALAR.test(text)) return false;
    reader.textOf = column;
    reader.textAt = undefined;
    reader.textLines = 0;
    return true;
  }
  if (first === DOUBLE_QUOTE || first === SINGLE_QUOTE) {
    const [, quoted] = QUOTED.exec(text) ?? [];
    if (quoted === undefined) {
      if (!OPEN_QUOTE.test(text)) return false;
      reader.quoteOf = column;
      reader.quoteEnd = first === DOUBLE_QUOTE ? DOUBLE_END : SINGLE_END;
      reader.incomplete = true;
      return true;
    }
    if (!reader.build) return true;
    const inner = quoted.slice(1, -1);
    putText(reader, first === SINGLE_QUOTE ? inner.replaceAll("''", "'") : inner, { text: quoted, offset });
    return true;
  }
  if (first === BRACKET) return EMPTY.test(text) || FLAT_LIST.test(text);
  if (first === BRACE) return EMPTY.test(text) || readFlatMap(reader, text);
  const comment = text.indexOf(' #');
  const bare = comment === -1 ? text : text.slice(0, comment).trimEnd();
  if (!beginsBare(bare, first) || bare.includes(': ') || bare.endsWith(':')) return false;
  if (reader.build && !NO_TEXT.test(bare)) putText(reader, bare, { text: bare, offset });
  return true;
}

function readFlatMap(reader: Reader, text: string): boolean {
  reader.incomplete = true;
  if (!FLAT_MAP.test(text)) return false;
  const keys = [...text.matchAll(KEY_IN_BRACES)].map(([, key = '']) => key.replace(/^["'](.*)["']$/, '$1'));
  return new Set(keys).size === keys.length;
}

/** Whether a scalar without quotes may begin with this text. */
function beginsBare(text: string, first: number): boolean {
  if (first === COLON || first === DASH) return text.length > 1 && text.charCodeAt(1) !== SPACE;
  return ((CHARS[first] ?? 0) & BEGINS) !== 0;
}

function putText(reader: Reader, value: string, { text, offset }: Line): void {
  if (!reader.build) return;
  const node = new Scalar(value);
  node.range = [offset, offset + text.length, offset + text.length];
  put(reader, node);
}
