import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { writeRecords } from '../../src/runtime/node/records.ts';
import { NO_RECORDS, settingsDigest } from '../../src/runtime/plan/records.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { startKubeServer, statusReply } from '../support/kube-server.ts';
import { boxWith, bundleOf, specOf } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { specText } from '../support/preflight.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files, type Tree } from '../support/tree.ts';

const test = suite('cli/preflight');

async function preflight(box: Tree, ...words: readonly string[]): Promise<Outcome> {
  return runCommand(['preflight', ...words], box.path);
}

const judging = (name: string, verdict: string): string =>
  specText(`  collectors:
    - memory: {}
  analyzers:
    - memory:
        checkName: ${name}
        outcomes: [{${verdict}: {message: '${name} says ${verdict}'}}]
`);

const SPECS: Files = {
  'pass.yaml': judging('A', 'pass'),
  'warn.yaml': judging('B', 'warn'),
  'fail.yaml': judging('C', 'fail'),
};

test('the exit status is 0, 3, 2 or 1', async () => {
  await using box = await tree(SPECS);
  const passed = await preflight(box, 'pass.yaml');
  assert.equal([passed.exitCode, passed.stdout], [0, '[PASS] A: A says pass\n1 passed, 0 with a warning, 0 failed']);
  assert.is((await preflight(box, 'pass.yaml', 'warn.yaml')).exitCode, 3);
  const ignored = await preflight(box, 'warn.yaml', '--ignore-warnings');
  assert.is(ignored.exitCode, 2);
  assert.match(ignored.stdout, 'Warnings ignored by CLI flag "ignore-warnings"');
  assert.is((await preflight(box, 'fail.yaml', 'warn.yaml', '--ignore-warnings')).exitCode, 1);
  const one = await preflight(box, 'fail.yaml', 'warn.yaml', '--ignore', 'c');
  assert.is(one.exitCode, 3);
  assert.match(one.stdout, '[FAIL] C: C says fail (ignored)\n');
  assert.match(one.stdout, '0 passed, 1 with a warning, 0 failed, 1 ignored');
});

test('results are also JSON, and a text in a file', async () => {
  await using box = await tree(SPECS);
  const { stdout } = await preflight(box, 'pass.yaml', 'warn.yaml', '--json', '--save', 'results.txt');
  const found = JSON.parse(stdout) as Record<string, unknown>;
  assert.equal([found['status'], found['counts']], [3, { pass: 1, warn: 1, fail: 0 }]);
  assert.equal((found['results'] as readonly unknown[])[0], {
    verdict: 'pass',
    title: 'A',
    message: 'A says pass',
    strict: false,
    spec: 'test',
  });
  assert.match(
    await readFile(box.at('results.txt'), 'utf8'),
    '[results]\n[PASS] A: A says pass\n[WARN] B: B says warn\n',
  );
});

test('facts are kept and judged later, by other specs', async () => {
  const small = judging('D', 'pass').replace('{pass:', "{fail: {when: '< 1k', message: small}}, {pass:");
  await using box = await tree({ ...SPECS, 'small.yaml': small });
  assert.is((await preflight(box, 'pass.yaml', '--save-facts', 'facts.json')).exitCode, 0);
  assert.is((await preflight(box, 'small.yaml', '--from', 'facts.json')).exitCode, 0);
  const facts = await readFile(box.at('facts.json'), 'utf8');
  await writeFile(box.at('facts.json'), facts.replace(/"total": \d+/, '"total": 5'));
  const judged = await preflight(box, 'small.yaml', '--from', 'facts.json');
  assert.equal([judged.exitCode, judged.stdout.split('\n')[0]], [1, '[FAIL] D: small']);
  await writeFile(box.at('facts.json'), '{}');
  const refused = await preflight(box, 'small.yaml', '--from', 'facts.json');
  assert.is(refused.exitCode, 11);
  assert.match(refused.stderr, 'not a facts file');
});

