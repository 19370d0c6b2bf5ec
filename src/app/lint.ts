/** Judges add-on folders, and puts right in them what is safe. */
import { findAddons, type FoundAddons } from '../manifest/find-addons.ts';
import { lintAddons, type LintOptions, type LintReport } from '../manifest/lint.ts';
import { fixFiles, type FixedLine } from '../manifest/lint/fix-files.ts';
import type { Context } from './context.ts';

/** Fixing one thing can bring another to light, such as a line that turns out to stand there twice. */
const ROUNDS = 3;

export interface LintRequest {
  /** Paths, names, `name/version` or `name-version`; all below ./addons and ./packages when there are none. */
  readonly addons?: readonly string[] | undefined;
  /** Line ends, comments behind directives, and lines that stand there twice are put right. */
  readonly fix?: boolean | undefined;
  /** shellcheck is not run, even if it is installed. */
  readonly noShellcheck?: boolean | undefined;
}

interface Linted extends LintReport {
  /** Lines that `fix` changed. */
  readonly fixed: readonly FixedLine[];
}

/** Every finding of all of them; only I/O errors and cancellation throw. */
export async function lint(request: LintRequest, { signal, report, env, cwd }: Context): Promise<Linted> {
  const { addons = [], fix = false, noShellcheck = false } = request;
  const found = await findAddons(cwd, addons, { signal });
  const searchPath = env['PATH'] ?? '/usr/bin:/bin';
  const options = { shellcheck: !noShellcheck, complete: addons.length === 0, searchPath, signal };
  const fixed = fix ? await fixAll(found, options) : [];
  const result = await lintAddons(found, options);
  if (result.shellcheck === 'absent') {
    const text = 'shellcheck is not installed: install.sh was checked by bash -n only';
    report({ type: 'note', level: 'info', text });
  }
  return { ...result, fixed };
}

async function fixAll(found: FoundAddons, options: LintOptions): Promise<readonly FixedLine[]> {
  const fixed: FixedLine[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { diagnostics } = await lintAddons(found, { ...options, shellcheck: false });
    const more = fixFiles(found.folders, diagnostics, options);
    if (more.length === 0) break;
    fixed.push(...more);
  }
  return fixed;
}

/** Of versions that were just made, by their paths below `root`. */
export async function lintMade(root: string, paths: readonly string[], context: Context): Promise<LintReport> {
  const { fixed: _none, ...made } = await lint({ addons: paths }, { ...context, cwd: root });
  return made;
}
