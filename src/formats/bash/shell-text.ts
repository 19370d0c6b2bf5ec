/**
 * The words of a bash script: literal text, quotes, expansions. Passes the content of substitutions to `code`, which finds
 * their commands. Pure, linear in the length of the text, and always terminates: every step advances.
 */
import {
  DEEPEST_SHELL,
  matchAt,
  nested,
  takeMatch,
  skipParentheses,
  skipTo,
  type Scan,
  type ShellWord,
  type WordPart,
} from './shell-cursor.ts';

const NAME = /[A-Za-z_]\w*/y;
const SPECIAL = /[0-9@*#?!$-]/;
/** Ends a word if it is not quoted. */
const META = /[\s;&|()<>]/;
/** Runs of characters without special meaning, by context: most of a script. */
const PLAIN = /[\w.,/:=+%^~@}#!-]+/y;
const PLAIN_IN_QUOTES = /[^"\\$`]+/y;
const PLAIN_IN_BRACES = /[^}"\\$`]+/y;
const PLAIN_IN_ARITHMETIC = /[^()\\$`]+/y;
const PLAIN_IN_TEXT = /[^\\$`]+/y;

/** A word being read. */
class Draft {
  readonly parts: WordPart[] = [];
  quoted = false;
  pattern = false;
  add(text: string): void {
    if (text === '') return;
    const last = this.parts.at(-1);
    if (last?.kind === 'text') this.parts[this.parts.length - 1] = { kind: 'text', text: last.text + text };
    else this.parts.push({ kind: 'text', text });
  }
}

/** The word that begins here; without parts if no word begins here. */
export function scanWord(scan: Scan): ShellWord {
  const word = new Draft();
  const offset = scan.base + scan.at;
  while (scan.at < scan.text.length) {
    word.add(takeMatch(PLAIN, scan));
    const char = scan.text.charAt(scan.at);
    if ((char === '<' || char === '>') && scan.text[scan.at + 1] === '(') {
      scan.at += 1;
      scanSubstitution(scan);
      word.parts.push({ kind: 'unknown' });
    } else if (char === '(' && /[?*+@]/.test(scan.text.charAt(scan.at - 1)) && word.parts.length > 0) {
      skipParentheses(scan);
      word.pattern = true;
    } else if (char === '' || META.test(char)) {
      break;
    } else if (!scanPiece(scan, word)) {
      if (/[*?[{]/.test(char)) word.pattern = true;
      word.add(char);
      scan.at += 1;
    }
  }
  return { parts: word.parts, quoted: word.quoted, pattern: word.pattern, offset };
}

/** The text of a constant word; undefined for others. */
export function literal(word: ShellWord | undefined): string | undefined {
  if (word === undefined || word.parts.length === 0) return word?.quoted === true ? '' : undefined;
  const [only, more] = word.parts;
  return only?.kind === 'text' && more === undefined ? only.text : undefined;
}

/** A quoted string, an escape, an expansion or a substitution, if one begins here. */
function scanPiece(scan: Scan, word: Draft): boolean {
  const { text, at } = scan;
  const [char, next] = [text.charAt(at), text.charAt(at + 1)];
  if (char === '\\') {
    word.quoted = true;
    if (next !== '\n') word.add(next);
    scan.at += 2;
  } else if (char === "'") {
    word.quoted = true;
    scan.at += 1;
    const start = scan.at;
    skipTo(scan, "'");
    word.add(text.slice(start, scan.at));
    scan.at += 1;
  } else if (char === '$' && next === "'") {
    word.quoted = true;
    scan.at += 2;
    while (scan.at < text.length && text[scan.at] !== "'") scan.at += text[scan.at] === '\\' ? 2 : 1;
    scan.at += 1;
    word.parts.push({ kind: 'unknown' });
  } else if (char === '"' || (char === '$' && next === '"')) {
    scan.at += char === '"' ? 1 : 2;
    word.quoted = true;
    scanDoubleQuoted(scan, word);
  } else {
    return scanExpansion(scan, word);
  }
  return true;
}

function scanDoubleQuoted(scan: Scan, word: Draft): void {
  while (scan.at < scan.text.length && scan.text[scan.at] !== '"') {
    word.add(takeMatch(PLAIN_IN_QUOTES, scan));
    const char = scan.text.charAt(scan.at);
    if (char === '"') break;
    if (char === '\\') {
      const next = scan.text.charAt(scan.at + 1);
      if (next !== '\n') word.add(/["$`\\]/.test(next) ? next : `\\${next}`);
      scan.at += 2;
    } else if (!scanExpansion(scan, word)) {
      word.add(char);
      scan.at += 1;
    }
  }
  scan.at += 1;
}

/** Scans a text up to its end for expansions only, such as a here-document. */
export function scanExpansions(scan: Scan): void {
  const word = new Draft();
  while (scan.at < scan.text.length) {
    takeMatch(PLAIN_IN_TEXT, scan);
    if (scan.text[scan.at] === '\\') scan.at += 2;
    else if (!scanExpansion(scan, word)) scan.at += 1;
  }
}

function scanExpansion(scan: Scan, word: Draft): boolean {
  const { text, at } = scan;
  if (text[at] === '`') {
    scanBackticks(scan);
    word.parts.push({ kind: 'unknown' });
    return true;
  }
  if (text[at] !== '$') return false;
  if (text.startsWith('$((', at)) {
    scan.at += 1;
    scanArithmetic(scan);
    word.parts.push({ kind: 'unknown' });
  } else if (text[at + 1] === '(') {
    scan.at += 1;
    scanSubstitution(scan);
    word.parts.push({ kind: 'unknown' });
  } else if (text[at + 1] === '{') {
    scanBraces(scan, word);
  } else {
    scan.at += 1;
    const [name] = matchAt(NAME, scan) ?? [];
    if (name !== undefined) {
      scan.reads.push({ name, offset: scan.base + at, guarded: false });
      scan.at += name.length;
      word.parts.push({ kind: 'variable', name });
    } else if (SPECIAL.test(text.charAt(scan.at))) {
      scan.at += 1;
      word.parts.push({ kind: 'unknown' });
    } else {
      word.add('$');
    }
  }
  return true;
}

/** Scans `${…}`. */
function scanBraces(scan: Scan, word: Draft): void {
  const offset = scan.base + scan.at;
  scan.at += 2;
  const [marks = ''] = matchAt(/[!#]?(?=\w)/y, scan) ?? [];
  scan.at += marks.length;
  const [name] = matchAt(NAME, scan) ?? [];
  if (name !== undefined) {
    scan.at += name.length;
    const [index = ''] = matchAt(/\[[^\]\n]{0,200}\]/y, scan) ?? [];
    scan.at += index.length;
    const guarded = matchAt(/:?[-=+?]/y, scan);
    scan.reads.push({ name, offset, guarded: guarded !== undefined });
    if (guarded?.[0].endsWith('=') === true) scan.assigned.add(name);
    const plain = scan.text[scan.at] === '}' && marks === '' && index === '';
    word.parts.push(plain ? { kind: 'variable', name } : { kind: 'unknown' });
  } else {
    word.parts.push({ kind: 'unknown' });
  }
  nested(scan, () => {
    const inner = new Draft();
    while (scan.at < scan.text.length && scan.text[scan.at] !== '}') {
      takeMatch(PLAIN_IN_BRACES, scan);
      const char = scan.text[scan.at];
      if (char === '}') break;
      if (char === '\\') scan.at += 2;
      else if (char === '"') {
        scan.at += 1;
        scanDoubleQuoted(scan, inner);
      } else if (!scanExpansion(scan, inner)) scan.at += 1;
    }
  });
  scan.at += 1;
}

/** Scans the `(…)` of a substitution and its commands. */
function scanSubstitution(scan: Scan): void {
  scan.at += 1;
  nested(scan, () => {
    scan.code(scan);
  });
  scan.at += 1;
}

function scanBackticks(scan: Scan): void {
  const start = scan.at + 1;
  scan.at = start;
  while (scan.at < scan.text.length && scan.text[scan.at] !== '`') scan.at += scan.text[scan.at] === '\\' ? 2 : 1;
  const inside = scan.text.slice(start, scan.at).replaceAll(/\\([`$\\])/g, '$1');
  if (scan.depth < DEEPEST_SHELL) {
    scan.code({ ...scan, text: inside, at: 0, base: scan.base + start, depth: scan.depth + 1, pending: [] });
  }
  scan.at += 1;
}

/** `((…))`: scans balanced parentheses and the expansions in them. */
export function scanArithmetic(scan: Scan): void {
  nested(scan, () => {
    const word = new Draft();
    let level = 0;
    while (scan.at < scan.text.length) {
      takeMatch(PLAIN_IN_ARITHMETIC, scan);
      const char = scan.text[scan.at];
      if (char === '(') level += 1;
      if (char === ')') level -= 1;
      if (char === '\\') scan.at += 2;
      else if (!scanExpansion(scan, word)) scan.at += 1;
      if (level === 0) return;
    }
  });
}
