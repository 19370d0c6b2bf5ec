/** What reading a script needs to know, and the steps that all of its readers make. */

/** A piece of a word. */
export type WordPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'variable'; readonly name: string }
  /** What nobody can know without running it. */
  | { readonly kind: 'unknown' };

export interface ShellWord {
  readonly parts: readonly WordPart[];
  /** Something of it stands in quotes or behind a backslash. */
  readonly quoted: boolean;
  /** A pattern of file names, or `{a,b}`, stands in it, unquoted. */
  readonly pattern: boolean;
  /** In the text of the script. */
  readonly offset: number;
}

/** A variable that is asked for its value. */
export interface VariableRead {
  readonly name: string;
  readonly offset: number;
  /** `${A:-…}` and its like: that it may be unset was thought of. */
  readonly guarded: boolean;
}

export interface HereDocument {
  readonly delimiter: string;
  /** `<<-`: leading tabs do not count. */
  readonly tabs: boolean;
  /** No expansions in it. */
  readonly quoted: boolean;
}

/** Where a scan is, and what it has found. */
export interface Scan {
  readonly text: string;
  at: number;
  /** Of the text's begin in the whole script. */
  readonly base: number;
  depth: number;
  /** Opened on this line, their bodies begin on the next. */
  readonly pending: HereDocument[];
  readonly reads: VariableRead[];
  readonly assigned: Set<string>;
  /** Reads commands up to the `)` that closes the substitution, or to the end. */
  readonly code: (scan: Scan) => void;
}

export function matchAt(pattern: RegExp, { text, at }: Pick<Scan, 'text' | 'at'>): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

/** What matches here, and past it. */
export function run(pattern: RegExp, scan: Scan): string {
  const start = scan.at;
  pattern.lastIndex = start;
  if (!pattern.test(scan.text)) return '';
  scan.at = pattern.lastIndex;
  return scan.text.slice(start, scan.at);
}

export function skipTo(scan: Scan, mark: string): void {
  const found = scan.text.indexOf(mark, scan.at);
  scan.at = found === -1 ? scan.text.length : found;
}
