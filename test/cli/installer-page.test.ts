/** docs/installer.md and docs/cluster.md say what is so: their specs are good ones, and commands about them are understood. */
import { readdir, readFile } from 'node:fs/promises';
import { commandOf, familyOf } from '../../src/cli/commands.ts';
import { splitName } from '../../src/cli/split-name.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { compareVersions } from '../../src/core/ref.ts';
import { parseInstaller, parseMerged, type SpecText } from '../../src/spec/parse.ts';
import { checkShipped } from '../../src/spec/shipped-schema.ts';
import { hookVariables } from '../../src/spec/variables.ts';
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

/** The schema of the newest version in this checkout; kubernetes is among packages. */
async function schemaOf(name: string): Promise<unknown> {
  const folder = name === 'kubernetes' ? 'packages/kubernetes' : `addons/${name}`;
  const versions = (await readdir(folder)).filter((one) => /^\d/.test(one)).toSorted(compareVersions);
  return JSON.parse(await readFile(`${folder}/${versions.at(-1)}/schema.json`, 'utf8'));
}

test('each overlay of docs/cluster.md fits the spec of its bundle and the packages, and hooks get what it says', async () => {
  const text = await readFile('docs/cluster.md', 'utf8');
  const blocks = [...text.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, block = ''], at): SpecText => {
    return { file: `block-${at}.yaml`, text: block };
  });
  const [base, ...overlays] = blocks;
  const variables: string[] = [];
  for (const overlay of overlays) {
    const { installer, diagnostics } = parseMerged(base ?? overlay, overlay);
    assert.equal(
      diagnostics.filter(({ severity }) => severity !== 'info'),
      [],
    );
    for (const addon of installer?.addons ?? []) assert.equal(checkShipped(addon, await schemaOf(addon.name)), []);
    assert.is(installer?.addons.length, 6);
    if (installer !== undefined)
      variables.push(...hookVariables(installer, new Map()).map(([name, value]) => `${name}=${value}`));
  }
  // The settings of an operator, and those that spec.installer of a cluster's file has.
  const expected = ['KUBERNETES_MAX_PODS_PER_NODE=200', 'LOAD_BALANCER_ADDRESS=10.0.0.100:6443'];
  assert.equal(
    expected.filter((one) => !variables.includes(one)),
    [],
  );
});

test('every command about specs is on the page, and can be typed so', async () => {
  const lines = [...page.matchAll(/`curlew (installer [^`]+)`/g)].map(([, line = '']) => splitName(line.split(' ')));
  assert.equal(new Set(lines.map(({ name }) => name)), new Set(familyOf('installer').map(([name]) => name)));
  for (const { name, args } of lines) readArguments(await commandOf(name), args);
});

test.run();
