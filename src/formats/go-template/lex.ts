/**
 * Go's text/template (pkg.go.dev/text/template), first step: splits a text into literals and the tokens of its actions. Pure.
 */

/** An error in a template, at an offset of its text. */
export class TemplateProblem extends Error {
  readonly offset: number;
  readonly hint: string | undefined;
  constructor(message: string, offset: number, hint?: string) {
    super(message);
    this.offset = offset;
    this.hint = hint;
  }
}

type TokenKind = 'name' | 'field' | 'variable' | 'number' | 'text' | 'sign' | 'blank';

export interface Token {
  readonly kind: TokenKind;
  /** `field` and `variable` without their prefix; `text` unquoted. */
  readonly text: string;
  readonly offset: number;
}

export type TemplatePiece =
  | { readonly type: 'literal'; readonly text: string; readonly offset: number }
  | { readonly type: 'action'; readonly tokens: readonly Token[]; readonly offset: number };

export interface Delimiters {
  readonly open: string;
  readonly close: string;
}

/** Splits a text into pieces; `{{- ` and ` -}}` remove adjacent white space, and comments are dropped. */
export function lexTemplate(text: string, { open, close }: Delimiters): readonly TemplatePiece[] {
  const pieces: TemplatePiece[] = [];
  let at = 0;
  let trimNext = false;
  for (;;) {
    const start = text.indexOf(open, at);
    const end = start === -1 ? text.length : start;
    const inside = start === -1 ? end : start + open.length;
    const trims = start !== -1 && /^-[ \t\r\n]/.test(text.slice(inside, inside + 2));
    pushLiteral(pieces, text, trimNext ? skipBlanks(text, at, end) : at, trims ? backBlanks(text, at, end) : end);
    if (start === -1) return pieces;
    const action = lexAction(text, trims ? inside + 2 : inside, start, close);
    if (action.tokens.length > 0) pieces.push({ type: 'action', tokens: action.tokens, offset: start });
    trimNext = action.trims;
    at = action.end;
  }
}

function pushLiteral(pieces: TemplatePiece[], text: string, from: number, to: number): void {
  if (from < to) pieces.push({ type: 'literal', text: text.slice(from, to), offset: from });
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && /\s/.test(text.charAt(at))) at += 1;
  return at;
}

function backBlanks(text: string, from: number, end: number): number {
  let at = end;
  while (at > from && /\s/.test(text.charAt(at - 1))) at -= 1;
  return at;
}

interface Action {
  readonly tokens: readonly Token[];
  readonly end: number;
  readonly trims: boolean;
}

const WORD: readonly (readonly [kind: TokenKind, form: RegExp])[] = [
  ['blank', /[ \t\r\n]/y],
  ['number', /[+-]?(?:0[xX][0-9a-fA-F]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![A-Za-z0-9_.])/y],
  ['field', /\.[A-Za-z_][A-Za-z0-9_]*/y],
  ['variable', /\$[A-Za-z0-9_]*/y],
  ['name', /[A-Za-z_][A-Za-z0-9_]*/y],
  ['sign', /:=|[.|()=,]/y],
];

function lexAction(text: string, from: number, start: number, close: string): Action {
  const comment = /^[ \t\r\n]*\/\*/.exec(text.slice(from, from + 64));
  if (comment !== null) return lexComment(text, from + comment[0].length, start, close);
  const tokens: Token[] = [];
  let at = from;
  for (;;) {
    if (text.startsWith(close, at)) return { tokens: trimmed(tokens), end: at + close.length, trims: false };
    const trim = /^[ \t\r\n]-/.test(text.slice(at, at + 2)) && text.startsWith(close, at + 2);
    if (trim) return { tokens: trimmed(tokens), end: at + 2 + close.length, trims: true };
    if (at >= text.length) throw new TemplateProblem('this action is not closed', start, `close it with ${close}`);
    const { token, end } = lexText(text, at) ?? lexWord(text, at);
    if (token.kind !== 'blank' || tokens.at(-1)?.kind !== 'blank') tokens.push(token);
    at = end;
  }
}

function trimmed(tokens: readonly Token[]): readonly Token[] {
  const from = tokens[0]?.kind === 'blank' ? 1 : 0;
  const to = tokens.at(-1)?.kind === 'blank' ? -1 : tokens.length;
  return tokens.slice(from, to);
}

function lexComment(text: string, from: number, start: number, close: string): Action {
  const end = text.indexOf('*/', from);
  if (end === -1) throw new TemplateProblem('this comment is not closed', start, 'close it with */');
  const rest = text.slice(end + 2, end + 4 + close.length);
  const trims = /^[ \t\r\n]-/.test(rest) && rest.slice(2).startsWith(close);
  if (!trims && !rest.startsWith(close)) {
    throw new TemplateProblem('a comment must be the whole action', start, `write ${close} directly after it`);
  }
  return { tokens: [], end: end + 2 + (trims ? 2 : 0) + close.length, trims };
}

interface Lexed {
  readonly token: Token;
  readonly end: number;
}

function lexWord(text: string, at: number): Lexed {
  for (const [kind, form] of WORD) {
    form.lastIndex = at;
    const [word] = form.exec(text) ?? [];
    if (word === undefined) continue;
    const shown = kind === 'field' || kind === 'variable' ? word.slice(1) : word;
    return { token: { kind, text: shown, offset: at }, end: at + word.length };
  }
  throw new TemplateProblem(`unexpected ${JSON.stringify(text.charAt(at))} in an action`, at);
}

/** Texts in double quotes or back quotes, and characters in single quotes (numbers in Go). */
function lexText(text: string, at: number): Lexed | undefined {
  const quote = text.charAt(at);
  if (quote !== '"' && quote !== '`' && quote !== "'") return undefined;
  const form = quote === '`' ? /`[^`]*`/y : quote === '"' ? /"(?:[^"\\\n]|\\[^\n])*"/y : /'(?:[^'\\\n]|\\[^\n])+'/y;
  form.lastIndex = at;
  const [word] = form.exec(text) ?? [];
  if (word === undefined) throw new TemplateProblem('this text has no closing quote', at);
  const raw = word.slice(1, -1);
  const value = quote === '`' ? raw : unescaped(raw, at);
  const end = at + word.length;
  if (quote !== "'") return { token: { kind: 'text', text: value, offset: at }, end };
  return { token: { kind: 'number', text: String(value.codePointAt(0) ?? 0), offset: at }, end };
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '"': '"',
  "'": "'",
};

function unescaped(raw: string, offset: number): string {
  return raw.replaceAll(
    /\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)/gs,
    (_, code: string): string => {
      const known = ESCAPES[code];
      if (known !== undefined) return known;
      const number = /^[0-7]{3}$/.test(code) ? Number.parseInt(code, 8) : Number.parseInt(code.slice(1), 16);
      if (code.length < 3 || !(number <= 0x10ffff)) throw new TemplateProblem(`unknown escape \\${code}`, offset);
      return String.fromCodePoint(number);
    },
  );
}
