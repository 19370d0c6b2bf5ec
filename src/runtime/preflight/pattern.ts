/** Patterns of specs, matched with a time limit against catastrophic backtracking. Pure. */
import { runInNewContext } from 'node:vm';
import { AnalyzerProblem } from './outcome.ts';

const LIMIT_MS = 2000;
const MAX_PATTERN = 4096;

/** Translates a Go pattern to JavaScript: `(?P<name>`, and flags at the start such as `(?i)`. */
function translated(pattern: string): { readonly source: string; readonly flags: string } {
  const [, flags = ''] = /^\(\?([ims]{1,3})\)/.exec(pattern) ?? [];
  const rest = flags === '' ? pattern : pattern.slice(flags.length + 3);
  return { source: rest.replaceAll('(?P<', '(?<'), flags: [...new Set(flags)].join('') };
}

/**
 * The named groups of the first match in each text; undefined if it does not match. Throws {@link AnalyzerProblem} if the pattern
 * is invalid or takes too long.
 */
export function matchAll(
  pattern: string,
  texts: readonly string[],
): readonly (Readonly<Record<string, string>> | undefined)[] {
  if (pattern.length > MAX_PATTERN) throw new AnalyzerProblem('the pattern is too long');
  const { source, flags } = translated(pattern);
  const code = `const form = new RegExp(source, flags);
JSON.stringify(texts.map((text) => { const match = form.exec(text); return match === null ? null : { ...match.groups }; }))`;
  try {
    const matches = JSON.parse(
      String(runInNewContext(code, { source, flags, texts: [...texts] }, { timeout: LIMIT_MS })),
    ) as readonly (Readonly<Record<string, string>> | null)[];
    return matches.map((groups) => groups ?? undefined);
  } catch (error) {
    const shown = JSON.stringify(pattern.slice(0, 80));
    // It comes from another realm, so it is not an instance of this realm's Error.
    const { code: errno, message } = error as { readonly code?: unknown; readonly message?: unknown };
    const late = errno === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
    throw new AnalyzerProblem(
      late ? `the pattern ${shown} takes too long` : `the pattern ${shown} is invalid: ${String(message)}`,
      { cause: error },
    );
  }
}
