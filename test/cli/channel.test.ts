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
    /c\.yaml:5:\d+ error channel\/unknown-field: "drfit" is not a field\n.*\n +\^{5}\n {2}hint: did you mean "drift"\?/,
  );
  const json = JSON.parse((await channel(box, 'check', 'c.yaml', '--json')).stdout) as Record<string, unknown>;
  assert.equal([json['errors'], json['warnings']], [2, 0]);
  assert.equal(json['channels'], [{ location: 'c.yaml', addons: 0, entries: 0, error: 'MANIFEST_INVALID' }]);
});

test('check: warnings of one kind are counted if they are many, and --all shows them', async () => {
  const names = Array.from({ length: 30 }, (_, at) => `a${at}`);
  const entries = names.map(
    (name) => `  - {name: ${name}, version: 1.0.0, package: a-1.0.0.tar.gz, requires: [{name: z${name}}]}\n`,
  );
  await using box = await tree({ 'c.yaml': HEAD + entries.join('') });
  const few = await channel(box, 'check', 'c.yaml');
  assert.is(few.exitCode, 0);
  const counted = 'warning channel/requires: 30 findings, the first at c.yaml:5:6 (--all shows them)';
  assert.equal(few.stdout.split('\n'), [counted, '1 channel, 30 add-ons, 30 alternatives, 0 errors, 30 warnings']);
  assert.is((await channel(box, 'check', 'c.yaml', '--all')).stdout.match(/ warning channel\/requires/g)?.length, 30);
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
  assert.match(both.stdout, 'a.yaml:5: web 1.0.0\n  applies chart 1.0.0 from oci://r/web\n');
  assert.match(both.stdout, /none\.yaml: cannot read .*: no such file\n/);
  assert.match(both.stdout, 'c.yaml: does not have web');
  const json = await channel(box, 'explain', 'web', 'a.yaml', '--kubernetes', '1.30.0', '--json');
  assert.not.match(json.stdout, 'hunter2');
  const typo = await channel(box, 'explain', 'wbe', 'a.yaml', '--kubernetes', '1.30.0');
  assert.equal([typo.exitCode, typo.stderr.split('hint: ')[1]], [14, 'did you mean web?']);
  const unread = await channel(box, 'explain', 'web', 'none.yaml', '--kubernetes', '1.30.0');
  assert.equal([unread.exitCode, unread.stdout], [14, '']);
});

/** A channel with Kubernetes itself, in which add-ons overlap by a minor, but `dns` does not. */
const UPGRADE = `${HEAD}  - {name: kubernetes, version: 1.31.3, package: kubernetes-1.31.3.tar.gz}
  - {name: kubernetes, version: 1.31.4, package: kubernetes-1.31.4.tar.gz}
  - {name: kubernetes, version: 1.32.1, package: kubernetes-1.32.1.tar.gz}
  - {name: web, version: 1.0.0, kubernetesVersion: "<1.32.0", manifest: a.yaml}
  - {name: web, version: 2.0.0, kubernetesVersion: ">=1.31.0", manifest: b.yaml, requires: [{name: db, version: ">=2.0.0"}]}
  - {name: db, version: 1.0.0, kubernetesVersion: "<1.31.0", manifest: c.yaml}
  - {name: db, version: 2.0.0, kubernetesVersion: ">=1.30.0", manifest: c.yaml}
  - {name: dns, version: 1.0.0, kubernetesVersion: "<1.32.0", manifest: d.yaml}
  - {name: dns, version: 1.1.0, kubernetesVersion: ">=1.32.0", manifest: e.yaml}
`;

test('plan: each minor of Kubernetes in turn, and each add-on before the step that it does not fit', async () => {
  await using box = await tree({ 'c.yaml': UPGRADE });
  const plan = async (...words: readonly string[]): Promise<Outcome> =>
    channel(box, 'plan', 'c.yaml', '--from', 'v1.30.2', ...words);
  const installed = ['--installed', 'web=1.0.0', '--installed', 'db=1.0.0'];
  const { exitCode, stdout } = await plan('--to', 'v1.32.x', ...installed, '--installed', 'wbe=1');
  assert.is(exitCode, 0);
  assert.is(
    stdout,
    `Kubernetes v1.30.2 -> v1.31.4 -> v1.32.1

STEP  TO                  WHY
1     db 2.0.0            what is installed does not fit v1.31.4
2     Kubernetes v1.31.4  all add-ons fit it
3     web 2.0.0           what is installed does not fit v1.32.1
4     Kubernetes v1.32.1  all add-ons fit it
note: wbe is in none of the channels: nothing is planned for it (did you mean web?)`,
  );
  // Without --installed, it is what the channel has for the cluster's version: the newest db already.
  const json = JSON.parse((await plan('--to', 'v1.31.3', '--json')).stdout) as Record<string, unknown>;
  assert.equal(json['steps'], [
    { type: 'kubernetes', version: 'v1.31.3', source: 'package kubernetes-1.31.3.tar.gz' },
    {
      type: 'addon',
      addon: 'web',
      version: '2.0.0',
      id: '',
      kubernetesVersion: '>=1.31.0',
      because: 'the newest that fits',
      source: 'manifest b.yaml',
    },
  ]);
  const nothing = await plan('--to', 'v1.30.2', '--installed', 'db=2.0.0');
  assert.is(nothing.stdout, 'Kubernetes v1.30.2\n\nnothing to do');
});

