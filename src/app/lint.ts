/** Lints add-on folders, and fixes findings that are safe to fix. */
import { findAddons, type FoundAddons } from '../manifest/find-addons.ts';
import { lintAddons, type LintOptions, type LintReport } from '../manifest/lint.ts';
import { fixFiles, type FixedLine } from '../manifest/lint/fix-files.ts';
import type { Context } from '../core/context.ts';
import { LINT } from '../requests/repository.ts';
import { useCase } from '../core/request.ts';

/** A fix can reveal another finding, such as a duplicate line. */
const ROUNDS = 3;

export interface Linted extends LintReport {
  /** Lines that `fix` changed. */
  readonly fixed: readonly FixedLine[];
}

/** Returns all findings; only I/O errors and cancellation throw. */
export const lint = useCase(LINT, async (request, { signal, report, env, cwd }): Promise<Linted> => {
  const { addons = [], fix = false, noShellcheck = false } = request;
  const selection = await findAddons(cwd, addons, { signal });
  const searchPath = env['PATH'];
  const options = { shellcheck: !noShellcheck, complete: addons.length === 0, searchPath, signal };
  const fixed = fix ? await fixAll(selection, options) : [];
  const result = await lintAddons(selection, options);
  if (result.shellcheck === 'absent') {
    const text = 'shellcheck is not installed: install.sh was checked by bash -n only';
    report({ type: 'note', level: 'info', text });
  }
  return { ...result, fixed };
});

async function fixAll(selection: FoundAddons, options: LintOptions): Promise<readonly FixedLine[]> {
  const fixed: FixedLine[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { diagnostics } = await lintAddons(selection, { ...options, shellcheck: false });
    const more = fixFiles(selection.folders, diagnostics, options);
    if (more.length === 0) break;
    fixed.push(...more);
  }
  return fixed;
}

/** Lints new versions, by their paths relative to `root`. */
export async function lintCreated(root: string, paths: readonly string[], context: Context): Promise<LintReport> {
  const { fixed: _none, ...made } = await lint({ addons: paths }, { ...context, cwd: root });
  return made;
}
