/** `curlew channel check`, `explain` and `plan`, over files and over a web server. */
import { cp, rm, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

const test = suite('cli/channel', { timeoutMs: 60_000 });

const HEAD = 'apiVersion: fleet.curlew.dev/v1alpha1\nkind: Channel\nspec:\n  addons:\n';

/** A copy of an index of kops with its manifests, in `index`. */
async function kopsBox(): Promise<Tree> {
  const box = await tree();
  await cp('test/fixtures/channels/kops', box.at('index'), { recursive: true });
  return box;
}

async function channel(box: Tree, ...words: readonly string[]): Promise<Outcome> {
  return runCommand(['channel', ...words], box.path);
}

test('check: an index of kops is as good as its manifests', async () => {
  await using box = await kopsBox();
  for (const compat of ['kops', 'kops-2017', 'native']) {
    const { exitCode, stdout } = await channel(box, 'check', 'index/addon.yaml', '--compat', compat);
    assert.equal(
      [exitCode, stdout.split('\n').at(-1)],
      [0, '1 channel, 4 add-ons, 8 alternatives, 0 errors, 1 warning'],
    );
    assert.match(stdout, /^index\/addon\.yaml:\d+:1 warning channel\/document: only the first document/);
  }
  await writeFile(box.at('index/networking.weave/k8s-1.23.yaml'), 'kind: DaemonSet\nmetadata: {name: weave}\n');
  await rm(box.at('index/coredns.addons.k8s.io/k8s-1.28.yaml'));
  const { exitCode, stdout } = await channel(box, 'check', 'index/addon.yaml', '--compat', 'kops');
  assert.is(exitCode, 10);
  assert.match(
    stdout,
    /addon\.yaml:\d+:7 error channel\/hash: networking\.weave 2\.8\.1 \(k8s-1\.23\): index\/networking\.weave/,
  );
  assert.match(
    stdout,
    /addon\.yaml:\d+:7 error channel\/file: coredns\.addons\.k8s\.io 1\.11\.1 \(k8s-1\.28\): index\/.* does not exist/,
  );
  assert.match(
    stdout,
    /^index\/networking\.weave\/k8s-1\.23\.yaml:1:1 error manifest\/kind: apiVersion is missing\n {2}hint/m,
  );
});

test('check: each finding has its line, and --json has all of them', async () => {
  await using box = await tree({
    'c.yaml': `${HEAD}  - {name: a, version: 1.0.0, kubernetesVersion: ">=1.30", manifest: a.yaml, drfit: Keep}\n`,
  });
  const { exitCode, stdout } = await channel(box, 'check', 'c.yaml');
  assert.is(exitCode, 10);
  assert.match(stdout, '  - {name: a, version: 1.0.0, kubernetesVersion: ">=1.30", manifest: a.yaml, drfit: Keep}');
  assert.match(
    stdout,
    /c\.yaml:5:\d+ error channel\/unknown-field: "drfit" is not a field\n.*\n +\^{5}\n {2}hint: write "drift"/,
  );
  const json = JSON.parse((await channel(box, 'check', 'c.yaml', '--json')).stdout) as Record<string, unknown>;
  assert.equal([json['errors'], json['warnings']], [2, 0]);
  assert.equal(json['channels'], [{ location: 'c.yaml', addons: 0, entries: 0, error: 'MANIFEST_INVALID' }]);
});

test('check: channels are separate, and an add-on of two of them is named', async () => {
  await using box = await tree({
    'a.yaml': `${HEAD}  - {name: web, version: 1.0.0, package: web-1.0.0.tar.gz}\n`,
    'b.yaml': `${HEAD}  - {name: web, version: 2.0.0, package: web-2.0.0.tar.gz}\n`,
  });
  const { exitCode, stdout } = await channel(box, 'check', 'a.yaml', 'none.yaml', 'b.yaml');
  assert.is(exitCode, 14);
  assert.match(stdout, /^none\.yaml error channel\/unreadable: cannot read .*none\.yaml: no such file/m);
  assert.match(stdout, /^b\.yaml:5:6 warning channel\/shared: web is also in a\.yaml: channels are separate/m);
  assert.match(stdout, /^3 channels, 2 add-ons, 2 alternatives, 1 error, 1 warning$/m);
});

test('check: secrets of lines and addresses are not shown', async () => {
  const text = `${HEAD}  - {name: a, version: 1.0.0, chart: {oci: "oci://x/y", values: {password: hunter2}}, x: 1}\n`;
  await using server = await serveFiles({ 'c.yaml': text });
  await using box = await tree();
  const { exitCode, stdout } = await channel(box, 'check', `${server.url.replace('//', '//user:hunter2@')}/c.yaml`);
  assert.is(exitCode, 10);
  assert.match(stdout, /^http:\/\/127\.0\.0\.1:\d+\/c\.yaml:5:\d+ error channel\/unknown-field: "x" is not a field/);
  assert.not.match(stdout, 'hunter2');
});

for (const [title, words, message] of [
  ['no location', ['check'], /specify a channel: .*\n {2}hint: curlew channel check --help lists its options/],
  ['rules that do not exist', ['check', 'a.yaml', '--compat', 'kop'], /must be one of native, kops, kops-2017/],
  [
    'an unknown command',
    ['chekc', 'a.yaml'],
    /unknown command "channel chekc"\n {2}hint: did you mean curlew channel check\?/,
  ],
] as const) {
  test(`${title} is reported`, async () => {
    await using box = await tree();
    const { exitCode, stderr } = await channel(box, ...words);
    assert.is(exitCode, 64);
    assert.match(stderr, message);
  });
}

test.run();