test('plan: a gap is all that is printed, with the entries that nearly fit', async () => {
  await using box = await tree({ 'c.yaml': UPGRADE });
  const words = ['plan', 'c.yaml', '--from', 'v1.30.2', '--to', 'v1.32.x'];
  const { exitCode, stdout } = await channel(box, ...words);
  assert.is(exitCode, 14);
  assert.is(
    stdout,
    `gap at v1.32.1: dns 1.0.0 does not fit it, and no version to move to fits
v1.31.4 as well
  NEAR       KUBERNETES  WHY NOT
  dns 1.1.0  >=1.32.0    not for v1.31.4
  dns 1.0.0  <1.32.0     not for v1.32.1
hint: if it runs there, let the range of dns 1.1.0 include v1.31.4, or let the
range of dns 1.0.0 include v1.32.1; --allow-gap moves dns right after the step,
as kops does`,
  );
  const allowed = await channel(box, ...words, '--allow-gap');
  assert.is(allowed.exitCode, 0);
  assert.match(allowed.stdout, /^\d {5}Kubernetes v1\.32\.1 +GAP: it is not for dns until the next step$/m);
  assert.match(allowed.stdout, /^\d {5}dns 1\.1\.0 +GAP: until now, what is installed does not fit v1\.32\.1$/m);
  const json = JSON.parse((await channel(box, ...words, '--json')).stdout) as Record<string, unknown>;
  assert.equal(json['steps'], []);
  const further = await channel(
    box,
    'plan',
    'c.yaml',
    '--from',
    'v1.31.4',
    '--to',
    'v1.33.x',
    '--installed',
    'web=2.0.0',
  );
  assert.is(further.exitCode, 14);
  assert.match(further.stderr, /gap at v1\.33: no Kubernetes of this minor is available\n {2}hint: .*--available/);
  const named = ['--available', '1.33.0', '--installed', 'db=2.0.0', '--installed', 'web=2.0.0'];
  const passes = await channel(box, 'plan', 'c.yaml', '--from', 'v1.31.4', '--to', 'v1.33.x', ...named);
  assert.match(passes.stdout, /^Kubernetes v1\.31\.4 -> v1\.32\.1 -> v1\.33\.0\n/);
});

test('plan: what is installed without being in the channel, or for this Kubernetes, is named', async () => {
  await using box = await tree({ 'c.yaml': UPGRADE });
  const installed = ['--installed', 'db=1.5.0', '--installed', 'web=2.0.0'];
  const { stdout } = await channel(box, 'plan', 'c.yaml', '--from', 'v1.30.2', '--to', '1.31.4', ...installed);
  assert.match(stdout, 'note: db 1.5.0 is not in the channel: it counts as not fitting any Kubernetes');
  assert.match(stdout, 'note: web 2.0.0 is not for Kubernetes v1.30.2, which the cluster has');
});

test('plan: an add-on is planned only downward where that is allowed', async () => {
  await using box = await tree({
    'c.yaml': `${HEAD}  - {name: a, version: 2.0.0, kubernetesVersion: "<1.31.0", manifest: a.yaml}
  - {name: a, version: 1.0.0, kubernetesVersion: ">=1.30.0", manifest: b.yaml}
`,
  });
  const words = ['plan', 'c.yaml', '--from', 'v1.30.0', '--to', 'v1.31.0', '--installed', 'a=2.0.0'];
  const refused = await channel(box, ...words);
  assert.equal(
    [
      refused.exitCode,
      ...refused.stdout.split('\n').flatMap((line, at, all) => (at < all.length - 3 ? [] : [line.trim()])),
    ],
    [
      14,
      'a 1.0.0  >=1.30.0    it is lower than the installed 2.0.0',
      'a 2.0.0  <1.31.0     not for v1.31.0',
      'hint: --allow-downgrade moves to a 1.0.0',
    ],
  );
  const allowed = await channel(box, ...words, '--allow-downgrade');
  assert.match(allowed.stdout, /^1 +a 1\.0\.0 +what is installed/m);
});

test('plan: an add-on of two channels and channels of different rules are refused, and so is a channel with errors', async () => {
  await using box = await kopsBox();
  await writeFile(box.at('c.yaml'), UPGRADE);
  await writeFile(box.at('d.yaml'), UPGRADE);
  await writeFile(box.at('bad.yaml'), `${HEAD}  - {name: a}\n`);
  const plan = async (...channels: readonly string[]): Promise<readonly [number, string]> => {
    const words = ['--from', 'v1.31.3', '--to', 'v1.31.4', '--compat', 'kops'];
    const { exitCode, stderr } = await channel(box, 'plan', ...channels, ...words);
    return [exitCode, stderr.split('\n').find((line) => line.startsWith('error')) ?? ''];
  };
  assert.equal(await plan('c.yaml', 'd.yaml'), [64, 'error USAGE: cannot plan web: it is in c.yaml and in d.yaml']);
  const rules = 'error USAGE: cannot plan channels with different rules: native, kops';
  assert.equal(await plan('c.yaml', 'index/addon.yaml'), [64, rules]);
  const bad = 'error MANIFEST_INVALID: cannot use bad.yaml: 2 errors';
  assert.equal(await plan('c.yaml', 'bad.yaml'), [10, bad]);
});

for (const [title, words, message] of [
  ['plan without a target', ['plan', 'a.yaml', '--from', 'v1.30.0'], /channel plan: add --to v1\.35\.x/],
  ['explain without an add-on', ['explain'], /specify an add-on and a channel/],
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

test('without a version and without a cluster, the option and the kubeconfig are named', async () => {
  await using box = await tree();
  for (const [words, option] of [
    [['explain', 'a', 'a.yaml'], '--kubernetes'],
    [['plan', 'a.yaml', '--to', 'v1.30.0'], '--from'],
  ] as const) {
    const { exitCode, stderr } = await channel(box, ...words, '--kubeconfig', 'none');
    assert.is(exitCode, 33);
    assert.match(
      stderr,
      new RegExp(`cannot find a cluster: \\S+none does not exist\\n {2}hint: .*, or add ${option} v1`),
    );
  }
});

test.run();
