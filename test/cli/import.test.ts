import { readFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { KURL_SCRIPTS, kurlAddon, versionsScript } from '../support/kurl-repository.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files } from '../support/tree.ts';

const test = suite('cli/import');

const LACKING: Files = {
  ...kurlAddon('demo', '1.0'),
  ...kurlAddon('demo', '1.1'),
  ...KURL_SCRIPTS,
  'addons/other/2.0/Manifest': '',
  'addons/other/2.0/install.sh':
    'other() {\n  tell_the_world\n  try_5m kubectl get nodes\n  report_addon_start other 2.0\n  check_network\n  frobnicate "$INSTALLER_ID$PUBLIC_ADDRESS"\n}\n',
  'web/src/installers/versions.js': versionsScript({ demo: ['1.0', '1.1'] }),
};

test('what is missing comes first, then what differs, add-on by add-on, in lines of eighty columns', async () => {
  await using box = await tree(LACKING);
  const { exitCode, stdout } = await curlew(['import', 'kurl', '.'], { cwd: box.path });
  assert.is(exitCode, 22);
  const lines = stdout.split('\n');
  assert.equal(
    lines.filter((line) => line.length > 80),
    [],
  );
  assert.equal(lines.slice(0, 5), [
    'Missing: fix before the migration',
    '  function tell_the_world',
    '    scripts/common/common.sh of the repository defines it; nothing here does',
    '    in other 2.0; first at addons/other/2.0/install.sh:2',
    '',
  ]);
  assert.is(lines[5], 'Differs: works, but not exactly as with kURL');
  assert.ok(lines.includes('  function check_network') && lines.includes('  variable PUBLIC_ADDRESS'));
  // What differs without a consequence is not listed.
  assert.not.match(stdout, /try_5m|INSTALLER_ID|report_addon_start|frobnicate/);
  assert.equal(lines.slice(-6), [
    'add-on  versions  work  differ  incomplete',
    'demo    2         2     0       0',
    'other   1         0     0       1',
    '',
    '--out DIR writes the version order of 1 add-on',
    '2 add-ons, 3 versions: 2 work, 0 differ, 1 incomplete',
  ]);
});

test('nothing missing is status 0; --notes shows what is good to know; --out writes', async () => {
  const { 'addons/other/2.0/install.sh': _, ...rest } = LACKING;
  await using box = await tree({ ...rest, 'addons/other/2.0/install.sh': 'other() { frobnicate; }\n' });
  const { exitCode, stdout } = await curlew(['import', 'kurl', '.', '--notes', '--out', '.'], { cwd: box.path });
  assert.is(exitCode, 0);
  assert.match(stdout, /Notes\n {2}order other\n/);
  assert.match(stdout, / {2}program frobnicate\n/);
  assert.match(stdout, /2 files written to /);
  assert.is(await readFile(box.at('addons/demo/versions.json'), 'utf8'), '[\n  "1.0",\n  "1.1"\n]\n');
  const lint = await curlew(['lint', '--no-shellcheck'], { cwd: box.path });
  assert.is(lint.exitCode, 0, lint.stdout);
});

test('--json is all of it as data', async () => {
  await using box = await tree(LACKING);
  const { exitCode, stdout } = await curlew(['import', 'kurl', '.', '--json'], { cwd: box.path });
  assert.is(exitCode, 22);
  const { addons, orders, sums, files } = JSON.parse(stdout) as {
    addons: {
      name: string;
      verdict: string;
      uses: unknown;
      findings: { grade: string; subject: string; place: unknown }[];
    }[];
    orders: unknown;
    sums: unknown;
    files: unknown;
  };
  assert.equal(sums, { works: 2, differs: 0, missing: 1 });
  assert.equal(orders, [{ tree: 'addons', name: 'demo', versions: ['1.0', '1.1'] }]);
  assert.equal(files, []);
  assert.equal(addons[2]?.findings[0]?.place, { file: 'addons/other/2.0/install.sh', line: 2, column: 3, length: 14 });
});

test('other words are a usage error', async () => {
  await using box = await tree();
  for (const words of [[], ['kurl'], ['kots', '.'], ['kurl', '.', '.']]) {
    const { exitCode } = await curlew(['import', ...words], { cwd: box.path });
    assert.is(exitCode, 64);
  }
});

test.run();
