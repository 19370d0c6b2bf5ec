/** `curlew lint`: checks add-on folders, and prints all findings and a summary. */
import { counted } from '../../core/counted.ts';
import { renderAnnotation, renderDiagnostic, visible } from '../../core/diagnostic.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { condense } from '../render/findings.ts';
import { paintDiagnostic } from '../render/paint.ts';

const lint = useCase(async () => (await import('../../app/lint.ts')).lint);

const FORMATS = ['text', 'github'];

function format(text: string): string {
  if (FORMATS.includes(text)) return text;
  throw new CurlewError('USAGE', `lint: unknown format "${text}"`, { hint: `use one of ${FORMATS.join(', ')}` });
}

export const lintCommand = command({
  name: 'lint',
  operands: '[path…]',
  details:
    'Default: every add-on in ./addons and ./packages. A path may also be a name, name/version or\n' +
    'name-version. Exits with status 10 if there is an error; warnings do not count. Configure rules in\n' +
    '.curlew-lint.json, or ignore one with a comment above a line: # curlew-lint-ignore rule/id',
  options: {
    all: { type: 'boolean', help: 'show every finding, not just the first of identical ones' },
    fix: { type: 'boolean', help: 'fix what is safe: line endings, comments after directives, duplicate lines' },
    format: {
      type: 'string',
      read: format,
      value: 'FORMAT',
      help: 'text, or github for annotations of a workflow run',
    },
    info: { type: 'boolean', help: 'also show remarks (always included in --json)' },
    'no-shellcheck': { type: 'boolean', help: 'do not run shellcheck, even if it is installed' },
  },
  examples: ['curlew lint', 'curlew lint ekco --fix', 'curlew lint --format github'],
  run: async ({ operands, options: { fix, noShellcheck } }, context) =>
    lint({ addons: operands, fix, noShellcheck }, context),
  render: ({ addons, diagnostics, errors, warnings, infos, fixed }, { options }, paint) => {
    const github = options.format === 'github';
    const lines = fixed.map(({ file, line, code, what }) => `${visible(file)}:${line} fixed ${code}: ${what}`);
    const selected = diagnostics.filter(({ severity }) => severity !== 'info' || options.info);
    const everything = github || options.all;
    const { shown, counted: many } = everything
      ? { shown: selected.map((first) => ({ first, count: 1 })), counted: [] }
      : condense(selected);
    for (const { first, count } of shown) {
      if (github) {
        lines.push(renderAnnotation(first));
        continue;
      }
      lines.push(paintDiagnostic(renderDiagnostic(first, first.source), first.severity, paint));
      if (first.versions !== undefined) lines.push(`  in a file shared by ${first.versions} versions`);
      if (count > 1) lines.push(`  and in ${counted(count - 1, 'more place')} (--all shows them)`);
    }
    lines.push(...many);
    const sums = [counted(addons.length, 'add-on'), counted(errors, 'error'), counted(warnings, 'warning')];
    if (infos > 0) sums.push(`${counted(infos, 'remark')}${options.info ? '' : ' (--info shows them)'}`);
    lines.push(sums.join(', '));
    return lines.join('\n');
  },
  exitCode: ({ errors }) => (errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0),
});
