/** `curlew import`: checks a repository that was made for another tool. */
import { IMPORT } from '../../requests/repository.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import type { Migration } from '../../kurl/migrate.ts';
import { commandFor } from '../command.ts';
import { renderMigration } from '../render/migration.ts';

/** Text about missing features outside of add-ons. */
function missingElsewhere(findings: Migration['findings']): string {
  const missing = findings.filter(({ grade }) => grade === 'missing').length;
  return missing === 0 ? '' : `; ${counted(missing, 'feature')} of the repository itself missing`;
}

export const command = commandFor(IMPORT, {
  details:
    'Checks every add-on of a checkout (addons/NAME/VERSION, packages/, scripts/, web/src/installers/versions.js) without\n' +
    'running or changing it. Exits with status 22 if something is missing: an undefined function,\n' +
    'an unknown directive or host preflight, a file that a hook reads. With --out, writes .curlew-lint.json,\n' +
    'and a versions.json next to the versions of each add-on in versions.js.',
  examples: ['curlew import kurl .', 'curlew import kurl ../kURL --notes', 'curlew import kurl . --out . --dry-run'],
  run: async ({ request: { tool, ...request } }, context) => {
    if (tool !== 'kurl') {
      throw new CurlewError('USAGE', 'curlew import: specify kurl and one folder', { hint: 'curlew import kurl .' });
    }
    return (await import('../../app/import.ts')).importRepository(request, context);
  },
  render: (result, { request: { out }, options: { notes } }, paint) => {
    const { sums, addons, files, dryRun, orders } = result;
    const written = files.filter(({ outcome }) => outcome === 'written');
    const unchanged = files.filter(({ outcome }) => outcome === 'kept').map(({ path }) => `unchanged: ${path}`);
    const names = new Set(addons.map(({ tree, name }) => `${tree}/${name}`)).size;
    return [
      ...renderMigration(result, notes, paint),
      ...unchanged,
      ...(dryRun ? written.map(({ path }) => `would write: ${path}`) : []),
      out === undefined
        ? `--out DIR writes the version order of ${counted(orders.length, 'add-on')}`
        : `${counted(written.length, 'file')} ${dryRun ? 'would be written' : 'written'} to ${out}`,
      `${counted(names, 'add-on')}, ${counted(addons.length, 'version')}: ${sums.works} work, ${sums.differs} differ, ${sums.missing} incomplete${missingElsewhere(result.findings)}`,
    ].join('\n');
  },
  exitCode: ({ addons, findings }) => {
    const all = [...findings, ...addons.flatMap((addon) => addon.findings)];
    return all.some(({ grade }) => grade === 'missing') ? ERROR_CODES.UNSUPPORTED : 0;
  },
});
