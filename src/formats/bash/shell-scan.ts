/**
 * The commands of a bash script, without running it: their words, the variables set and read, the functions defined. Parses
 * quotes, here-documents, substitutions, `case`, `[[` and arithmetic well enough not to treat their content as commands. Invalid
 * bash gives some result and never an error: `bash -n` reports it.
 */
import { matchAt, skipTo, type Scan, type ShellWord, type VariableRead } from './shell-cursor.ts';
import { literal, scanArithmetic, scanExpansions, scanWord } from './shell-text.ts';

interface Assignment {
  readonly name: string;
  /** Without parts for an empty value; undefined for a list. */
  readonly value: ShellWord | undefined;
}

export interface ShellCommand {
  readonly words: readonly ShellWord[];
  readonly assignments: readonly Assignment[];
  /** Files that it writes. */
  readonly writes: readonly ShellWord[];
  /** The function that contains it. */
  readonly within: string | undefined;
}

export interface ShellScript {
  readonly commands: readonly ShellCommand[];
  readonly functions: readonly { readonly name: string; readonly offset: number }[];
  readonly reads: readonly VariableRead[];
  /** Names that the script assigns. */
  readonly assigned: ReadonlySet<string>;
}

interface Found {
  readonly commands: ShellCommand[];
  readonly functions: { readonly name: string; readonly offset: number }[];
  /** Functions whose braces are open; undefined for the braces of a group. */
  readonly scopes: (string | undefined)[];
  /** A function whose opening brace comes next. */
  named: string | undefined;
}

interface Draft {
  readonly words: ShellWord[];
  readonly assignments: Assignment[];
  readonly writes: ShellWord[];
}

