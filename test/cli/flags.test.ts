/** The flags of kURL's scripts behind install, join and upgrade, and a site's own spec among them. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew, type Outcome } from '../support/curlew.ts';
import { boxWith, specOf } from '../support/node-bundles.ts';
import { traced, tracer } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';

const test = suite('cli/flags', { timeoutMs: 120_000 });

async function install(box: Tree, ...more: readonly string[]): Promise<Outcome> {
  const words = ['install', '--root', box.at('root'), '--unconfined', '--bundle', 'b.tar.gz', ...more];
  return runTraced(words, box);
}

const HEAD = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: site}\nspec:\n';
const SEEN = `aaa() {
  printf '%s\\n' "$HA_CLUSTER" "$NODE_LABELS" "$ASSUME_YES" "$PRIMARY_HOST" "$DOCKER_REGISTRY_IP" "$AAA_SIZE" \\
    "$ADDITIONAL_NO_PROXY_ADDRESSES" "$INSTALLER_ID" >>"$TRACE.seen"
}`;
const SPEC = `${specOf([{ name: 'aaa', version: '1.0.0' }])}    size: small\n  kurl: {additionalNoProxyAddresses: [a]}\n`;

test('hooks find what flags and a site’s spec say, and both are gone on with', async () => {
  const failing = `${SEEN}\naaa_post_init() { [ -e "$TRACE.go" ]; }`;
  await using box = await boxWith([tracer('aaa', failing)], SPEC);
  await writeFile(box.at('site.yaml'), `${HEAD}  aaa: {size: '$(id)'}\n`);
  const flags = ['ha', 'yes', 'labels=x=y,z', 'primary-host=p1', 'primary-host=p2', 'docker-registry-ip=10.0.0.9'];
  const words = [...flags, 'additional-no-proxy-addresses=b', 'installer-spec-file=site.yaml', 'force-reapply-addons'];
  const first = await install(box, ...words);
  assert.is(first.exitCode, 20, first.stderr);
  assert.match(first.stderr, 'the flag force-reapply-addons has no effect');
  const seen = (await readFile(box.at('trace.seen'), 'utf8')).trim().split('\n');
  assert.equal(seen.slice(0, -1), ['1', 'x=y,z', '1', 'p1,p2', '10.0.0.9', '$(id)', 'a,b']);
  assert.match(seen.at(-1) ?? '', /^[0-9a-f]{7}$/);
  await writeFile(box.at('trace.go'), '');
  await writeFile(box.at('site.yaml'), 'no longer a spec');
  const again = await curlew(['resume', '--root', box.at('root')], traced(box));
  assert.is(again.exitCode, 0, again.stderr);
  assert.is((await readFile(box.at('trace.seen'), 'utf8')).trim().split('\n').length, seen.length);
});

test('kurl-install-directory means the folder kurl below it; another --install-dir beside it is refused', async () => {
  await using box = await boxWith([tracer('aaa')]);
  const { exitCode, stderr } = await install(box, 'kurl-install-directory=/srv/data');
  assert.is(exitCode, 0, stderr);
  await stat(box.at('root/srv/data/kurl/records.json'));
  const both = await install(box, 'kurl-install-directory=/srv/data', '--install-dir', '/srv/data');
  assert.is(both.exitCode, 64);
  assert.match(both.stderr, 'name different folders');
});

for (const [title, overlay, exitCode, message] of [
  ['that is not there', undefined, 14, /installer-spec-file: site\.yaml does not exist/],
  ['of another kind', 'apiVersion: v1\nkind: ConfigMap\nspec: {}\n', 11, /site\.yaml:2:1 error installer\/kind/],
  [
    'with a wrong type',
    `${HEAD}  kurl: {airgap: "yes"}\n`,
    11,
    /site\.yaml:5:10 error installer\/type: kurl\.airgap must/,
  ],
  ['that is no YAML', `${HEAD}  kurl: {`, 11, /site\.yaml:5:\d+ error yaml\/syntax/],
] as const) {
  test(`a site’s spec ${title} is told, and nothing is changed`, async () => {
    await using box = await boxWith([tracer('aaa')], SPEC);
    if (overlay !== undefined) await writeFile(box.at('site.yaml'), overlay);
    const outcome = await install(box, 'installer-spec-file=site.yaml');
    assert.equal([outcome.exitCode, outcome.stdout], [exitCode, ''], outcome.stderr);
    assert.match(outcome.stderr, message);
    assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
  });
}

test('settings that do not fit the schema of their package are told before anything is changed', async () => {
  const schema = { type: 'object', properties: { size: { enum: ['s', 'l'] } } };
  await using box = await boxWith([{ ...tracer('aaa'), extra: { settings: schema } }]);
  const { exitCode, stderr } = await install(box, '--set', 'aaa.size=m');
  assert.is(exitCode, 11);
  assert.match(stderr, /^--set aaa\.size error installer\/schema: aaa\.size must be one of "s", "l"/);
  assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
});

test('a setting of --set that nothing has checked is named, with its variable, and a misspelled one has a hint', async () => {
  await using box = await boxWith([tracer('aaa')], SPEC);
  const free = await install(box, '--dry-run', '--set', 'aaa.size=s3cret', '--set', 'kurl.airgap=true');
  assert.equal(
    [free.exitCode, free.stderr],
    [
      0,
      '--set aaa.size: nothing has checked this setting, because aaa 1.0.0 has no schema.json; its hooks get it as AAA_SIZE',
    ],
  );
  const { exitCode, stderr } = await install(box, '--dry-run', '--set', 'kurl.hostnameChek=x');
  assert.equal(
    [exitCode, stderr],
    [0, 'warning: --set kurl.hostnameChek: kURL has no setting "hostnameChek" of kurl (did you mean "hostnameCheck"?)'],
  );
});

test('a setting of --set that the schema of its package knows needs no remark', async () => {
  const schema = { type: 'object', properties: { size: {} } };
  await using box = await boxWith([{ ...tracer('aaa'), extra: { settings: schema } }]);
  const { exitCode, stderr } = await install(box, '--dry-run', '--set', 'aaa.size=m');
  assert.equal([exitCode, stderr], [0, '']);
});

test('all that is wrong with flags is told at once, without their values', async () => {
  await using box = await boxWith([tracer('aaa')]);
  const { exitCode, stderr } = await install(box, 'kubeadm-tokn=s3cret', 'labels', 'ha=s3cret', 'yes', 'yes');
  assert.is(exitCode, 64);
  const parts = ['did you mean kubeadm-token', 'labels requires a value', 'ha takes no value', 'yes is given twice'];
  for (const part of parts) assert.match(stderr, part);
  assert.not.match(stderr, 's3cret');
  const dashed = await install(box, '--labels=s3cret');
  assert.is(dashed.exitCode, 64);
  assert.match(dashed.stderr, 'unknown option --labels\n  hint: write the flag without dashes: labels');
});

test.run();
