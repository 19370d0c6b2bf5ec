/** `curlew lint`: judges add-on folders; every finding of all of them, then one line of sums. */
import { renderAnnotation, renderDiagnostic } from '../../core/diagnostic.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { findAddons } from '../../manifest/find-addons.ts';
import { lintAddons, type LintReport } from '../../manifest/lint.ts';
import type { Command } from '../command.ts';

const FORMATS = ['text', 'github'];

function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? '' : 's'}`;
}

export const lint: Command<LintReport> = {
  name: 'lint',
  summary: 'Check Manifests, install.sh and YAML of add-ons',
  operands: '[path…]',
  details:
    'Without a path: every add-on below ./addons and ./packages. A path may also be a name, name/version or\n' +
    'name-version. Ends with status 10 when there is an error; warnings alone do not count. Rules are set in\n' +
    '.curlew-lint.json, or ignored by a comment above a line: # curlew-lint-ignore rule/id',
  options: {
    format: { type: 'string', value: 'FORMAT', help: 'text, or github for annotations of a workflow run' },
    info: { type: 'boolean', help: 'also show what is only remarked (always part of --json)' },
    'no-shellcheck': { type: 'boolean', help: 'do not run shellcheck, even if it is installed' },
  },
  async run(args, { signal, report, env, cwd }) {
    const format = args.text('format') ?? 'text';
    if (!FORMATS.includes(format)) {
      throw new CurlewError('USAGE', `lint: unknown format "${format}"`, { hint: `use one of ${FORMATS.join(', ')}` });
    }
    const found = await findAddons(cwd, args.positionals, { signal });
    const shellcheck = !args.flag('no-shellcheck');
    const result = await lintAddons(found, {
      shellcheck,
      complete: args.positionals.length === 0,
      searchPath: env['PATH'] ?? '/usr/bin:/bin',
      signal,
    });
    if (result.shellcheck === 'absent') {
      report({
        type: 'note',
        level: 'info',
        text: 'shellcheck is not installed: install.sh was checked by bash -n only',
      });
    }
    return result;
  },
  render({ addons, diagnostics, errors, warnings, infos }, args) {
    const github = args.text('format') === 'github';
    const lines = diagnostics
      .filter(({ severity }) => severity !== 'info' || args.flag('info'))
      .map((found) => (github ? renderAnnotation(found) : renderDiagnostic(found, found.source)));
    const sums = [count(addons.length, 'add-on'), count(errors, 'error'), count(warnings, 'warning')];
    if (infos > 0) sums.push(`${count(infos, 'remark')}${args.flag('info') ? '' : ' (--info shows them)'}`);
    lines.push(sums.join(', '));
    return lines.join('\n');
  },
  exitCode: ({ errors }) => (errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0),
};
