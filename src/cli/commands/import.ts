/** `curlew import`: what a repository that was made for another tool finds here. */
import { importRepository } from '../../app/import.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import type { Migration } from '../../kurl/migrate.ts';
import { command } from '../command.ts';
import { renderMigration } from '../render/migration.ts';

/** What is missing, but in no add-on. */
function missingBeside(findings: Migration['findings']): string {
  const missing = findings.filter(({ grade }) => grade === 'missing').length;
  return missing === 0 ? '' : `; besides, ${counted(missing, 'thing')} of the repository itself`;
}

export const importCommand = command({
  name: 'import',
  operands: 'kurl PATH',
  options: {
    out: { type: 'string', value: 'DIR', help: 'write the files that it lacks below DIR, which may be PATH itself' },
    notes: { type: 'boolean', help: 'also show what is only good to know (always part of --json)' },
  },
  details:
    'Looks at every add-on of a checkout (addons/NAME/VERSION, packages/, scripts/, web/src/installers/versions.js), runs\n' +
    'nothing of it and changes no file that is there. Ends with status 22 when something is missing: a function that\n' +
    'nothing defines, a directive or a host preflight that is not understood, a file that a hook reads. With --out it\n' +
    'writes versions.json beside the versions of each add-on that has a list in versions.js, and .curlew-lint.json.',
  examples: ['curlew import kurl .', 'curlew import kurl ../kURL --notes', 'curlew import kurl . --out .'],
  run: async ({ operands: [kind, path], options: { out } }, context) => {
    if (kind !== 'kurl' || path === undefined) {
      throw new CurlewError('USAGE', 'curlew import: say what to import: kurl, and one folder', {
        hint: 'curlew import kurl .',
      });
    }
    return importRepository({ path, out }, context);
  },
  render: (result, { options: { out, notes } }, paint) => {
    const { sums, addons, files, orders } = result;
    const written = files.filter(({ outcome }) => outcome === 'written').length;
    const kept = files.filter(({ outcome }) => outcome === 'kept').map(({ path }) => `left as it is: ${path}`);
    const names = new Set(addons.map(({ tree, name }) => `${tree}/${name}`)).size;
    return [
      ...renderMigration(result, notes, paint),
      ...kept,
      out === undefined
        ? `--out DIR writes the order of versions of ${counted(orders.length, 'add-on')}`
        : `${counted(written, 'file')} written below ${out}`,
      `${counted(names, 'add-on')}, ${counted(addons.length, 'version')}: ${sums.works} work, ${sums.differs} differ, ${sums.missing} incomplete${missingBeside(result.findings)}`,
    ].join('\n');
  },
  exitCode: ({ addons, findings }) => {
    const all = [...findings, ...addons.flatMap((addon) => addon.findings)];
    return all.some(({ grade }) => grade === 'missing') ? ERROR_CODES.UNSUPPORTED : 0;
  },
});