test('a bundle brings its specs, judged with its settings', async () => {
  const files = {
    'install.sh': 'aaa() { :; }\n',
    'host-preflight.yaml': judging('{{kurl .Installer.Spec.Aaa.Size }}{{kurl .Installer.Spec.Kurl.Airgap }}', 'warn'),
  };
  const addon = { name: 'aaa', version: '1.0.0', files };
  const spec = `${specOf([addon])}    size: big\n`;
  await using box = await boxWith([addon], spec);
  const { stdout, exitCode } = await preflight(box, '--bundle', 'b.tar.gz', '--exclude-builtin');
  assert.equal([exitCode, stdout.split('\n')[0]], [3, '[WARN] bigtrue: bigtrue says warn']);
  const set = await preflight(box, '--bundle', 'b.tar.gz', '--exclude-builtin', '--set', 'aaa.size=tiny');
  assert.match(set.stdout, '[WARN] tinytrue: tinytrue says warn');
});

test('what is built in is for nodes of Kubernetes: a bundle without it is checked as install does', async () => {
  const aaa = { name: 'aaa', version: '1.0.0', files: { 'install.sh': 'aaa() { :; }\n' } };
  const kubernetes = { ...aaa, name: 'kubernetes', version: '1.29.1' };
  await using without = await boxWith([aaa]);
  const few = await preflight(without, '--bundle', 'b.tar.gz');
  assert.equal([few.exitCode, few.stdout], [0, 'no checks for this machine']);
  await using box = await boxWith([aaa, kubernetes]);
  const all = await preflight(box, '--bundle', 'b.tar.gz', '--is-upgrade');
  assert.match(all.stdout, /^\[(?:PASS|WARN|FAIL)\] Number of CPUs: /);
});

test('with --root only what is for a trial is checked, as install does', async () => {
  const kubernetes = { name: 'kubernetes', version: '1.29.1', files: { 'install.sh': 'kubernetes() { :; }\n' } };
  await using box = await boxWith([kubernetes]);
  const { exitCode, stdout } = await preflight(box, '--bundle', 'b.tar.gz', '--root', 'trial');
  assert.equal([exitCode, stdout], [0, 'no checks for this machine']);
});

test('settings that install would refuse are refused before anything is looked at', async () => {
  const settings = { properties: { version: {}, size: { enum: ['s', 'l'] } } };
  const aaa = { name: 'aaa', version: '1.0.0', files: { 'install.sh': 'aaa() { :; }\n' }, extra: { settings } };
  await using box = await boxWith([aaa]);
  const { exitCode, stderr } = await preflight(box, '--bundle', 'b.tar.gz', '--set', 'aaa.size=m');
  assert.is(exitCode, 11);
  assert.match(stderr, 'aaa.size must be one of "s", "l"');
});

test("a site's overlay and flags of kURL count as they do for install", async () => {
  const own = `{{kurl .Installer.Spec.Aaa.Size }} {{kurl .Installer.Spec.Kurl.PublicAddress }} {{kurl .PrimaryHosts }}`;
  const addon = { name: 'aaa', version: '1.0.0', files: { 'install.sh': 'aaa() { :; }\n' } };
  const spec = `${specOf([addon])}    size: big\n`;
  const site = spec.replace(/version: .*/, 'version: 1.0.0').replace('size: big', 'size: small');
  await using box = await tree({ 'own.yaml': judging(own, 'pass'), 'site.yaml': site });
  await writeFile(box.at('b.tar.gz'), bundleOf([addon], spec));
  const flags = ['installer-spec-file=site.yaml', 'public-address=1.2.3.4', 'primary-host=a', 'primary-host=b'];
  const told = '[PASS] small 1.2.3.4 [a b]: ';
  for (const from of [['--bundle', 'b.tar.gz'], []]) {
    const { stdout, stderr } = await preflight(box, ...from, '--exclude-builtin', 'own.yaml', ...flags);
    assert.match(stdout, told, stderr);
  }
  const twice = await preflight(box, '--bundle', 'b.tar.gz', 'ha', 'ha');
  assert.equal([twice.exitCode, /flag ha is given twice/.test(twice.stderr)], [64, true]);
  assert.match((await preflight(box, 'own.yaml', 'ha')).stderr, /flags need a spec/);
});

