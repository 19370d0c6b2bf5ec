/** Rules over the versions of an add-on together, and about what one for other people's machines has beside its hooks. */
import { dirname, join } from 'node:path';
import { INSTALL_SH, packageFileName } from '../../core/layout.ts';
import type { Place } from '../../core/diagnostic.ts';
import { eachRepeated } from '../directive.ts';
import type { AddonFolder } from '../find-addons.ts';
import { hookFunction } from '../hooks.ts';
import { finding, quoted, type Find, type RuleId } from '../rules.ts';
import { statOf } from '../text-file.ts';

function startOf(file: string): Place {
  return { file, line: 1, column: 1, length: 1 };
}

/** Names that clash with each other, or with what an installer spec means by them. Pure. */
export function checkNames(folders: readonly AddonFolder[], find: Find): void {
  eachRepeated(
    folders,
    (folder) => packageFileName(folder, 'amd64'),
    (folder, first) => {
      const name = packageFileName(folder, 'amd64');
      const message = `its package would be ${quoted(name)}, as is that of ${first.shown}`;
      find(finding('addon/same-package', startOf(folder.shown), message, 'rename one of the folders'));
    },
  );
  for (const { version, shown } of folders) {
    if (version !== 'latest' && !/^\d+\.\d+\.x$/.test(version)) continue;
    const message = `in an installer spec ${quoted(version)} is not the name of a version`;
    const hint = version === 'latest' ? 'it means the first of all versions' : 'it means the greatest patch';
    find(finding('addon/version-reserved', startOf(shown), message, hint));
  }
}

interface Wanted {
  readonly rule: RuleId;
  /** One of these, below the folder of the version. */
  readonly paths: readonly string[];
  readonly hint: string;
}

const WANTED: readonly Wanted[] = [
  {
    rule: 'production/host-preflight',
    paths: ['host-preflight.yaml'],
    hint: 'a HostPreflight with what a machine must have',
  },
  {
    rule: 'production/troubleshoot',
    paths: ['troubleshoot.yaml', 'tmpl-troubleshoot.yaml', 'yaml/troubleshoot.yaml', 'spec/tmpl-troubleshoot.yaml'],
    hint: 'a Secret that holds a SupportBundle',
  },
  { rule: 'production/schema', paths: ['schema.json'], hint: 'a JSON Schema of the settings' },
  { rule: 'production/categories', paths: ['../categories.json'], hint: '{ "requires": [], "fulfills": [] }' },
  { rule: 'production/template', paths: ['../template/generate.sh', '../template/script.sh'], hint: 'see curlew new' },
  { rule: 'production/test', paths: ['../template/testgrid'], hint: 'a file of specs for the machines to try' },
];

/** Looks at the newest version of each add-on; `hooks` are the full names of the hooks that each defines. */
export function checkProduction(
  folders: readonly AddonFolder[],
  hooks: ReadonlyMap<AddonFolder, readonly string[]>,
  find: Find,
): void {
  const newest = new Map<string, AddonFolder>();
  for (const folder of folders) if (folder.tree === 'addons') newest.set(dirname(folder.folder), folder);
  for (const folder of newest.values()) {
    for (const { rule, paths, hint } of WANTED) {
      if (paths.some((path) => statOf(join(folder.folder, path)) !== undefined)) continue;
      find(finding(rule, startOf(folder.shown), `there is no ${paths[0]?.replace('../', '') ?? ''}`, hint));
    }
    const uninstall = hookFunction(folder.name, 'uninstall');
    if (hooks.get(folder)?.includes(uninstall) === true) continue;
    const place = startOf(`${folder.shown}/${INSTALL_SH}`);
    find(finding('production/uninstall', place, `no function "${uninstall}"`, 'it takes the add-on off the node'));
  }
}
