import { execa } from 'execa';
import { writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { publishTestPackages } from '../support/bundles.ts';
import type { Outcome } from '../support/curlew.ts';
import { bundleOf, specOf } from '../support/node-bundles.ts';
import { tracer, tracerPackage } from '../support/node-install.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/installer');

async function installer(box: Tree, ...words: readonly string[]): Promise<Outcome> {
  return runCommand(['installer', ...words], box.path);
}

const HEAD = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: site}\nspec:\n';
const GOOD = `${HEAD}  kubernetes: {version: 1.26.x, HACluster: true}\n  kurl: {nameserver: "a 'b' $(id)\\nc"}\n`;
const SITE = `${HEAD}  kubernetes: {clusterName: mine}\n`;

test('validate tells everything at once with the line it means, and ends with 11', async () => {
  const bad = `${HEAD}  rook:\n    version: 1.10\n    cephReplicaCuont: 3\n  kurl:\n    airgap: "true"\n`;
  await using box = await tree({ 'bad.yaml': bad, 'good.yaml': GOOD, 'site.yaml': SITE });
  const { exitCode, stdout } = await installer(box, 'validate', 'bad.yaml');
  assert.is(exitCode, 11);
  assert.is(
    stdout,
    `bad.yaml:6:5 error installer/version: rook: the version is read as the number 1.1
      version: 1.10
      ^^^^^^^
  hint: put it in quotes
bad.yaml:7:5 warning installer/unknown-setting: kURL has no setting "cephReplicaCuont" of rook
      cephReplicaCuont: 3
      ^^^^^^^^^^^^^^^^
  hint: did you mean "cephReplicaCount"?
bad.yaml:9:5 error installer/type: kurl.airgap must be true or false, not "true"
      airgap: "true"
      ^^^^^^
  hint: write it without quotes
bad.yaml: not valid, 2 errors, 1 warning`,
  );
  assert.is(
    (await installer(box, 'validate', 'good.yaml')).stdout,
    'good.yaml: valid, 1 add-on; versions not checked (add --from STORE)',
  );
  const merged = await installer(box, 'validate', 'good.yaml', 'installer-spec-file=site.yaml', '--json');
  assert.is(merged.exitCode, 0);
  assert.equal(JSON.parse(merged.stdout), {
    verb: 'validate',
    files: ['good.yaml', 'site.yaml'],
    valid: true,
    addons: 1,
    diagnostics: [],
  });
});

