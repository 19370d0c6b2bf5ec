/** Rules about all versions of an add-on together, and about the files that a production add-on has in addition to its hooks. */
import { dirname, join } from 'node:path';
import { INSTALL_SH, packageFileName } from '../../core/layout.ts';
import type { Place } from '../../core/diagnostic.ts';
import { eachRepeated } from '../directive.ts';
import type { AddonFolder } from '../find-addons.ts';
import { hookFunction } from '../hooks.ts';
import { quoted, type Find, type RuleId } from '../rules.ts';
import { statOf } from '../text-file.ts';

function startOf(file: string): Place {
  return { file, line: 1, column: 1, length: 1 };
}

/** Checks for names that conflict with each other or have a special meaning in an installer spec. Pure. */
export function checkNames(folders: readonly AddonFolder[], find: Find): void {
  eachRepeated(
    folders,
    (folder) => packageFileName(folder, 'amd64'),
    (folder, first) => {
      const name = packageFileName(folder, 'amd64');
      const message = `its package ${quoted(name)} has the same name as that of ${first.shown}`;
      find('addon/same-package', startOf(folder.shown), message, 'rename one of the folders');
    },
  );
  for (const { version, shown } of folders) {
    if (version !== 'latest' && !/^\d+\.\d+\.x$/.test(version)) continue;
    const message = `in an installer spec ${quoted(version)} does not name this version`;
    const hint = version === 'latest' ? 'it means the first version' : 'it means the highest patch';
    find('addon/version-reserved', startOf(shown), message, hint);
  }
}

interface RequiredFile {
  readonly rule: RuleId;
  /** One of these must exist, relative to the folder of the version. */
  readonly paths: readonly string[];
  readonly hint: string;
}

const REQUIRED_FILES: readonly RequiredFile[] = [
  {
    rule: 'production/host-preflight',
    paths: ['host-preflight.yaml'],
    hint: 'a HostPreflight with the requirements of a machine',
  },
  {
    rule: 'production/troubleshoot',
    paths: ['troubleshoot.yaml', 'tmpl-troubleshoot.yaml', 'yaml/troubleshoot.yaml', 'spec/tmpl-troubleshoot.yaml'],
    hint: 'a Secret that contains a SupportBundle',
  },
  { rule: 'production/schema', paths: ['schema.json'], hint: 'a JSON Schema of the settings' },
  { rule: 'production/categories', paths: ['../categories.json'], hint: '{ "requires": [], "fulfills": [] }' },
  { rule: 'production/template', paths: ['../template/generate.sh', '../template/script.sh'], hint: 'see curlew new' },
  { rule: 'production/test', paths: ['../template/testgrid'], hint: 'a file of specs for the machines to try' },
];

/** Checks the newest version of each add-on; `hooks` are the full names of the hooks that each defines. */
export function checkProduction(
  folders: readonly AddonFolder[],
  hooks: ReadonlyMap<AddonFolder, readonly string[]>,
  find: Find,
): void {
  const newest = new Map<string, AddonFolder>();
  for (const folder of folders) if (folder.tree === 'addons') newest.set(dirname(folder.folder), folder);
  for (const folder of newest.values()) {
    for (const { rule, paths, hint } of REQUIRED_FILES) {
      if (paths.some((path) => statOf(join(folder.folder, path)) !== undefined)) continue;
      find(rule, startOf(folder.shown), `no ${paths[0]?.replace('../', '') ?? ''}`, hint);
    }
    const uninstall = hookFunction(folder.name, 'uninstall');
    if (hooks.get(folder)?.includes(uninstall) === true) continue;
    const place = startOf(`${folder.shown}/${INSTALL_SH}`);
    find('production/uninstall', place, `no function "${uninstall}"`, 'it removes the add-on from the node');
  }
}
