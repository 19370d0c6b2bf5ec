/** docs/installer.md says what is so: its spec is a good one, and its commands are understood. */
import { readFile } from 'node:fs/promises';
import { installerCommand, VERBS } from '../../src/cli/commands/installer.ts';
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
  assert.is(installer?.addons.length, 2);
});

test('every verb is on the page, and can be typed so', () => {
  const lines = [...page.matchAll(/`curlew installer ([^`]+)`/g)].map(([, line = '']) => line.split(' '));
  assert.equal(new Set(lines.map(([verb = '']) => verb)), new Set(Object.keys(VERBS)));
  for (const words of lines) assert.is(readArguments(installerCommand, words).operands[0], words[0]);
});

test.run();
