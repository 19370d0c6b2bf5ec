/** Automatic fixes: apply findings to a text. Pure. */
import type { Diagnostic } from '../../core/diagnostic.ts';

/** A changed line. */
export interface TextChange {
  /** Line number in the original text, from 1. */
  readonly line: number;
  readonly code: string;
  readonly what: string;
}

export interface FixedText {
  readonly text: string;
  readonly changes: readonly TextChange[];
}

type Finding = Pick<Diagnostic, 'code' | 'severity' | 'place'>;

const DUPLICATES: ReadonlySet<string> = new Set([
  'image/duplicate-id',
  'asset/duplicate-name',
  'packages/duplicate',
  'dockerout/duplicate',
]);
const FIXABLE: ReadonlySet<string> = new Set([
  'manifest/byte-order-mark',
  'manifest/crlf',
  'manifest/inline-comment',
  'manifest/no-final-newline',
  ...DUPLICATES,
]);

/**
 * Fixes byte order mark, CR before LF, comments after directives, duplicate lines, and a missing last line end. Lines with
 * other errors, and anything without a finding, are left unchanged.
 */
export function fixManifest(text: string, findings: readonly Finding[]): FixedText {
  const byLine = new Map<number, Finding[]>();
  for (const one of findings) {
    const same = byLine.get(one.place.line);
    if (same === undefined) byLine.set(one.place.line, [one]);
    else same.push(one);
  }
  const changes: TextChange[] = [];
  const seen = new Set<string>();
  const lines = text.split('\n').flatMap((line, index) => {
    const here = byLine.get(index + 1) ?? [];
    const fixed = isFixable(here) ? fixLine(line, here, seen) : { lines: [line], changes: [] };
    seen.add(directiveText(line));
    for (const change of fixed.changes) changes.push({ ...change, line: index + 1 });
    return fixed.lines;
  });
  const joined = lines.join('\n');
  const last = findings.find(({ code }) => code === 'manifest/no-final-newline');
  if (last === undefined || joined === '' || joined.endsWith('\n')) return { text: joined, changes };
  const ended = { line: last.place.line, code: last.code, what: 'newline added' };
  return { text: `${joined}\n`, changes: [...changes, ended] };
}

function isFixable(findings: readonly Finding[]): boolean {
  return findings.length > 0 && findings.every(({ code, severity }) => severity !== 'error' || FIXABLE.has(code));
}

/** The words of a directive, to compare lines. */
function directiveText(line: string): string {
  const text = line.replace(/^\u{FEFF}/u, '').trim();
  return text
    .replace(/(?:^|\s)#.*$/s, '')
    .split(/[ \t]+/)
    .join(' ');
}

interface FixedLine {
  readonly lines: readonly string[];
  readonly changes: readonly Omit<TextChange, 'line'>[];
}

function fixLine(original: string, findings: readonly Finding[], seen: ReadonlySet<string>): FixedLine {
  const changes: Omit<TextChange, 'line'>[] = [];
  let line = original;
  const has = (code: string): boolean => findings.some((one) => one.code === code);
  if (has('manifest/byte-order-mark')) {
    line = line.replace(/^\u{FEFF}/u, '');
    changes.push({ code: 'manifest/byte-order-mark', what: 'byte order mark removed' });
  }
  if (has('manifest/crlf')) {
    line = line.replace(/(?<!\r)\r+$/, '');
    changes.push({ code: 'manifest/crlf', what: 'CR removed' });
  }
  const comments: string[] = [];
  const comment = has('manifest/inline-comment') ? line.search(/[ \t]#/) : -1;
  if (comment !== -1) {
    const [indent = ''] = /^[ \t]*/.exec(line) ?? [];
    comments.push(`${indent}${line.slice(comment + 1)}`);
    line = line.slice(0, comment).replace(/(?<![ \t])[ \t]+$/, '');
    changes.push({ code: 'manifest/inline-comment', what: 'comment moved to a separate line' });
  }
  const duplicate = findings.find(({ code }) => DUPLICATES.has(code));
  if (duplicate === undefined || !seen.has(directiveText(line))) {
    // If two lines conflict without being equal, only their author can fix them.
    return duplicate?.severity === 'error'
      ? { lines: [original], changes: [] }
      : { lines: [...comments, line], changes };
  }
  return { lines: comments, changes: [...changes, { code: duplicate.code, what: 'duplicate line removed' }] };
}

/** Fixes a byte order mark, and CR LF in a script whose lines all end so; in one with mixed line ends the CR may be intended. */
export function fixScript(text: string, findings: readonly Finding[]): FixedText {
  const mark = findings.find(({ code }) => code === 'install/byte-order-mark');
  if (mark === undefined) return fixLineEnds(text, findings);
  const { text: fixed, changes } = fixLineEnds(text.replace(/^\u{FEFF}/u, ''), findings);
  return { text: fixed, changes: [{ line: 1, code: mark.code, what: 'byte order mark removed' }, ...changes] };
}

function fixLineEnds(text: string, findings: readonly Finding[]): FixedText {
  const crlf = findings.find(({ code }) => code === 'install/crlf');
  const ends = text.split('\r\n').length;
  const same = ends === text.split('\n').length && ends === text.split('\r').length;
  if (crlf === undefined || !same) return { text, changes: [] };
  const what = `CR removed from ${ends - 1} ${ends === 2 ? 'line' : 'lines'}`;
  return { text: text.replaceAll('\r\n', '\n'), changes: [{ line: crlf.place.line, code: crlf.code, what }] };
}
