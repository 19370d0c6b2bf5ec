/** Lints add-ons that a command has just made. */
import { counted } from '../core/counted.ts';
import { renderDiagnostic } from '../core/diagnostic.ts';
import type { Report } from '../core/events.ts';
import { findAddons } from '../manifest/find-addons.ts';
import { lintAddons, type LintReport } from '../manifest/lint.ts';

interface Options {
  readonly report: Report;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/** `paths` are those of versions, below `root`. */
export async function lintMade(
  root: string,
  paths: readonly string[],
  { report, env, signal }: Options,
): Promise<LintReport> {
  const found = await findAddons(root, paths, { signal });
  const searchPath = env['PATH'] ?? '/usr/bin:/bin';
  const result = await lintAddons(found, { shellcheck: true, complete: false, searchPath, signal });
  if (result.shellcheck === 'absent') {
    report({
      type: 'note',
      level: 'info',
      text: 'shellcheck is not installed: install.sh was checked by bash -n only',
    });
  }
  return result;
}

/** Errors and warnings with their lines, then their number. */
export function renderLint({ diagnostics, errors, warnings }: LintReport): readonly string[] {
  const shown = diagnostics.filter(({ severity }) => severity !== 'info');
  const sums = `lint: ${counted(errors, 'error')}, ${counted(warnings, 'warning')}`;
  return [...shown.map((found) => renderDiagnostic(found, found.source)), sums];
}
