import { symlink } from 'node:fs/promises';
import { findAddons } from '../../src/manifest/find-addons.ts';
import { lintAddons, type LintReport } from '../../src/manifest/lint.ts';
import * as assert from '../support/assert.ts';
import { writeCorpus } from '../support/corpus.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files, type Tree } from '../support/tree.ts';

const test = suite('manifest/lint');
const searchPath = process.env['PATH'] ?? '/usr/bin:/bin';

async function lint(box: Tree, signal: AbortSignal): Promise<LintReport> {
  return lintAddons(await findAddons(box.path, [], { signal }), {
    shellcheck: false,
    complete: true,
    searchPath,
    signal,
  });
}

/** `line:column code` of each finding for one install.sh. */
async function judged(name: string, script: string, signal: AbortSignal): Promise<readonly string[]> {
  await using box = await tree({ [`addons/${name}/1.0/Manifest`]: '', [`addons/${name}/1.0/install.sh`]: script });
  const { diagnostics } = await lint(box, signal);
  return diagnostics.map(({ code, place }) => `${place.line}:${place.column} ${code}`);
}

for (const [title, name, script, expected] of [
  ['an install function is enough', 'ekco', 'ekco() { :; }\n', []],
  ['containerd has its own install function', 'containerd', 'containerd_install() { :; }\n', []],
  ['containerd() alone is no hook', 'containerd', 'containerd() { :; }\n', ['1:1 hook/none']],
  ['no function at all', 'ekco', 'echo hello\n', ['1:1 hook/none']],
  ['an empty script', 'ekco', '', ['1:1 hook/none']],
  ['a hook but no install', 'rookupgrade', 'rookupgrade_join() { :; }\n', ['1:1 hook/no-install']],
  ['functions of a step of an upgrade', 'rookupgrade', 'rookupgrade_1_0_upgrade() { :; }\n', []],
  ['a function of another version', 'rookupgrade', 'rookupgrade_2_0_upgrade() { :; }\n', ['1:1 hook/none']],
  ['a letter missing', 'ekco', 'ekco() { :; }\nekco_pre_int() { :; }\n', ['2:1 hook/misspelt']],
  ['two letters swapped', 'ekco', 'ekco() { :; }\nfunction ekco_jion { :; }\n', ['2:10 hook/misspelt']],
  ['a helper near a hook, called', 'ekco', 'ekco() { ekco_host_init; }\nekco_host_init() { :; }\n', []],
  [
    'a near name in a comment and in longer names only',
    'ekco',
    'ekco() { :; }\n# ekco_pre_int\nekco_pre_int() { ekco_pre_ints; }\n',
    ['3:1 hook/misspelt'],
  ],
  ['a letter wrong in the prefix', 'ekco', 'ekco() { :; }\neko_outro() { :; }\n', ['2:1 hook/misspelt']],
  ['_ for - in the prefix', 'a-b-c', 'a-b-c() { :; }\na_b_c_join() { :; }\n', ['2:1 hook/misspelt']],
  ['only a misspelt hook', 'ekco', 'ekcos() { :; }\n', ['1:1 hook/none', '1:1 hook/misspelt']],
  ['a helper near a hook that exists', 'ekco', 'ekco() { :; }\nekco_join() { :; }\nekco_joins() { :; }\n', []],
  ['a helper with the prefix', 'cert-manager', 'cert-manager() { :; }\n_cert_manager_x() { :; }\n', []],
  ['a helper without the prefix', 'ekco', 'ekco() { :; }\nhelper() { :; }\n', ['2:1 hook/prefix']],
  ['a hook defined twice', 'ekco', 'ekco() { :; }\nekco() { :; }\n', ['2:1 hook/duplicate']],
  [
    'a folder of another version',
    'ekco',
    'ekco() {\n  # /addons/ekco/1.0\n  cp "$DIR/addons/ekco/0.9.1/a" .\n}\n',
    ['3:24 hook/other-version'],
  ],
  ['folders of both versions', 'ekco', 'ekco() { diff "$DIR/addons/ekco/0.9" "$DIR/addons/ekco/1.0"; }\n', []],
  ['the folder of a version in a variable', 'ekco', 'ekco() { cp "$DIR/addons/ekco/$EKCO_VERSION/a" .; }\n', []],
  ["another add-on's folder", 'ekco', 'ekco() { cat "$DIR/addons/other/2/a"; }\n', []],
  ['a syntax error', 'ekco', 'ekco() {\n  if x; then\n  fi\n}\n', ['3:3 install/syntax']],
  ['a string without end', 'ekco', 'ekco() { :; }\necho "x\n', ['2:1 install/syntax']],
  ['a block without end', 'ekco', 'ekco() {\n  :\n', ['3:1 install/syntax']],
  ['CR LF in place of syntax errors', 'ekco', 'ekco() {\r\n:\r\n}\r\n', ['1:9 install/crlf']],
  ['a script with NUL', 'ekco', 'ekco() { :; }\n\0\n', ['2:1 install/encoding']],
] as const) {
  test(`install.sh: ${title}`, async ({ signal }) => {
    const found = await judged(name, script, signal);
    assert.equal(found.toSorted(), [...expected].toSorted());
  });
}

