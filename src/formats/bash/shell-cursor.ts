/** The state of a script scan, and the steps shared by its scanners. */

/** A part of a word. */
export type WordPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string }
  /** Its value is known only at run time. */
  | { readonly kind: 'unknown' };

export interface ShellWord {
  readonly parts: readonly WordPart[];
  /** A part of it is quoted or escaped. */
  readonly quoted: boolean;
  /** It contains an unquoted file name pattern or `{a,b}`. */
  readonly pattern: boolean;
  /** Offset in the script. */
  readonly offset: number;
}

/** A use of a variable's value. */
export interface VariableRead {
  readonly name: string;
  readonly offset: number;
  /** `${A:-…}` and similar forms, which handle an unset variable. */
  readonly guarded: boolean;
}

export interface HereDocument {
  readonly delimiter: string;
  /** `<<-`: leading tabs are ignored. */
  readonly tabs: boolean;
  /** Its text is not expanded. */
  readonly quoted: boolean;
}

/** The position of a scan and its findings. */
export interface Scan {
  readonly text: string;
  at: number;
  /** Offset of the text in the whole script. */
  readonly base: number;
  depth: number;
  /** Here-documents opened on this line, whose bodies begin on the next. */
  readonly pending: HereDocument[];
  readonly reads: VariableRead[];
  readonly assigned: Set<string>;
  /** Scans commands up to the `)` that closes the substitution, or to the end. */
  readonly code: (scan: Scan) => void;
}

/** A position in a text, as both scanners of scripts have it. */
type Cursor = Pick<Scan, 'text' | 'at'>;

/** More deeply nested scripts are hostile or broken; the content is skipped. */
export const DEEPEST_SHELL = 100;

export function matchAt(pattern: RegExp, { text, at }: Cursor): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

/** Returns the match at the current position and moves past it. */
export function takeMatch(pattern: RegExp, scan: Scan): string {
  const start = scan.at;
  pattern.lastIndex = start;
  if (!pattern.test(scan.text)) return '';
  scan.at = pattern.lastIndex;
  return scan.text.slice(start, scan.at);
}

/** Moves to the next `mark`, or to the end. */
export function skipTo(cursor: Cursor, mark: string): void {
  const index = cursor.text.indexOf(mark, cursor.at);
  cursor.at = index === -1 ? cursor.text.length : index;
}

/** Skips balanced parentheses from the first one. */
export function skipParentheses(cursor: Cursor): void {
  let level = 0;
  while (cursor.at < cursor.text.length) {
    const char = cursor.text[cursor.at];
    if (char === '(') level += 1;
    if (char === ')') level -= 1;
    cursor.at += char === '\\' ? 2 : 1;
    if (level === 0) return;
  }
}

/** Does the work one level deeper; skips the rest of the text instead if that is too deep. */
export function nested(cursor: Cursor & Pick<Scan, 'depth'>, work: () => void): void {
  if (cursor.depth >= DEEPEST_SHELL) {
    cursor.at = cursor.text.length;
    return;
  }
  cursor.depth += 1;
  work();
  cursor.depth -= 1;
}
