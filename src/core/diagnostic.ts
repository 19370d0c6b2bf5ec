/** Findings in files that people write: place, problem and fix, as text and as GitHub annotations. */
import { REDACTED } from './secret.ts';

/**
 * A position in a text file. Line, column and length count from 1, in UTF-16 code units. Line 0: a command-line argument,
 * which `file` contains as typed.
 */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly length: number;
}

/** The place of a command-line argument. */
export function argumentPlace(argument: string): Place {
  return { file: argument, line: 0, column: 0, length: 0 };
}

/** A word of a line-based file, with its position. */
export interface Word {
  readonly text: string;
  readonly place: Place;
}

export interface Diagnostic {
  /** `manifest/unknown-directive`: stable, so that a rule can be disabled by it. */
  readonly code: string;
  /** `info` is a remark: it never fails a command, and is shown only on request. */
  readonly severity: 'error' | 'warning' | 'info';
  readonly message: string;
  readonly place: Place;
  readonly hint?: string | undefined;
}

export function hasErrors(diagnostics: readonly Pick<Diagnostic, 'severity'>[]): boolean {
  return diagnostics.some(({ severity }) => severity === 'error');
}

/** Display order of findings: by file, then by place. */
export function compareDiagnostics(a: Diagnostic, b: Diagnostic): number {
  if (a.place.file !== b.place.file) return a.place.file < b.place.file ? -1 : 1;
  return a.place.line - b.place.line || a.place.column - b.place.column;
}

/** Merges findings in display order, without additional findings at a place that already has an error. */
export function withFurther(diagnostics: readonly Diagnostic[], further: readonly Diagnostic[]): readonly Diagnostic[] {
  const spot = ({ place }: Diagnostic): string => `${place.file}:${place.line}:${place.column}`;
  const taken = new Set(diagnostics.filter(({ severity }) => severity === 'error').map(spot));
  return [...diagnostics, ...further.filter((one) => !taken.has(spot(one)))].toSorted(compareDiagnostics);
}

/** Makes control characters visible, so that a hostile file cannot drive the reader's terminal. */
export function visible(text: string): string {
  return text.replaceAll(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (char) =>
    char === '\r' ? '␍' : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const FRAME_WIDTH = 160;

/**
 * One finding for people: a headline, the line with a caret under the relevant words, the hint.
 * `sourceLine` is the text of the line, without its line end; undefined omits the line. The caret of what is hidden in it is under what hides it.
 */
export function renderDiagnostic(diagnostic: Diagnostic, sourceLine: string | undefined): string {
  const { place, severity, code, message, hint } = diagnostic;
  const hidden = sourceLine?.indexOf(REDACTED) ?? -1;
  const isHidden = hidden !== -1 && place.column > hidden;
  const { column, length } = isHidden ? { column: hidden + 1, length: REDACTED.length } : place;
  const spot = place.line === 0 ? '' : `:${place.line}:${place.column}`;
  const lines = [`${visible(place.file)}${spot} ${severity} ${code}: ${visible(message)}`];
  if (sourceLine !== undefined && sourceLine.length > 0) {
    const start = Math.max(0, column - 1 - FRAME_WIDTH / 2);
    const shown = sourceLine.slice(start, start + FRAME_WIDTH);
    const before = visible(shown.slice(0, column - 1 - start)).replaceAll(/[^\t]/g, ' ');
    const marked = visible(shown.slice(column - 1 - start, column - 1 - start + length));
    lines.push(`  ${visible(shown)}`, `  ${before}${'^'.repeat(Math.max(1, marked.length))}`);
  }
  if (hint !== undefined) lines.push(`  hint: ${visible(hint)}`);
  return lines.join('\n');
}

/**
 * One finding as a workflow command, which GitHub shows next to the line.
 * Escapes: docs.github.com "Workflow commands", message and property rules.
 */
export function renderAnnotation({ severity, place, code, message, hint }: Diagnostic): string {
  const text = (value: string): string => value.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
  const property = (value: string): string => text(value).replaceAll(':', '%3A').replaceAll(',', '%2C');
  const end = place.column + Math.max(0, place.length - 1);
  const where = `file=${property(place.file)},line=${place.line},col=${place.column},endColumn=${end}`;
  const level = severity === 'info' ? 'notice' : severity;
  return `::${level} ${where},title=${property(code)}::${text(hint === undefined ? message : `${message} (${hint})`)}`;
}
