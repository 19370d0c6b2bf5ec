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

test('explain: the entry for each Kubernetes version, and why not each other one', async () => {
  await using box = await kopsBox();
  const explain = async (...words: readonly string[]): Promise<Outcome> =>
    channel(box, 'explain', 'coredns.addons.k8s.io', 'index/addon.yaml', ...words);
  const { exitCode, stdout } = await explain('--kubernetes', 'v1.31.4-eks-1', '--compat', 'kops');
  assert.is(exitCode, 0);
  assert.is(
    stdout,
    `coredns.addons.k8s.io for Kubernetes v1.31.4-eks-1

index/addon.yaml:17: coredns.addons.k8s.io 1.11.1 (k8s-1.28)
  applies manifest index/coredns.addons.k8s.io/k8s-1.28.yaml
   VERSION  ID        KUBERNETES        WHY
   1.9.4    k8s-1.19  <1.28.0           not for v1.31.4-eks-1
*  1.11.1   k8s-1.28  >=1.28.0 <1.32.0  chosen
   1.12.0   k8s-1.32  >=1.32.0          not for v1.31.4-eks-1`,
  );
  const chosen = [];
  for (const kubernetes of ['1.20', 'v1.28.0-beta.1', '1.31.99', '1.32.0']) {
    const json = JSON.parse((await explain('--kubernetes', kubernetes, '--json')).stdout) as {
      readonly channels: readonly { readonly chosen: { readonly version: string } }[];
    };
    chosen.push(json.channels[0]?.chosen.version);
  }
  assert.equal(chosen, ['1.9.4', '1.11.1', '1.11.1', '1.12.0']);
});

test('explain: where no entry fits, the nearest ones are named, and the status says so', async () => {
  await using box = await tree({
    'c.yaml': `${HEAD}  - {name: web, version: 1.0.0, kubernetesVersion: "<1.28.0", manifest: a.yaml}
  - {name: web, version: 2.0.0, kubernetesVersion: ">=1.31.0 <1.33.0", manifest: b.yaml, requires: [{name: db}]}
  - {name: web, version: 3.0.0, kubernetesVersion: ">=1.33.0", manifest: c.yaml}
`,
  });
  const none = await channel(box, 'explain', 'web', 'c.yaml', '--kubernetes', '1.29.0');
  assert.is(none.exitCode, 14);
  assert.match(
    none.stdout,
    'c.yaml: no entry of web is for Kubernetes 1.29.0; nearest: web 1.0.0 (line 5), web 2.0.0 (line 6)\n',
  );
  const some = await channel(box, 'explain', 'web', 'c.yaml', '--kubernetes', '1.32.0');
  assert.match(some.stdout, /c\.yaml:6: web 2\.0\.0\n {2}applies manifest b\.yaml\n {2}requires db\n/);
});

test('explain: channels are separate, and an add-on of none of them is an error with the nearest name', async () => {
  const values = '{oci: "oci://r/web", values: {password: hunter2}}';
  await using box = await tree({
    'a.yaml': `${HEAD}  - {name: web, version: 1.0.0, chart: ${values}}\n`,
    'b.yaml': `${HEAD}  - {name: web, version: 2.0.0, manifest: b.yaml}\n`,
    'c.yaml': HEAD.replace('addons:', 'addons: []'),
  });
  const both = await channel(
    box,
    'explain',
    'web',
    'a.yaml',
    'none.yaml',
    'b.yaml',
    'c.yaml',
    '--kubernetes',
    '1.30.0',
  );
  assert.is(both.exitCode, 14);
  assert.match(both.stdout, 'web is in 2 of these channels, which are separate: leave it to one of them\n');
  assert.match(both.stdout, 'a.yaml:5: web 1.0.0\n  applies chart from oci://r/web\n');
  assert.match(both.stdout, /none\.yaml: cannot read .*: no such file\n/);
  assert.match(both.stdout, 'c.yaml: does not have web');
  const json = await channel(box, 'explain', 'web', 'a.yaml', '--kubernetes', '1.30.0', '--json');
  assert.not.match(json.stdout, 'hunter2');
  const typo = await channel(box, 'explain', 'wbe', 'a.yaml', '--kubernetes', '1.30.0');
  assert.equal([typo.exitCode, typo.stderr.split('hint: ')[1]], [14, 'did you mean web?']);
  const unread = await channel(box, 'explain', 'web', 'none.yaml', '--kubernetes', '1.30.0');
  assert.equal([unread.exitCode, unread.stdout], [14, '']);
});

for (const [title, words, message] of [
  ['explain without an add-on', ['explain'], /specify an add-on and a channel/],
  [
    'explain without a version',
    ['explain', 'a', 'a.yaml'],
    /version of Kubernetes is missing\n {2}hint: add --kubernetes/,
  ],
  [
    'a version that is none',
    ['explain', 'a', 'a.yaml', '--kubernetes', 'x'],
    /not a version of Kubernetes: x\n {2}hint/,
  ],
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
