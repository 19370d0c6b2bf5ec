/** docs/installer.md says what is so: its spec is a good one, and its commands are understood. */
import { readFile } from 'node:fs/promises';
import { commandOf, familyOf, splitName } from '../../src/cli/commands.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/installer-page');
const page = await readFile('docs/installer.md', 'utf8');

test('the spec of the page has no mistake', () => {
  const [, yaml = ''] = /^```yaml\n(.*?)^```$/ms.exec(page) ?? [];
  const { installer, diagnostics } = parseInstaller('page.yaml', yaml);
  assert.equal(diagnostics, []);
  assert.is(installer?.addons.length, 3);
});

test('every command about specs is on the page, and can be typed so', async () => {
  const lines = [...page.matchAll(/`curlew (installer [^`]+)`/g)].map(([, line = '']) => splitName(line.split(' ')));
  assert.equal(new Set(lines.map(({ name }) => name)), new Set(familyOf('installer').map(([name]) => name)));
  for (const { name, args } of lines) readArguments(await commandOf(name), args);
});

test.run();
