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

export function matchAt(pattern: RegExp, { text, at }: Pick<Scan, 'text' | 'at'>): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

/** Returns the match at the current position and moves past it. */
export function run(pattern: RegExp, scan: Scan): string {
  const start = scan.at;
  pattern.lastIndex = start;
  if (!pattern.test(scan.text)) return '';
  scan.at = pattern.lastIndex;
  return scan.text.slice(start, scan.at);
}

export function skipTo(scan: Scan, mark: string): void {
  const index = scan.text.indexOf(mark, scan.at);
  scan.at = index === -1 ? scan.text.length : index;
}
