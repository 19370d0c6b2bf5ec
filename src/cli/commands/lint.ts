/** `curlew lint`: checks add-on folders, and prints all findings and a summary. */
import { LINT } from '../../requests/repository.ts';
import { counted } from '../../core/counted.ts';
import { renderAnnotation, renderDiagnostic, visible } from '../../core/diagnostic.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { condense } from '../render/findings.ts';
import { paintDiagnostic } from '../render/paint.ts';

export const command = commandFor(LINT, {
  details:
    'Default: every add-on in ./addons and ./packages. A path may also be a name, name/version or\n' +
    'name-version. Exits with status 10 if there is an error; warnings do not count. Configure rules in\n' +
    '.curlew-lint.json, or ignore one with a comment above a line: # curlew-lint-ignore rule/id',
  examples: ['curlew lint', 'curlew lint ekco --fix', 'curlew lint --format github'],
  run: async ({ request }, context) => (await import('../../app/lint.ts')).lint(request, context),
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
