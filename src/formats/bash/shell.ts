/**
 * Finds the functions that a bash script defines, without running it: `name()`, `name ()`, `function name`. Parses comments,
 * quotes, here-documents, substitutions and `case` well enough not to treat their content as code. Pure, and linear in the
 * length of the text.
 */
import type { Place } from '../../core/diagnostic.ts';
import { matchAt, nested, skipParentheses, skipTo } from './shell-cursor.ts';

export interface ShellFunction {
  readonly name: string;
  /** Place of the name. */
  readonly place: Place;
}

interface HereDocument {
  readonly delimiter: string;
  /** `<<-`: leading tabs are ignored. */
  readonly tabs: boolean;
}

interface Scanner {
  readonly text: string;
  at: number;
  depth: number;
  /** Here-documents opened on this line, whose bodies begin on the next. */
  readonly pending: HereDocument[];
  readonly definitions: { readonly name: string; readonly offset: number }[];
}

const NAME = '[^\\s(){}<>;&|$`"\'\\\\=#][^\\s(){}<>;&|$`"\'\\\\=]*';
const DEFINITION = new RegExp(`(${NAME})[ \\t]*\\([ \\t]*\\)`, 'y');
const KEYWORD_DEFINITION = new RegExp(`function[ \\t]+(${NAME})`, 'y');
const WORD = /[^\s(){}<>;&|$`"'\\#][^\s(){}<>;&|$`"'\\]*/y;
const HERE_DOCUMENT = /<<(-?)[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([^\s;&|<>()'"\\]+))/y;
/** Words after which a command may begin. */
const OPENERS: ReadonlySet<string> = new Set(['then', 'do', 'else', 'elif', 'if', 'while', 'until', '!', 'time', 'in']);

/** Definitions in the order of the text, including nested and repeated ones. */
export function findFunctions(file: string, text: string): readonly ShellFunction[] {
  const scanner: Scanner = { text, at: 0, depth: 0, pending: [], definitions: [] };
  scanCode(scanner);
  let line = 1;
  let lineStart = 0;
  let lineEnd = text.indexOf('\n');
  return scanner.definitions.map(({ name, offset }) => {
    for (; lineEnd !== -1 && lineEnd < offset; lineEnd = text.indexOf('\n', lineStart)) {
      line += 1;
      lineStart = lineEnd + 1;
    }
    return { name, place: { file, line, column: offset - lineStart + 1, length: name.length } };
  });
}

/** Class of a character outside quotes: part of a word, a blank, a separator of commands, or other. */
const [WORD_CHAR, BLANK, SEPARATOR, OTHER] = [0, 1, 2, 3] as const;
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code);
  if (/[A-Za-z0-9_./:=,@%+^~!?*-]/.test(char)) return WORD_CHAR;
  if (char === ' ' || char === '\t') return BLANK;
  return /[\s;&|{}]/.test(char) ? SEPARATOR : OTHER;
});

function kindOf(code: number): number {
  return KINDS[code] ?? (/\s/.test(String.fromCharCode(code)) ? SEPARATOR : OTHER);
}

/** Scans commands up to the end of the text, or to the `)` that closes their substitution. */
function scanCode(scanner: Scanner): void {
  const { text, depth } = scanner;
  const open: ('(' | 'case')[] = [];
  let commandMayBegin = true;
  while (scanner.at < text.length) {
    const char = text.charAt(scanner.at);
    const kind = kindOf(text.charCodeAt(scanner.at));
    if (kind === WORD_CHAR) {
      commandMayBegin = scanWord(scanner, commandMayBegin, open);
    } else if (char === ')') {
      if (open.length === 0 && depth > 0) return;
      if (open.at(-1) === '(') open.pop();
      scanner.at += 1;
      commandMayBegin = true;
    } else if (char === '(') {
      commandMayBegin = scanOpening(scanner, commandMayBegin, open);
    } else if (kind === BLANK || kind === SEPARATOR) {
      if (kind === SEPARATOR) commandMayBegin = true;
      scanner.at += 1;
      if (char === '\n') skipHereDocuments(scanner);
    } else if (char === '#' && /^$|[\s;&|()]/.test(text.charAt(scanner.at - 1))) {
      skipTo(scanner, '\n');
    } else if (skipQuoted(scanner)) {
      commandMayBegin = false;
    } else {
      commandMayBegin = scanWord(scanner, commandMayBegin, open);
    }
  }
}

/** `(` of a subshell, or all of an arithmetic command. */
function scanOpening(scanner: Scanner, commandMayBegin: boolean, open: ('(' | 'case')[]): boolean {
  if (commandMayBegin && scanner.text.startsWith('((', scanner.at)) {
    skipParentheses(scanner);
    return false;
  }
  open.push('(');
  scanner.at += 1;
  return true;
}

/** Scans a word or a definition; returns whether a command may begin after it. */
function scanWord(scanner: Scanner, commandMayBegin: boolean, open: ('(' | 'case')[]): boolean {
  const keyword = commandMayBegin && scanner.text.startsWith('function', scanner.at);
  const byKeyword = keyword ? matchAt(KEYWORD_DEFINITION, scanner) : undefined;
  const definition = byKeyword ?? (commandMayBegin ? matchAt(DEFINITION, scanner) : undefined);
  const [whole = '', name] = definition ?? [];
  if (name !== undefined) {
    const before = byKeyword === undefined ? 0 : whole.length - name.length;
    if (scanner.depth === 0) scanner.definitions.push({ name, offset: scanner.at + before });
    scanner.at += whole.length;
    const [parentheses = ''] = matchAt(/[ \t]*\([ \t]*\)/y, scanner) ?? [];
    scanner.at += parentheses.length;
    return true;
  }
  const [word = ''] = matchAt(WORD, scanner) ?? [];
  if (word === '') {
    scanRedirection(scanner);
    return commandMayBegin;
  }
  scanner.at += word.length;
  if (commandMayBegin && word === 'case') open.push('case');
  if (commandMayBegin && word === 'esac' && open.at(-1) === 'case') open.pop();
  return OPENERS.has(word) && (commandMayBegin || word === 'in');
}

function scanRedirection(scanner: Scanner): void {
  const hereString = scanner.text.startsWith('<<<', scanner.at);
  const match = hereString ? undefined : matchAt(HERE_DOCUMENT, scanner);
  const [whole, dash, single, double, bare] = match ?? [];
  if (whole === undefined) {
    scanner.at += hereString ? 3 : 1;
    return;
  }
  scanner.pending.push({ delimiter: single ?? double ?? bare ?? '', tabs: dash === '-' });
  scanner.at += whole.length;
}

function skipHereDocuments(scanner: Scanner): void {
  for (const { delimiter, tabs } of scanner.pending.splice(0)) {
    while (scanner.at < scanner.text.length) {
      const start = scanner.at;
      skipTo(scanner, '\n');
      const line = scanner.text.slice(start, scanner.at);
      scanner.at += 1;
      if ((tabs ? line.replace(/^\t+/, '') : line) === delimiter) break;
    }
  }
}

/** Characters without special meaning in double quotes or in an expansion. */
const PLAIN = /[^"}\\$`']+/y;
/** Backslash, quotes, backtick, dollar. */
const BEGINS_QUOTE: ReadonlySet<number> = new Set([0x5c, 0x27, 0x22, 0x60, 0x24]);

/** Skips a quoted string, an escape, an expansion or a substitution, if one begins here. */
function skipQuoted(scanner: Scanner): boolean {
  const { text, at } = scanner;
  if (!BEGINS_QUOTE.has(text.charCodeAt(at))) return false;
  const two = text.slice(at, at + 2);
  if (text[at] === '\\') scanner.at += 2;
  else if (text[at] === "'") {
    scanner.at += 1;
    skipTo(scanner, "'");
    scanner.at += 1;
  } else if (two === "$'" || text[at] === '`') {
    scanner.at += two === "$'" ? 2 : 1;
    skipEscaped(scanner, two === "$'" ? "'" : '`');
  } else if (text[at] === '"') {
    scanner.at += 1;
    skipUntil(scanner, '"');
  } else if (two === '${') {
    scanner.at += 2;
    skipUntil(scanner, '}');
  } else if (text.startsWith('$((', at)) {
    scanner.at += 1;
    skipParentheses(scanner);
  } else if (two === '$(') {
    scanner.at += 2;
    nested(scanner, () => {
      scanCode(scanner);
    });
    scanner.at += 1;
  } else if (text[at] === '$') scanner.at += 1;
  else return false;
  return true;
}

function skipEscaped(scanner: Scanner, end: string): void {
  while (scanner.at < scanner.text.length && scanner.text[scanner.at] !== end) {
    scanner.at += scanner.text[scanner.at] === '\\' ? 2 : 1;
  }
  scanner.at += 1;
}

/** Skips to the closing quote or brace; expansions may nest, and a single quote is a plain character. */
function skipUntil(scanner: Scanner, end: '"' | '}'): void {
  nested(scanner, () => {
    while (scanner.at < scanner.text.length && scanner.text[scanner.at] !== end) {
      const [plain = ''] = matchAt(PLAIN, scanner) ?? [];
      scanner.at += plain.length;
      if (plain === '' && (scanner.text[scanner.at] === "'" || !skipQuoted(scanner))) scanner.at += 1;
    }
  });
  scanner.at += 1;
}
