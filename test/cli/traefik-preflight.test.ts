/** The host preflight of traefik, whose ports are settings. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/traefik-preflight');
const FOLDER = join(import.meta.dirname, '../../addons/traefik');

/** Names of the checks of ports. */
async function checked(settings: string): Promise<readonly string[]> {
  await using box = await tree();
  const [version = ''] = (await readdir(FOLDER)).filter((name) => /^\d/.test(name));
  const spec = box.at('installer.yaml');
  const head = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: test}\nspec:\n';
  await writeFile(spec, `${head}  traefik: {version: ${version}${settings}}\n`);
  const words = ['preflight', join(FOLDER, version, 'host-preflight.yaml'), '--installer', spec, '--exclude-builtin'];
  const { stdout } = await runCommand(words, box.path);
  return [...stdout.matchAll(/\] (HTTPS? port) of traefik/g)].map(([, name = '']) => name);
}

test('a port of traefik is checked unless its settings choose another one', async () => {
  assert.equal(await checked(''), ['HTTP port', 'HTTPS port']);
  assert.equal(await checked(', httpPort: 80'), ['HTTP port', 'HTTPS port']);
  assert.equal(await checked(', httpPort: 8081'), ['HTTPS port']);
  assert.equal(await checked(', httpPort: 8081, httpsPort: 8443'), []);
});

test.run();
