/** `curlew lint`: judges add-on folders; every finding of all of them, then one line of sums. */
import { counted } from '../../core/counted.ts';
import { renderAnnotation, renderDiagnostic, visible } from '../../core/diagnostic.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { findAddons, type FoundAddons } from '../../manifest/find-addons.ts';
import { lintAddons, type LintOptions, type LintReport } from '../../manifest/lint.ts';
import { fixFiles, type FixedLine } from '../../manifest/lint/fix-files.ts';
import type { Command } from '../command.ts';
import { paintDiagnostic } from '../render/paint.ts';

const FORMATS = ['text', 'github'];

/** Fixing one thing can bring another to light, such as a line that turns out to stand there twice. */
const ROUNDS = 3;

interface Linted extends LintReport {
  /** Lines that `--fix` changed. */
  readonly fixed: readonly FixedLine[];
}

async function fix(found: FoundAddons, options: LintOptions): Promise<readonly FixedLine[]> {
  const fixed: FixedLine[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { diagnostics } = await lintAddons(found, { ...options, shellcheck: false });
    const more = fixFiles(found.folders, diagnostics, options);
    if (more.length === 0) break;
    fixed.push(...more);
  }
  return fixed;
}

export const lint: Command<Linted> = {
  name: 'lint',
  summary: 'Check Manifests, install.sh and YAML of add-ons',
  operands: '[path…]',
  details:
    'Without a path: every add-on below ./addons and ./packages. A path may also be a name, name/version or\n' +
    'name-version. Ends with status 10 when there is an error; warnings alone do not count. Rules are set in\n' +
    '.curlew-lint.json, or ignored by a comment above a line: # curlew-lint-ignore rule/id',
  options: {
    fix: { type: 'boolean', help: 'put right what is safe: line ends, comments behind directives, lines twice' },
    format: { type: 'string', value: 'FORMAT', help: 'text, or github for annotations of a workflow run' },
    info: { type: 'boolean', help: 'also show what is only remarked (always part of --json)' },
    'no-shellcheck': { type: 'boolean', help: 'do not run shellcheck, even if it is installed' },
  },
  examples: ['curlew lint', 'curlew lint ekco --fix', 'curlew lint --format github'],
  async run(args, { signal, report, env, cwd }) {
    const format = args.text('format') ?? 'text';
    if (!FORMATS.includes(format)) {
      throw new CurlewError('USAGE', `lint: unknown format "${format}"`, { hint: `use one of ${FORMATS.join(', ')}` });
    }
    const found = await findAddons(cwd, args.positionals, { signal });
    const shellcheck = !args.flag('no-shellcheck');
    const searchPath = env['PATH'] ?? '/usr/bin:/bin';
    const options = { shellcheck, complete: args.positionals.length === 0, searchPath, signal };
    const fixed = args.flag('fix') ? await fix(found, options) : [];
    const result = await lintAddons(found, options);
    if (result.shellcheck === 'absent') {
      report({
        type: 'note',
        level: 'info',
        text: 'shellcheck is not installed: install.sh was checked by bash -n only',
      });
    }
    return { ...result, fixed };
  },
  render({ addons, diagnostics, errors, warnings, infos, fixed }, args, paint) {
    const github = args.text('format') === 'github';
    const lines = fixed.map(({ file, line, code, what }) => `${visible(file)}:${line} fixed ${code}: ${what}`);
    for (const found of diagnostics) {
      if (found.severity === 'info' && !args.flag('info')) continue;
      const text = (): string => paintDiagnostic(renderDiagnostic(found, found.source), found.severity, paint);
      lines.push(github ? renderAnnotation(found) : text());
    }
    const sums = [counted(addons.length, 'add-on'), counted(errors, 'error'), counted(warnings, 'warning')];
    if (infos > 0) sums.push(`${counted(infos, 'remark')}${args.flag('info') ? '' : ' (--info shows them)'}`);
    lines.push(sums.join(', '));
    return lines.join('\n');
  },
  exitCode: ({ errors }) => (errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0),
};