test('checking a script does not run it', async ({ signal }) => {
  await using box = await tree({
    'addons/ekco/1/Manifest': '',
    'addons/ekco/1/install.sh': 'touch "$PWD/ran"; touch ran\nekco() { :; }\n$(touch ran)\n',
  });
  const here = process.cwd();
  process.chdir(box.path);
  try {
    assert.equal((await lint(box, signal)).diagnostics, []);
  } finally {
    process.chdir(here);
  }
  const { access } = await import('node:fs/promises');
  let ran = true;
  await access(box.at('ran')).catch(() => (ran = false));
  assert.not.ok(ran);
});

test('a script that forges the end of its own check is still judged', async ({ signal }) => {
  const forged = await judged('ekco', 'ekco() { :; }\n)\u001e0\n\u001e0\n', signal);
  assert.equal(forged, ['2:1 install/syntax']);
});

test('the same mistake in copies of a script is told for each of them', async ({ signal }) => {
  const script = 'ekco() {\n';
  await using box = await tree({
    'addons/ekco/1/Manifest': '',
    'addons/ekco/1/install.sh': script,
    'addons/ekco/2/Manifest': '',
    'addons/ekco/2/install.sh': script,
    'addons/ekco/3/Manifest': '',
    'addons/ekco/3/install.sh': 'ekco() { :; }\n',
  });
  const { diagnostics } = await lint(box, signal);
  assert.equal(
    diagnostics.map(({ place }) => place.file),
    ['addons/ekco/1/install.sh', 'addons/ekco/2/install.sh'],
  );
});

test('packages need no install.sh', async ({ signal }) => {
  await using box = await tree({ 'packages/host/fio/Manifest': 'apt fio\n' });
  const { addons, diagnostics } = await lint(box, signal);
  assert.equal(diagnostics, []);
  assert.equal(addons, [{ name: 'host', version: 'fio', path: 'packages/host/fio', hooks: [], directives: 1 }]);
});

test('a local file outside the repository is a warning, by its own path and through a link', async ({ signal }) => {
  await using outside = await tree({ secret: '' });
  await using box = await tree({
    'addons/ekco/1/Manifest': `asset a ../../../../x\nasset b ${outside.at('secret')}\nasset c ../../../c/secret\n`,
    'addons/ekco/1/install.sh': 'ekco() { :; }\n',
  });
  await symlink(outside.path, box.at('c'));
  const { diagnostics } = await lint(box, signal);
  const found = diagnostics.filter(({ code }) => code === 'source/outside');
  assert.equal(
    found.map(({ severity, place }) => [severity, place.line]),
    [1, 2, 3].map((line) => ['warning', line]),
  );
});

test('local files that a directive names are looked for where it means', async ({ signal }) => {
  const manifest =
    'image a ./a.tar\nasset b ./b\nasset c ../c\ndockerout rhel-8 addons/ekco/Dockerfile 1\ndockerout rhel-9 D 1\n';
  await using box = await tree({
    'addons/ekco/1/Manifest': manifest,
    'addons/ekco/1/install.sh': 'ekco() { :; }\n',
    'addons/ekco/1/b': '',
    'addons/ekco/Dockerfile': '',
  });
  const { diagnostics } = await lint(box, signal);
  assert.equal(
    diagnostics.map(({ code, place }) => [code, place.line, place.column]),
    [
      ['source/not-found', 1, 9],
      ['asset/packed-twice', 2, 9],
      ['source/not-found', 3, 9],
      ['source/not-found', 5, 18],
    ],
  );
});