test('mistakes in specs are told with their places and nothing is looked at', async () => {
  await using box = await tree({ 'bad.yaml': 'a: {{kurl nosuch }}\n' });
  const { exitCode, stderr } = await preflight(box, 'bad.yaml', '--save-facts', 'facts.json');
  assert.is(exitCode, 11);
  assert.match(stderr, 'bad.yaml:1:11 error preflight/template: unknown function "nosuch"');
  assert.is((await preflight(box)).exitCode, 64);
  assert.is((await preflight(box, 'bad.yaml', '--timeout', 'soon')).exitCode, 64);
  assert.is((await preflight(box, 'bad.yaml', '--is-primary', 'maybe')).exitCode, 64);
  assert.is((await preflight(box, 'nosuch.yaml')).exitCode, 14);
  const slip = await preflight(box, 'bad.yaml', 'lables=secret');
  assert.is(slip.exitCode, 14);
  assert.match(slip.stderr, /read lables: no such file or flag\n {2}hint: .*lists the flags/);
});

test('where Kubernetes would be upgraded, the control planes of a cluster that answers are to be ready, as for install', async () => {
  const labels = { 'node-role.kubernetes.io/control-plane': '' };
  const node = { metadata: { name: 'two', labels }, status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } };
  let records: unknown;
  let isRefusing = false;
  await using server = await startKubeServer(({ path }) => {
    if (isRefusing) return statusReply(401, 'Unauthorized', 'Unauthorized');
    const name = new URL(path, 'https://any').pathname.split('/').at(-1);
    if (name === 'kube-system') return { json: { metadata: { uid: 'u-1' } } };
    if (name === 'nodes') return { json: { items: [node], metadata: {} } };
    return name === 'curlew-records' ? { json: records } : statusReply(404, 'NotFound');
  });
  await using box = await tree({
    'b.tar.gz': bundleOf([tracer('kubernetes', '', '2.0.0')]),
    'admin.conf': server.kubeconfig(),
  });
  await mkdir(box.at('node'));
  const run = '20261101T000000Z-0000';
  const before = { version: '1.0.0', settings: settingsDigest({}), digest: settingsDigest('a'), run };
  const checked = async (finished: boolean, ...more: readonly string[]): Promise<Outcome> => {
    const applied = { kubernetes: { ...before, finished, by: 'install' } } as const;
    await writeRecords(box.at('node'), { ...NO_RECORDS, cluster: 'u-1', applied });
    const data = { format: '1', cluster: 'u-1', 'addon.kubernetes': JSON.stringify({ ...before, finished }) };
    records = { metadata: {}, data };
    const words = ['--bundle', 'b.tar.gz', '--install-dir', box.at('node'), '--timeout', '1s', ...more];
    return runCommand(['preflight', ...words], box.path, { KUBECONFIG: box.at('admin.conf') });
  };
  const title = 'Nodes of the cluster';
  const { stdout, stderr } = await checked(true, '--ignore', title);
  const line = `[FAIL] ${title}: Control planes that are not ready: two; repair or remove them first (ignored)`;
  assert.match(stdout.replaceAll(/\s+/g, ' '), line, stderr);
  assert.not.match((await checked(false)).stdout, title);
  for (const word of ['--exclude-builtin', '--is-join', `--root=${box.at('root')}`]) {
    assert.not.match((await checked(true, word)).stdout, title, word);
  }
  isRefusing = true;
  const refused = await checked(true);
  assert.not.match(refused.stdout, title);
  assert.match(
    refused.stderr,
    /an install also checks the nodes of the cluster, which were not checked here: .*Unauthorized/,
  );
});

test.run();