test('the name of a package is not a mistake, even if it is nearly one of kURL’s', async ({ signal }) => {
  await using box = await tree({
    'i.yaml': specOf([{ name: 'ticker', version: '1.0.0' }]),
    'typo.yaml': specOf([{ name: 'tikcer', version: '1.0.0' }]),
  });
  await publishTestPackages(box, [tracerPackage('ticker')], signal);
  const from = ['--from', 'store'];
  const bundled = ['install', '--root', 'root', '--unconfined', '--bundle', 'b.tar.gz'];
  for (const words of [
    ['bundle', 'i.yaml', ...from, '-o', 'b.tar.gz'],
    [...bundled, '--dry-run'],
    ['installer', 'validate', 'i.yaml', ...from],
    ['installer', 'resolve', 'i.yaml', ...from],
  ]) {
    const { exitCode, stdout, stderr } = await runCommand(words, box.path);
    assert.is(exitCode, 0, stderr);
    assert.not.match(stdout + stderr, /one of kURL's/);
  }
  assert.match((await installer(box, 'validate', 'i.yaml')).stdout, /"ticker" is not one of kURL's add-ons/);
  for (const words of [
    ['bundle', 'typo.yaml', ...from, '-o', 'other.tar.gz'],
    [...bundled, '--installer', 'typo.yaml'],
  ])
    assert.match((await runCommand(words, box.path)).stderr, /did you mean "?ticker"?\?/);
});

for (const [title, value] of [
  ['an alias', '*hunter2'],
  ['a tag', '!hunter2 x'],
  ['the head of a block', '|hunter2'],
  ['a map', '{hunter2'],
  ['of another kind', '[hunter2]'],
] as const) {
  test(`a password that YAML takes for ${title} is not repeated`, async () => {
    const text = `${HEAD}  kubernetes: {version: 1.0.0}\n  web:\n    version: 1.0.0\n    maxSize: x\n    adminPassword: ${value}\n`;
    await using box = await tree({
      'a.yaml': text,
      'b.yaml': text.replace('web', 'kubernetes').replace(/^.*0}\n/m, ''),
    });
    for (const file of ['a.yaml', 'b.yaml']) {
      for (const words of [
        ['validate', file],
        ['validate', file, '--json'],
        ['id', file],
      ]) {
        const { stdout, stderr } = await installer(box, ...words);
        assert.not.match(stdout + stderr, 'hunter2');
      }
    }
  });
}

test('env and the lines of findings do not show what is secret by its name', async () => {
  const text = `${HEAD}  kubernetes:\n    version: 1.0.0\n    bootstrapToken: 4711\n  kurl: {proxyAddress: "http://u:pw@h:1"}\n`;
  await using box = await tree({ 'a.yaml': text, 'b.yaml': text.replace('4711', '"4711"') });
  const validated = await installer(box, 'validate', 'a.yaml');
  assert.match(validated.stdout, 'kubernetes.bootstrapToken must be a string, not something else');
  assert.match(validated.stdout, '      bootstrapToken: [secret]\n');
  const { stdout } = await installer(box, 'env', 'b.yaml', '--filled');
  assert.match(stdout, 'BOOTSTRAP_TOKEN="[secret]"');
  assert.match(stdout, 'PROXY_ADDRESS="http://h:1"');
  const json = await installer(box, 'env', 'b.yaml', '--json');
  assert.not.match(validated.stdout + stdout + json.stdout, /4711|u:pw/);
});

test('merge prints YAML, and refuses what is of another kind', async () => {
  await using box = await tree({ 'a.yaml': GOOD, 'b.yaml': SITE, 'c.yaml': 'apiVersion: v1\nkind: Pod\nspec: {}\n' });
  const { stdout } = await installer(box, 'merge', 'a.yaml', 'b.yaml');
  assert.match(stdout, /^apiVersion: .*\nkind: Installer\nmetadata:\n {2}name: merged\nspec:\n/);
  assert.match(stdout, '    clusterName: mine\n');
  await writeFile(box.at('merged.yaml'), stdout);
  assert.is((await installer(box, 'validate', 'merged.yaml')).exitCode, 0);
  const refused = await installer(box, 'merge', 'a.yaml', 'c.yaml');
  assert.is(refused.exitCode, 11);
  assert.match(
    refused.stderr,
    'c.yaml:2:1 error installer/merge: the overlay has kind "Pod", the base has "Installer"',
  );
});

test('env is read by bash as it is, and holds flags and the overlay', async () => {
  await using box = await tree({ 'a.yaml': GOOD, 'b.yaml': SITE });
  const words = ['installer-spec-file=b.yaml', 'yes', '--set', 'kurl.airgap=true'];
  const { stdout } = await installer(box, 'env', 'a.yaml', ...words);
  const show =
    'for name in NAMESERVER KUBERNETES_CLUSTER_NAME ASSUME_YES AIRGAP ROOK_VERSION; do printf "%s|" "${!name}"; done';
  const { stdout: seen } = await execa('bash', ['--norc', '-eu', '-c', `${stdout}\n${show}`]);
  assert.is(seen, "a 'b' $(id)\nc|mine|1|1||");
  const filled = (await installer(box, 'env', 'a.yaml', '--filled')).stdout;
  assert.not.match(filled, 'ROOK_VERSION');
  assert.match(filled, 'KUBERNETES_VERSION="1.26.x"');
});

test('id is the same for another name, and for another order of keys', async () => {
  const text = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec: {kubernetes: {version: 1.19.9}}\n';
  await using box = await tree({ 'a.yaml': text });
  assert.is((await installer(box, 'id', 'a.yaml')).stdout, 'd44632a');
  assert.is((await installer(box, 'id', 'a.yaml', '--json')).stdout, '{"verb":"id","id":"d44632a"}');
});

test('resolve says which versions a store or a bundle has for a spec, and env takes them', async ({ signal }) => {
  const spec = `${HEAD}  aaa: {version: latest}\n  bbb: {version: 1.0.x}\n`;
  await using box = await tree({
    'a.yaml': spec,
    'c.yaml': `${HEAD}  aaa: {version: 1.0.1}\n  ccc: {version: latest}\n`,
  });
  await publishTestPackages(box, [tracerPackage('aaa'), tracerPackage('bbb', '1.0.2')], signal);
  await writeFile(box.at('b.tar.gz'), bundleOf([tracer('aaa'), tracer('bbb')], specOf([])));
  const store = await installer(box, 'resolve', 'a.yaml', '--from', 'store');
  assert.is(store.stdout, 'aaa  1.0.0  latest\nbbb  1.0.2  greatest patch of 1.0', store.stderr);
  assert.match((await installer(box, 'env', 'a.yaml', '--from', 'store')).stdout, 'BBB_VERSION="1.0.2"');
  assert.match(
    (await installer(box, 'resolve', 'a.yaml', '--bundle', 'b.tar.gz')).stdout,
    /^aaa {2}1\.0\.0 {2}latest\nbbb/,
  );
  const unknown = await installer(box, 'resolve', 'c.yaml', '--from', 'store');
  assert.is(unknown.exitCode, 11);
  assert.match(unknown.stderr, /c\.yaml:5:3 error .* aaa: no version 1\.0\.1\n {2}hint: did you mean 1\.0\.0\?/);
  assert.match(unknown.stderr, /c\.yaml:6:3 error .* ccc: release \S+ does not contain this add-on/);
});

test('settings are held against the schema of the package', async () => {
  const schema = { type: 'object', properties: { version: {}, size: { type: 'integer' } } };
  const addon = { ...tracer('aaa'), extra: { settings: schema } };
  const spec = `${specOf([addon])}    siez: 3\n`;
  await using box = await tree({ 'a.yaml': spec, 'b.yaml': spec.replace('siez: 3', 'size: much') });
  await writeFile(box.at('b.tar.gz'), bundleOf([addon]));
  const slip = await installer(box, 'resolve', 'a.yaml', '--bundle', 'b.tar.gz');
  assert.equal([slip.exitCode, slip.stdout], [0, 'aaa  1.0.0  exact']);
  assert.is(slip.stderr, 'warning: a.yaml:8:5: aaa has no setting "siez" (did you mean "size"?)');
  const wrong = await installer(box, 'resolve', 'b.yaml', '--bundle', 'b.tar.gz');
  assert.is(wrong.exitCode, 11);
  assert.match(wrong.stderr, 'b.yaml:8:5 error installer/schema: aaa.size must be a whole number, but is "much"');
});

test('validate judges settings by the packages of a bundle, with what flags, an overlay and --set change', async () => {
  const schema = { type: 'object', required: ['size'], properties: { version: {}, size: { type: 'integer' } } };
  const addon = { ...tracer('aaa'), extra: { settings: schema } };
  const spec = specOf([addon]);
  const site = `${HEAD}  aaa: {size: 3}\n`;
  await using box = await tree({ 'a.yaml': `${spec}    siez: 3\n`, 'b.yaml': spec, 'site.yaml': site });
  await writeFile(box.at('b.tar.gz'), bundleOf([addon]));
  const slip = await installer(box, 'validate', 'a.yaml', '--bundle', 'b.tar.gz');
  assert.is(slip.exitCode, 11);
  assert.match(slip.stdout, 'a.yaml:6:3 error installer/schema: aaa requires the setting "size"');
  assert.match(slip.stdout, 'a.yaml:8:5 error installer/unknown-setting: aaa has no setting "siez"\n      siez: 3\n');
  assert.match(slip.stdout, /hint: did you mean "size"\?\na\.yaml: not valid, 2 errors$/);
  for (const more of ['installer-spec-file=site.yaml', '--set=aaa.size=3']) {
    const fits = await installer(box, 'validate', 'b.yaml', more, '--bundle', 'b.tar.gz');
    assert.equal([fits.exitCode, fits.stderr], [0, ''], fits.stdout);
  }
});

for (const [title, words, exitCode, message] of [
  [
    'an unknown command',
    ['vaildate', 'a.yaml'],
    64,
    /unknown command "installer vaildate"\n {2}hint: did you mean curlew installer validate\?/,
  ],
  ['no spec', ['id'], 64, /specify an installer spec/],
  ['a spec that is not there', ['id', 'none.yaml'], 14, /read none\.yaml: no such file/],
  ['a spec that is a folder', ['id', '.'], 25, /: it is a folder/],
  [
    'a merge without overlay',
    ['merge', 'a.yaml'],
    64,
    /specify a base and an overlay\n {2}hint: curlew installer merge --help lists its options/,
  ],
  ['an unknown flag', ['env', 'a.yaml', 'haa'], 64, /unknown flag "haa", did you mean ha\?/],
  [
    'a second spec',
    ['validate', 'a.yaml', 'b.yaml'],
    64,
    /b\.yaml: only one spec is allowed; for an overlay, use installer-spec/,
  ],
  ['an option of another command', ['id', 'a.yaml', '--filled'], 64, /installer id: unknown option --filled/],
  ['a resolve without a place', ['resolve', 'a.yaml'], 64, /resolve needs --from, --bundle or --dir/],
  [
    'a setting that does not fit',
    ['env', 'a.yaml', '--set', 'kurl.airgap=x'],
    64,
    /kurl\.airgap: it must be true or false/,
  ],
] as const) {
  test(`${title} is told`, async () => {
    await using box = await tree({ 'a.yaml': GOOD });
    const outcome = await installer(box, ...words);
    assert.equal([outcome.exitCode, outcome.stdout], [exitCode, '']);
    assert.match(outcome.stderr, message);
  });
}

test.run();
