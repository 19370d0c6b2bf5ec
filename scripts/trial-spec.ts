/**
 * Prints the installer spec that tries one version of an add-on: alone, with the settings that a given spec has for it.
 * usage: tsx scripts/trial-spec.ts NAME VERSION [SPEC-FILE]
 */
import { readFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { folderName } from '../src/spec/installer.ts';
import { parseInstaller } from '../src/spec/parse.ts';

const [name = '', version = '', file = ''] = process.argv.slice(2);

function fail(why: string): never {
  console.error(`error: ${why}`);
  process.exit(1);
}

/** The key of a spec that means this add-on. */
function specKey(): string {
  const camel = name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return folderName(camel) === name ? camel : name;
}

async function settings(): Promise<object> {
  if (file === '') return {};
  const { installer, diagnostics } = parseInstaller(file, await readFile(file, 'utf8'));
  if (installer === undefined) return fail(diagnostics.map(({ message }) => `${file}: ${message}`).join('\n'));
  const found = installer.addons.find((addon) => addon.name === name);
  return found?.settings ?? fail(`${file}: says nothing of ${name}`);
}

const spec = { [specKey()]: { ...(await settings()), version } };
const document = { apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', metadata: { name: 'trial' }, spec };
process.stdout.write(stringify(document));
