/** Results as text. Pure. */
import type { Counts, PreflightResult } from './analyze.ts';
import type { Verdict } from './spec.ts';
import { visible } from '../../core/diagnostic.ts';

export const TAGS: Readonly<Record<Verdict, string>> = { pass: '[PASS]', warn: '[WARN]', fail: '[FAIL]' };

const WIDTH = 80;
const IGNORED = ' (ignored)';
const INDENT = '       ';

/** `[PASS] Title: message`, wrapped at this width; a URI is on its own line. */
export function resultLines(
  { verdict, title, message, uri, ignored }: PreflightResult,
  { width = WIDTH }: { readonly width?: number } = {},
): readonly string[] {
  const lines = `${title}: ${message}${ignored === true ? IGNORED : ''}`
    .split('\n')
    .flatMap((line) => wrapped(visible(line), width - INDENT.length));
  const all = uri === undefined ? lines : [...lines, visible(uri)];
  return all.map((line, at) => `${at === 0 ? `${TAGS[verdict]} ` : INDENT}${line}`);
}

export function countsText({ pass, warn, fail, ignored }: Counts): string {
  if (pass + warn + fail + (ignored ?? 0) === 0) return 'no checks for this machine';
  return `${pass} passed, ${warn} with a warning, ${fail} failed${ignored === undefined ? '' : `, ${ignored} ignored`}`;
}

/** A result in one line. */
export function resultLine({ verdict, title, message, uri, ignored }: PreflightResult): string {
  const text = `${title}: ${message}${ignored === true ? IGNORED : ''}${uri === undefined ? '' : ` (${uri})`}`;
  return visible(
    `${TAGS[verdict]} ${text
      .split('\n')
      .map((line) => line.trim())
      .join(' ')}`,
  );
}

function wrapped(line: string, width: number): readonly string[] {
  const lines: string[] = [];
  let rest = line.trimEnd();
  while (rest.length > width) {
    const space = rest.lastIndexOf(' ', width);
    const at = space > 0 ? space : width;
    lines.push(rest.slice(0, at));
    rest = rest.slice(at).trimStart();
  }
  return [...lines, rest];
}

export interface SavedReport {
  readonly tool: string;
  /** Arguments of the command. */
  readonly options: readonly string[];
  readonly results: readonly PreflightResult[];
}

/** The report file in kURL's format: version, options, results. */
export function savedReport({ tool, options, results }: SavedReport): string {
  const parts = [
    ['[version]', tool],
    ['[options]', ...options],
    ['[results]', ...results.flatMap((result) => resultLines(result))],
  ];
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}
