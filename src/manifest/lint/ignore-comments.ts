/**
 * `# curlew-lint-ignore rule/id …` in a Manifest, a script or YAML ignores the rules in the next line that is neither blank
 * nor a comment, or in the same line if the comment follows other text; `# curlew-lint-ignore-file rule/id …` applies to the
 * whole file. Text after `--` is the reason. Pure.
 */
import type { Place } from '../../core/diagnostic.ts';

export interface IgnoreComment {
  readonly rule: string;
  /** Place of the rule's name. */
  readonly place: Place;
  /** The line that it applies to; undefined for the whole file. */
  readonly line: number | undefined;
}

/** Matches to the end of the line: with an optional end, the match would be quadratic in the number of `#`. */
const COMMENT = /(?:^|[ \t])#[ \t]*curlew-lint-ignore(-file)?(?=[ \t\r]|$)(.*)$/s;
const MAX_RULES = 1000;

export function findIgnores(file: string, text: string): readonly IgnoreComment[] {
  if (!text.includes('curlew-lint-ignore')) return [];
  const lines = text.split('\n');
  const comments: IgnoreComment[] = [];
  for (const [index, line] of lines.entries()) {
    const match = COMMENT.exec(line);
    if (match === null || comments.length >= MAX_RULES) continue;
    const [, wholeFile, rest = ''] = match;
    const alone = line.slice(0, match.index).trim() === '';
    const target = alone ? nextLine(lines, index) : index + 1;
    const start = line.length - rest.length;
    const named = rest.replace(/(?:^|\s)--(?:\s.*)?$/s, '');
    const words = [...named.matchAll(/[^\s,]+/g)];
    const rules = words.length > 0 ? words.slice(0, MAX_RULES - comments.length) : [{ 0: '', index: 0 }];
    for (const { 0: rule, index: at } of rules) {
      const place = { file, line: index + 1, column: start + at + 1, length: Math.max(1, rule.length) };
      comments.push({ rule, place, line: wholeFile === undefined ? target : undefined });
    }
  }
  return comments;
}

/** Counted from 1; after the end if only blanks and comments follow. */
function nextLine(lines: readonly string[], index: number): number {
  for (let at = index + 1; at < lines.length; at += 1) {
    const line = lines[at]?.trim() ?? '';
    if (line !== '' && !line.startsWith('#')) return at + 1;
  }
  return lines.length + 1;
}