/** Real scripts have a few thousand; further commands are ignored. */
const MAX_COMMANDS = 50_000;
const ASSIGNMENT = /([A-Za-z_]\w*)(?:\[[^\]\n]{0,200}\])?\+?=/y;
const HERE_DOCUMENT = /<<(-?)[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|(\\?)([^\s;&|<>()'"\\]+))/y;
const REDIRECTION = /(?:&>>|&>|>>|>\||<>|<&|>&|<|>)/y;
const EMPTY_PARENTHESES = /[ \t]*\([ \t]*\)/y;
/** Words after which a command may begin. */
const OPENERS: ReadonlySet<string> = new Set('{ ! then do else elif if while until time fi done coproc'.split(' '));
export const DECLARING: ReadonlySet<string> = new Set('declare export local readonly typeset'.split(' '));

export function scanShell(text: string): ShellScript {
  const result: Found = { commands: [], functions: [], scopes: [], named: undefined };
  const scan = newScan(text, 0, (inner) => {
    scanCode(inner, result);
  });
  scanCode(scan, result);
  return { commands: result.commands, functions: result.functions, reads: scan.reads, assigned: scan.assigned };
}

/** Scans a text that is expanded like a here-document. */
export function scanExpanded(text: string): ShellScript {
  const result: Found = { commands: [], functions: [], scopes: [], named: undefined };
  const scan = newScan(text, 0, (inner) => {
    scanCode(inner, result);
  });
  scanExpansions(scan);
  return { commands: result.commands, functions: result.functions, reads: scan.reads, assigned: scan.assigned };
}

function newScan(text: string, base: number, code: Scan['code']): Scan {
  return { text, at: 0, base, depth: 0, pending: [], reads: [], assigned: new Set(), code };
}

/** Scans commands up to the end of the text, or to the `)` that closes their substitution. */
function scanCode(scan: Scan, facts: Found): void {
  const { text, depth } = scan;
  const open: ('(' | 'case' | 'pattern')[] = [];
  let draft: Draft = { words: [], assignments: [], writes: [] };
  const finish = (): void => {
    const { words, assignments, writes } = draft;
    if (words.length + assignments.length + writes.length > 0) {
      facts.commands.push({ ...draft, within: facts.scopes.findLast((one) => one !== undefined) });
    }
    draft = { words: [], assignments: [], writes: [] };
  };
  while (scan.at < text.length && facts.commands.length < MAX_COMMANDS) {
    const char = text.charAt(scan.at);
    if (char === '\n') {
      finish();
      scan.at += 1;
      skipHereDocuments(scan);
    } else if (char === ' ' || /\s/.test(char)) {
      scan.at += 1;
      while (text[scan.at] === ' ') scan.at += 1;
    } else if (char === '\\' && text[scan.at + 1] === '\n') {
      scan.at += 2;
    } else if (char === '#' && /^$|[\s;&|()`]/.test(text.charAt(scan.at - 1))) {
      skipTo(scan, '\n');
    } else if (open.at(-1) === 'pattern') {
      scanPattern(scan, open);
    } else if (char === ';' || char === '|' || (char === '&' && text[scan.at + 1] !== '>')) {
      finish();
      const [mark = ''] = matchAt(/;;&|;;|;&|&&|\|\||\|&|[;&|]/y, scan) ?? [];
      scan.at += Math.max(1, mark.length);
      if (open.at(-1) === 'case' && [';;', ';&', ';;&'].includes(mark)) open[open.length - 1] = 'pattern';
    } else if (char === '(') {
      scanOpening(scan, draft, open, facts, finish);
    } else if (char === ')') {
      finish();
      if (open.at(-1) === '(') open.pop();
      else if (depth > 0 && open.length === 0) return;
      scan.at += 1;
    } else if (!scanRedirection(scan, draft)) {
      scanCommandWord(scan, draft, open, facts, finish);
    }
  }
  finish();
  if (facts.commands.length >= MAX_COMMANDS) scan.at = text.length;
}

type Open = ('(' | 'case' | 'pattern')[];

/** One pattern of `case`, up to its `)`; or `esac`. */
function scanPattern(scan: Scan, open: Open): void {
  if (/[()|;&<>]/.test(scan.text.charAt(scan.at))) {
    if (scan.text[scan.at] === ')') open[open.length - 1] = 'case';
    scan.at += 1;
    return;
  }
  const word = scanWord(scan);
  if (literal(word) === 'esac' && !word.quoted) open.pop();
}

/** `(`: of a definition, of arithmetic, of a list, or of a subshell. */
function scanOpening(scan: Scan, draft: Draft, open: Open, facts: Found, finish: () => void): void {
  const [first, second] = draft.words;
  const name = second === undefined ? literal(first) : undefined;
  const empty = matchAt(EMPTY_PARENTHESES, scan);
  if (first !== undefined && name !== undefined && empty !== undefined && draft.assignments.length === 0) {
    define(facts, name, first.offset);
    draft.words.length = 0;
    scan.at += empty[0].length;
  } else if (scan.text.startsWith('((', scan.at) && (first === undefined || name === 'for')) {
    scanArithmetic(scan);
  } else {
    finish();
    open.push('(');
    scan.at += 1;
  }
}

function define(facts: Found, name: string, offset: number): void {
  facts.functions.push({ name, offset });
  facts.named = name;
}

function scanRedirection(scan: Scan, draft: Draft): boolean {
  const { text, at } = scan;
  const char = text.charAt(at);
  if (char !== '<' && char !== '>' && char !== '&') return false;
  if (char !== '&' && text[at + 1] === '(') return false;
  if (text.startsWith('<<<', at)) {
    scan.at += 3;
    skipBlanks(scan);
    scanWord(scan);
    return true;
  }
  const here = text.startsWith('<<', at) ? matchAt(HERE_DOCUMENT, scan) : undefined;
  if (here !== undefined) {
    const [whole, dash, single, double, escaped, bare] = here;
    const quoted = single !== undefined || double !== undefined || escaped === '\\';
    scan.pending.push({ delimiter: single ?? double ?? bare ?? '', tabs: dash === '-', quoted });
    scan.at += whole.length;
    return true;
  }
  const [sign = char] = matchAt(REDIRECTION, scan) ?? [];
  scan.at += sign.length;
  skipBlanks(scan);
  const target = scanWord(scan);
  if (sign.includes('>') && sign !== '>&' && sign !== '<&') draft.writes.push(target);
  return true;
}

function skipBlanks(scan: Scan): void {
  scan.at += matchAt(/(?:[ \t]|\\\n)*/y, scan)?.[0].length ?? 0;
}

/** A word of a command: an assignment, a reserved word, or an argument. */
function scanCommandWord(scan: Scan, draft: Draft, open: Open, facts: Found, finish: () => void): void {
  const { words } = draft;
  const command = literal(words[0]);
  if (words.length === 0 || (command !== undefined && DECLARING.has(command))) {
    if (scanAssignment(scan, draft)) return;
  }
  const before = scan.at;
  const word = scanWord(scan);
  // An unexpected character must not stop the scan.
  if (scan.at === before) scan.at += 1;
  const text = word.quoted ? undefined : literal(word);
  if (text !== undefined && /^\d+$/.test(text) && /[<>]/.test(scan.text.charAt(scan.at))) return;
  if (words.length === 0 && text !== undefined && scanReserved(text, word, scan, draft, open, facts)) return;
  words.push(word);
  if (command === 'case' && words.length === 3 && text === 'in') {
    finish();
    open.push('pattern');
  }
  if (command === 'function' && words.length === 2) {
    define(facts, literal(word) ?? '', word.offset);
    scan.at += matchAt(EMPTY_PARENTHESES, scan)?.[0].length ?? 0;
    words.length = 0;
  }
}

/** Handles reserved words at the beginning of a command. */
function scanReserved(text: string, word: ShellWord, scan: Scan, draft: Draft, open: Open, facts: Found): boolean {
  if (text === '{') {
    facts.scopes.push(facts.named);
    facts.named = undefined;
  } else if (text === '}') {
    facts.scopes.pop();
  } else if (text === 'esac') {
    if (open.at(-1) === 'case') open.pop();
  } else if (text === '[[') {
    draft.words.push(word);
    scanConditions(scan, draft);
    return true;
  }
  return OPENERS.has(text) || text === '}' || text === 'esac';
}

/** `[[ … ]]` up to its end. */
function scanConditions(scan: Scan, { words }: Draft): void {
  while (scan.at < scan.text.length) {
    const before = scan.at;
    const word = scanWord(scan);
    if (scan.at === before) {
      scan.at += 1;
      continue;
    }
    words.push(word);
    if (literal(word) === ']]' && !word.quoted) return;
  }
}

function scanAssignment(scan: Scan, draft: Draft): boolean {
  const [sign, name] = matchAt(ASSIGNMENT, scan) ?? [];
  if (sign === undefined || name === undefined) return false;
  scan.at += sign.length;
  scan.assigned.add(name);
  if (scan.text[scan.at] !== '(') {
    draft.assignments.push({ name, value: scanWord(scan) });
    return true;
  }
  scan.at += 1;
  while (scan.at < scan.text.length && scan.text[scan.at] !== ')') {
    if (scan.text[scan.at] === '#' && /\s/.test(scan.text.charAt(scan.at - 1))) skipTo(scan, '\n');
    const before = scan.at;
    scanWord(scan);
    if (scan.at === before) scan.at += 1;
  }
  scan.at += 1;
  draft.assignments.push({ name, value: undefined });
  return true;
}

function skipHereDocuments(scan: Scan): void {
  for (const { delimiter, tabs, quoted } of scan.pending.splice(0)) {
    const begin = scan.at;
    let end = begin;
    while (scan.at < scan.text.length) {
      const start = scan.at;
      skipTo(scan, '\n');
      const line = scan.text.slice(start, scan.at);
      scan.at += 1;
      if ((tabs ? line.replace(/^\t+/, '') : line) === delimiter) break;
      end = scan.at;
    }
    if (!quoted)
      scanExpansions({ ...scan, text: scan.text.slice(begin, end), at: 0, base: scan.base + begin, pending: [] });
  }
}
