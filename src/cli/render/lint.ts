/** Renders the lint report of generated add-ons. */
import { counted } from '../../core/counted.ts';
import { renderDiagnostic } from '../../core/diagnostic.ts';
import type { LintReport } from '../../manifest/lint.ts';

/** Errors and warnings with their lines, and a summary. */
export function renderLint({ diagnostics, errors, warnings }: LintReport): readonly string[] {
  const shown = diagnostics.filter(({ severity }) => severity !== 'info');
  const sums = `lint: ${counted(errors, 'error')}, ${counted(warnings, 'warning')}`;
  return [...shown.map((found) => renderDiagnostic(found, found.source)), sums];
}