test('findings carry their line, with secrets masked where they stand', async ({ signal }) => {
  const line = 'asset f https://user:pass@host/x?token=abc#sha256=1';
  await using box = await tree({ 'addons/ekco/1/Manifest': line, 'addons/ekco/1/install.sh': 'ekco() { :; }\n' });
  const { diagnostics } = await lint(box, signal);
  assert.is(diagnostics[0]?.source, 'asset f https://*********@host/x?*********#sha256=1');
  assert.not.match(JSON.stringify(diagnostics), /user:pass|token=abc/);
});

test('a folder with an impossible name is a finding among the others', async ({ signal }) => {
  await using box = await tree({
    'addons/Ekco/1/Manifest': '',
    'addons/a/1/Manifest': '',
    'addons/a/1/install.sh': 'a() { :; }',
  });
  const { addons, diagnostics, errors } = await lint(box, signal);
  assert.equal(
    addons.map(({ name }) => name),
    ['a'],
  );
  assert.equal(
    diagnostics.map(({ code }) => code),
    ['addon/name'],
  );
  assert.is(errors, 1);
});

test('612 generated add-ons are clean but for the images that are not pinned', async ({ signal }) => {
  await using box = await tree({});
  await writeCorpus(box.path, { count: 612 });
  const { addons, diagnostics, errors, warnings } = await lint(box, signal);
  assert.is(addons.length, 612);
  assert.equal(
    diagnostics.filter(({ code }) => code !== 'image/latest' && code !== 'asset/no-digest'),
    [],
  );
  assert.equal([errors, warnings], [0, 49]);
  const rook = addons.find(({ name }) => name === 'rook');
  assert.equal(rook?.hooks, ['rook_pre_init', 'rook', 'rook_already_applied', 'rook_join']);
});

test('a bash that cannot be started is an error of its own, and no finding about the script', async ({ signal }) => {
  await using box = await tree({
    'addons/ekco/1/Manifest': '',
    'addons/ekco/1/install.sh': 'ekco() { :; }\n',
    'bin/bash': 'not executable',
  });
  const found = await findAddons(box.path, [], { signal });
  const options = { shellcheck: false, complete: true, searchPath: box.at('bin'), signal };
  await assert.rejectsWith(lintAddons(found, options), 'PROGRAM_FAILED', /start bash: EACCES/);
});

test('a mistake in a file that versions share is one finding, with their number', async ({ signal }) => {
  const version = (name: string): Files => ({
    [`addons/ekco/${name}/Manifest`]: '',
    [`addons/ekco/${name}/install.sh`]: 'ekco() { :; }\n',
  });
  await using box = await tree({
    ...version('1'),
    ...version('2'),
    ...version('3'),
    'addons/ekco/categories.json': '{"requires": 1, "fulfills": 2}',
  });
  const { diagnostics, errors } = await lint(box, signal);
  assert.equal(
    diagnostics.map(({ code, versions }) => [code, versions]),
    [
      ['addon/categories', 3],
      ['addon/categories', 3],
    ],
  );
  assert.is(errors, 2);
});

for (const [range, expected] of [
  ['">=1.28.0 <1.32.0"', []],
  ['{"1": "1.30.x", "2": "<1.30.0 || >=1.31.0"}', []],
  ['">=1.28"', [/not a range of Kubernetes versions: ">=1\.28": ">=1\.28" is not a comparison with a version/]],
  ['{"1": "^1.30.0", "3": ">=1.30.0"}', [/\^1\.30\.0/, /kubernetesVersion\.3: not a version of this add-on/]],
  ['">=1.32.0 <1.28.0"', [/no version is in it/]],
  ['["1.30.x"]', [/kubernetesVersion: not a range of Kubernetes versions, or ranges by version/]],
] as const) {
  test(`the Kubernetes versions of an add-on are checked: ${range}`, async ({ signal }) => {
    const files = ['1', '2'].flatMap((version) => [
      [`addons/ekco/${version}/Manifest`, ''],
      [`addons/ekco/${version}/install.sh`, 'ekco() { :; }\n'],
    ]);
    await using box = await tree({
      ...(Object.fromEntries(files) as Files),
      'addons/ekco/categories.json': `{"kubernetesVersion": ${range}}`,
    });
    const { diagnostics } = await lint(box, signal);
    assert.is(diagnostics.length, expected.length);
    for (const [at, { message }] of diagnostics.entries()) assert.match(message, expected[at] ?? /never/);
  });
}

test.run();
