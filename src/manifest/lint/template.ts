/**
 * YAML with unrendered parts: shell variables (`${NAME}`, `$(command)`), Go templates (`{{ … }}`, `{{kurl … }}`). They are
 * replaced with the same number of harmless characters, so that the rest parses and offsets do not change. Pure, linear.
 */
import type { Spot } from './spot.ts';

export interface FilledTemplate {
  /** A text of the same length as the original. */
  readonly text: string;
  /** Ranges to be filled in, in order. A value that overlaps one can be anything. */
  readonly holes: readonly Spot[];
  /** Lines with only `{{ … }}` were blanked: parts may be repeated or omitted when rendered. */
  readonly control: boolean;
}

const OPENER = /\{\{|\$\{|\$\(|\$(?=[A-Za-z_])/g;
const NAME = /\$[A-Za-z_][A-Za-z0-9_]*/y;

export function fillTemplate(original: string): FilledTemplate {
  if (!/\{\{|\$[A-Za-z_{(]/.test(original)) return { text: original, holes: [], control: false };
  const { source, control } = withoutControl(original);
  const holes: Spot[] = [];
  const parts: string[] = [];
  let done = 0;
  let hopelessUntil = 0;
  let lineEnd = -1;
  for (const { index: from, 0: opener } of source.matchAll(OPENER)) {
    if (from < done || (from < hopelessUntil && opener !== '$')) continue;
    if (from > lineEnd) lineEnd = endOfLine(source, from);
    const to = opener === '$' ? endOfName(source, from) : endOfHole(source, from, opener, lineEnd);
    if (to === undefined) {
      hopelessUntil = lineEnd;
      continue;
    }
    holes.push({ from, to });
    // A bare variable is already a plain word.
    if (opener === '$') continue;
    parts.push(source.slice(done, from), 'x'.repeat(to - from));
    done = to;
  }
  parts.push(source.slice(done));
  return { text: parts.join(''), holes, control };
}

/** Blanks out lines that contain only actions. */
function withoutControl(original: string): { readonly source: string; readonly control: boolean } {
  if (!original.includes('{{')) return { source: original, control: false };
  let control = false;
  const lines = original.split('\n').map((line) => {
    if (!line.trimStart().startsWith('{{') || !isActions(line)) return line;
    control = true;
    return ' '.repeat(line.length);
  });
  return { source: lines.join('\n'), control };
}

/** Whether a line contains only actions and blanks. */
function isActions(line: string): boolean {
  let at = 0;
  while (at < line.length) {
    const open = line.indexOf('{{', at);
    if (line.slice(at, open === -1 ? line.length : open).trim() !== '') return false;
    if (open === -1) return true;
    const close = line.indexOf('}}', open);
    if (close === -1) return false;
    at = close + 2;
  }
  return true;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end === -1 ? text.length : end;
}

function endOfName(text: string, from: number): number {
  NAME.lastIndex = from;
  return from + (NAME.exec(text)?.[0].length ?? 1);
}

/** The offset after the closing brace on the same line, undefined if there is none. */
function endOfHole(text: string, from: number, opener: string, lineEnd: number): number | undefined {
  if (opener === '{{') {
    const close = text.slice(from, lineEnd).indexOf('}}');
    return close === -1 ? undefined : from + close + 2;
  }
  const [open, close] = opener === '${' ? ['{', '}'] : ['(', ')'];
  let depth = 0;
  for (let at = from + 1; at < lineEnd; at += 1) {
    if (text[at] === open) depth += 1;
    if (text[at] === close) depth -= 1;
    if (depth === 0) return at + 1;
  }
  return undefined;
}

/** Whether a range overlaps a hole. */
export function touchesHole(holes: readonly Spot[], { from, to }: Spot): boolean {
  let [low, high] = [0, holes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((holes[middle]?.to ?? 0) <= from) low = middle + 1;
    else high = middle;
  }
  const hole = holes[low];
  return hole !== undefined && hole.from < to;
}
