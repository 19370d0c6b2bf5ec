/** Patterns of specs, tried for a limited time only: some take longer than anybody lives. Pure. */
import { runInNewContext } from 'node:vm';
import { JudgeProblem } from './analyzer.ts';

const LIMIT_MS = 2000;
const MOST_PATTERN = 4096;

/** The pattern as JavaScript writes it: Go's `(?P<name>`, and flags at the start such as `(?i)`. */
function translated(pattern: string): { readonly source: string; readonly flags: string } {
  const [, flags = ''] = /^\(\?([ims]{1,3})\)/.exec(pattern) ?? [];
  const rest = flags === '' ? pattern : pattern.slice(flags.length + 3);
  return { source: rest.replaceAll('(?P<', '(?<'), flags: [...new Set(flags)].join('') };
}

/**
 * The first match for each text: undefined for none, else the named groups. A pattern that is none, or takes too long,
 * is a {@link JudgeProblem}.
 */
export function matchAll(
  pattern: string,
  texts: readonly string[],
): readonly (Readonly<Record<string, string>> | undefined)[] {
  if (pattern.length > MOST_PATTERN) throw new JudgeProblem('the pattern is too long');
  const { source, flags } = translated(pattern);
  const code = `const form = new RegExp(source, flags);
JSON.stringify(texts.map((text) => { const found = form.exec(text); return found === null ? null : { ...found.groups }; }))`;
  try {
    const found = JSON.parse(
      String(runInNewContext(code, { source, flags, texts: [...texts] }, { timeout: LIMIT_MS })),
    ) as readonly (Readonly<Record<string, string>> | null)[];
    return found.map((groups) => groups ?? undefined);
  } catch (error) {
    const shown = JSON.stringify(pattern.slice(0, 80));
    // It comes from another realm: no instance of this one's Error.
    const { code: errno, message } = error as { readonly code?: unknown; readonly message?: unknown };
    const late = errno === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
    throw new JudgeProblem(
      late ? `the pattern ${shown} takes too long` : `the pattern ${shown} is none: ${String(message)}`,
      { cause: error },
    );
  }
}
