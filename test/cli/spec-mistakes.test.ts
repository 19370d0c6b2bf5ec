/** What is wrong with an installer spec is known where a bundle is made of it, all at once. */
import { readdir } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { publishTestPackages, type TestPackage } from '../support/bundles.ts';
import type { Outcome } from '../support/curlew.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli: mistakes in specs', { timeoutMs: 60_000 });

const SETTINGS = {
  type: 'object',
  required: ['replicas'],
  properties: { version: {}, replicas: { type: 'integer', minimum: 1 }, size: { enum: ['s', 'l'] } },
};

function addon(name: string, settings: unknown): TestPackage {
  return { name, version: '1.0.0', files: [{ path: 'install.sh', data: `${name}() { :; }\n` }], extra: { settings } };
}

const HEAD = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: shop}\nspec:\n';

async function scene(spec: string, signal: AbortSignal): Promise<Tree> {
  const box = await tree({ 'spec.yaml': HEAD + spec });
  const closed = { ...SETTINGS, required: [], additionalProperties: false };
  await publishTestPackages(box, [addon('shop', SETTINGS), addon('closed', closed), addon('plain', undefined)], signal);
  return box;
}

function bundle(box: Tree, ...words: readonly string[]): Promise<Outcome> {
  return runCommand(['bundle', 'spec.yaml', '--from', 'store', ...words], box.path);
}

const WRONG = `  shop:
    version: latest
    replcias: 3
    size: m
  closed:
    version: 1.0.x
    sise: s
  plain: {version: latest, anything: 1}
`;

const FOUND = `spec.yaml:5:3 error installer/schema: shop requires the setting "replicas"
  hint: its type is integer
spec.yaml:7:5 error installer/unknown-setting: shop has no setting "replcias"
  hint: did you mean "replicas"?
spec.yaml:8:5 error installer/schema: shop.size must be one of "s", "l", but is "m"
spec.yaml:11:5 error installer/schema: closed has no setting "sise"
  hint: did you mean "size"?
`;

test('a bundle of a spec with misspelled, missing and wrong settings is refused with all of them', async ({
  signal,
}) => {
  await using box = await scene(WRONG, signal);
  for (const words of [['-o', 'b.tar.gz'], ['--dry-run'], ['--dry-run', '--out', 'plan.json']]) {
    const { exitCode, stdout, stderr } = await bundle(box, ...words);
    assert.equal([exitCode, stdout], [11, '']);
    assert.is(
      stderr,
      `${FOUND}error SPEC_INVALID: some settings of the spec do not match the schemas of its packages
  hint: correct the settings; if the spec of a site corrects them, use --allow-invalid-settings`,
    );
  }
  assert.equal((await readdir(box.path)).toSorted(), ['out', 'spec.yaml', 'store']);
  const judged = await runCommand(['installer', 'validate', 'spec.yaml', '--from', 'store'], box.path);
  assert.is(judged.exitCode, 11);
  assert.match(judged.stdout, /^spec\.yaml: not valid, 4 errors$/m);
  const [first = '', , third = ''] = FOUND.split('\n');
  assert.match(judged.stdout, first);
  assert.match(judged.stdout, third);
});

test('--allow-invalid-settings makes the bundle and says what does not fit; a saved plan has decided it', async ({
  signal,
}) => {
  await using box = await scene(WRONG, signal);
  const made = await bundle(box, '-o', 'b.tar.gz', '--allow-invalid-settings');
  assert.is(made.exitCode, 0, made.stderr);
  assert.match(made.stderr, 'spec.yaml:7:5: shop has no setting "replcias" (did you mean "replicas"?)');
  assert.match(made.stderr, 'spec.yaml:8:5: shop.size must be one of "s", "l", but is "m"');
  const words = ['--from-plan', 'plan.json', '--dry-run', '--allow-invalid-settings'];
  const decided = await runCommand(['bundle', ...words], box.path);
  assert.is(decided.exitCode, 64);
  assert.match(decided.stderr, 'already determines --allow-invalid-settings');
});

test('an add-on that is left out is not judged', async ({ signal }) => {
  await using box = await scene(WRONG, signal);
  const { stderr } = await bundle(box, '--dry-run', '--without', 'shop');
  assert.match(stderr, 'closed has no setting "sise"');
  assert.not.match(stderr, 'replicas');
});

const SEVERAL = `  shop:
    version: latest
    replicas: 0
  plain: {version: 2.0.x}
  plian: {version: latest}
  rook:
    version: 1.10.0
    cephReplicaCount: "3"
  weave: {version: 1.10}
`;

test('mistakes in the text, versions that there are not, and settings that do not fit are reported at once', async ({
  signal,
}) => {
  await using box = await scene(SEVERAL, signal);
  const made = await bundle(box, '--dry-run');
  const judged = await runCommand(['installer', 'validate', 'spec.yaml', '--from', 'store'], box.path);
  assert.equal([made.exitCode, judged.exitCode], [11, 11]);
  for (const line of [
    'spec.yaml:7:5 error installer/schema: shop.replicas must be >= 1, but is 0',
    'spec.yaml:8:3 error installer/unresolved: plain: latest patch version not found for 2.0.x',
    'spec.yaml:9:3 error installer/unresolved: plian: release r1 does not contain this add-on',
    'spec.yaml:10:3 error installer/unresolved: rook: release r1 does not contain this add-on',
    'spec.yaml:12:5 error installer/type: rook.cephReplicaCount must be a whole number, not "3"',
    'spec.yaml:13:11 error installer/version: weave: the version is read as the number 1.1',
  ]) {
    assert.match(made.stderr, line);
    assert.match(judged.stdout, line);
  }
  assert.match(made.stderr, 'error SPEC_INVALID: spec.yaml is not a valid installer spec');
});

test('a setting of --set that does not fit is found at the --set, not at a line of the spec', async ({ signal }) => {
  await using box = await scene('  shop:\n    version: latest\n    replicas: 3\n', signal);
  const words = [
    'installer',
    'validate',
    'spec.yaml',
    '--from',
    'store',
    '--set',
    'shop.replicas=0',
    '--set',
    'shop.size=m',
  ];
  const { exitCode, stdout } = await runCommand(words, box.path);
  assert.is(exitCode, 11);
  assert.match(stdout, /^--set shop\.replicas error installer\/schema: shop\.replicas must be >= 1, but is 0$/m);
  assert.match(stdout, /^--set shop\.size error installer\/schema: shop\.size /m);
  assert.not.match(stdout, /spec\.yaml:\d/);
});

test('a spec that does not exist is NOT_FOUND, and a folder is named as one', async () => {
  await using box = await tree({ 'folder/x': '' });
  const missing = await runCommand(['bundle', 'none.yaml', '--from', 'store', '--dry-run'], box.path);
  assert.is(missing.exitCode, 14);
  assert.match(missing.stderr, 'none.yaml: no such file');
  for (const words of [
    ['bundle', 'folder', '--from', 'store', '--dry-run'],
    ['installer', 'validate', 'folder'],
  ]) {
    const { exitCode, stderr } = await runCommand(words, box.path);
    assert.is(exitCode, 25);
    assert.is(stderr, `error FILE_UNUSABLE: cannot read ${box.at('folder')}: it is a folder\n  hint: specify a file`);
  }
});

test('mistakes in the text are reported also where the store cannot be read', async () => {
  await using box = await tree({ 'spec.yaml': `${HEAD}  plain: {version: [1]}\n` });
  const { exitCode, stderr } = await bundle(box, '--dry-run');
  assert.is(exitCode, 11);
  assert.match(stderr, 'plain: not a version');
});

test.run();
