/** docs/migrating.md: its commands, typed one after the other in a repository in kURL's manner, do what the page says. */
import { readFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { KURL_SCRIPTS, kurlAddon, versionsScript } from '../support/kurl-repository.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/migrating-page', { timeoutMs: 180_000 });

const page = await readFile('docs/migrating.md', 'utf8');
const typed = [...page.matchAll(/^```sh\n(.*?)^```$/gms)]
  .flatMap(([, block = '']) => block.split('\n'))
  .map((line) => line.replace(/\s+#.*$/, ''))
  .filter((line) => line !== '');

test('every line of the page works, in its order', async () => {
  await using box = await tree();
  const checkout = await tree({
    ...kurlAddon('rook', '1.0.4'),
    ...kurlAddon('rook', '1.7.11'),
    ...kurlAddon('cert-manager', '1.0.3', 'asset note.txt ./deployment.yaml\n'),
    ...KURL_SCRIPTS,
    'addons/rook/categories.json': '{"name": "rook", "fulfills": ["storage"], "requires": [], "recommends": []}\n',
    'web/src/installers/versions.js': versionsScript({ rook: ['1.0.4', '1.7.11'], certManager: ['1.0.3'] }),
  });
  await using root = checkout;
  const said = new Map<string, string>();
  for (const line of typed) {
    const [program, ...words] = line.split(/\s+/);
    assert.is(program, 'curlew', line);
    // What lies beside a checkout is a folder of its own here.
    const given = words.map((word) => word.replace(/^\.\.\//, `${box.path}/`));
    const env = { HOME: box.path, XDG_CACHE_HOME: box.at('cache') };
    const { exitCode, stdout, stderr } = await curlew(given, { cwd: root.path, env });
    assert.is(exitCode, 0, `${line}\n${stdout}\n${stderr}`);
    said.set(line, stdout);
  }
  assert.match(said.get('curlew import kurl .') ?? '', /2 add-ons, 3 versions: 3 work, 0 differ, 0 incomplete$/);
  assert.is(await readFile(root.at('addons/rook/versions.json'), 'utf8'), '[\n  "1.0.4",\n  "1.7.11"\n]\n');
  assert.match(said.get('curlew versions --from ../dist') ?? '', /rook.*1\.0\.4/);
});

test('commands within the text and links lead somewhere', async () => {
  for (const [, path = ''] of page.matchAll(/\]\((\w[\w.-]*\.md)\)/g)) await readFile(`docs/${path}`);
  assert.match(page, '`curlew install --adopt`');
});

test('it is one page', () => {
  assert.ok(page.split('\n').length <= 100);
});

test.run();
