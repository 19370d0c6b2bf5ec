/** Trials whose hooks may change a cluster: which one, what is said before, and what hooks get. Needs a sandbox where hooks run. */
import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import type { DryRun } from '../../src/runtime/run/dry-run.ts';
import { noSandbox } from '../components/support/sandbox.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { kubeconfigText, startKubeServer, statusReply, type KubeServer } from '../support/kube-server.ts';
import { unless } from '../support/needs.ts';
import { boxWith, bundleOf } from '../support/node-bundles.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import type { Asked } from '../support/web-server.ts';

const test = suite('cli/trial-cluster');
const inSandbox = unless(await noSandbox(), test);
const certificate = await makeCertificate();

const WORDS = ['install', '--bundle', 'b.tar.gz', '--root', 'root'];
const KUBECONFIG = ['--kubeconfig', 'conf'];
const OWN = 'root/var/lib/curlew/kubeconfig';

/** What an API server says about itself. */
async function startCluster(uid = '6f1c'): Promise<KubeServer> {
  return startKubeServer(({ path }: Asked) => {
    return { json: path === '/version' ? { gitVersion: 'v1.33.1' } : { metadata: { name: 'kube-system', uid } } };
  }, certificate);
}

async function boxFor(body: string, conf?: string): Promise<Tree> {
  const box = await boxWith([{ name: 'aaa', version: '1.0.0', files: { 'install.sh': `aaa() {\n${body}\n}\n` } }]);
  if (conf !== undefined) await writeFile(box.at('conf'), conf);
  return box;
}

async function trial(box: Tree, ...more: readonly string[]): Promise<Outcome> {
  return runCommand([...WORDS, ...more], box.path);
}

test('the plan of a trial names the cluster that its hooks change', async () => {
  await using server = await startCluster();
  await using box = await boxFor('true', server.kubeconfig());
  const { exitCode, stdout, stderr } = await trial(box, ...KUBECONFIG, '--dry-run', '--json');
  assert.is(exitCode, 0, stderr);
  const { cluster } = JSON.parse(stdout) as DryRun;
  assert.equal(cluster, { context: 'test', server: server.url, kubernetes: 'v1.33.1', uid: '6f1c' });
  const shown = await trial(box, ...KUBECONFIG, '--dry-run');
  const text = shown.stdout.replaceAll('\n', ' ');
  assert.match(text, `Cluster: hooks change the cluster ${server.url} (context test, Kubernetes v1.33.1)`);
  assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
  assert.not.match(`${stdout}${shown.stdout}`, /test-token/);
});

test('what is missing is named before the cluster is asked', async () => {
  const asked: string[] = [];
  await using server = await startKubeServer(({ path }) => {
    asked.push(path);
    return { json: {} };
  }, certificate);
  await using box = await boxFor('true', server.kubeconfig());
  await writeTree(box.path, { 'addons/aaa/1.0.0/Manifest': '', 'addons/aaa/1.0.0/install.sh': 'aaa() { true; }' });
  const MISSING = [
    ['install', '--from', 'nowhere'],
    ['install', '--from', 'nowhere', '--dry-run'],
    ['install', '--bundle', 'nowhere'],
    ['install', '--bundle', 'b.tar.gz', '--installer', 'nowhere'],
    ['uninstall', 'aaa', '--yes'],
    ['dev', 'aaa', '--installer', 'nowhere'],
  ];
  for (const words of MISSING) {
    const { exitCode, stderr } = await runCommand([...words, '--root', 'nowhere', ...KUBECONFIG], box.path);
    assert.is(exitCode, 14, `${words.join(' ')}: ${stderr}`);
    assert.match(stderr, 'nowhere');
    assert.equal([asked, await absent(box, 'nowhere')], [[], true], words.join(' '));
  }
});

test('dev names a folder in the place of a spec or a kubeconfig before it builds, and what is expected', async () => {
  await using box = await tree({
    'addons/aaa/1.0.0/Manifest': '',
    'addons/aaa/1.0.0/install.sh': 'aaa() { true; }',
    'folder/file': '',
  });
  for (const [option, hint] of [
    ['--installer', 'specify a file'],
    ['--kubeconfig', '--kubeconfig takes the kubeconfig .*, which is a file such as ~/.kube/config'],
  ] as const) {
    const { exitCode, stderr } = await runCommand(['dev', 'aaa', option, 'folder'], box.path);
    assert.is(exitCode, 25, stderr);
    assert.match(stderr.replaceAll(/\s+/g, ' '), new RegExp(`cannot read \\S*folder: it is a folder hint: ${hint}`));
    assert.ok(await absent(box, 'out'), option);
  }
});

test('dev names a missing spec and a missing kubeconfig before it builds', async () => {
  await using box = await tree({ 'addons/aaa/1.0.0/Manifest': '', 'addons/aaa/1.0.0/install.sh': 'aaa() { true; }' });
  for (const option of ['--installer', '--kubeconfig']) {
    const { exitCode, stderr } = await runCommand(['dev', 'aaa', option, 'nowhere'], box.path);
    assert.is(exitCode, 14, stderr);
    assert.match(stderr, /cannot read \S*nowhere: no such file/);
    assert.ok(await absent(box, 'out'), option);
  }
});

async function absent(box: Tree, path: string): Promise<boolean> {
  return stat(box.at(path)).then(
    () => false,
    () => true,
  );
}

test('a saved plan is refused when its kubeconfig leads to another cluster', async () => {
  await using one = await startCluster('1');
  await using other = await startCluster('2');
  await using box = await boxFor('true', one.kubeconfig());
  await trial(box, ...KUBECONFIG, '--dry-run', '--out', 'plan.json');
  await writeFile(box.at('conf'), other.kubeconfig());
  const { exitCode, stderr } = await runCommand(['install', '--plan', 'plan.json', '--dry-run'], box.path);
  assert.is(exitCode, 32, stderr);
  assert.match(stderr, `the cluster was ${one.url} and is ${other.url}`);
});

inSandbox(
  'hooks get a kubeconfig of their own with what the given one names in files, and reach the server',
  async () => {
    await using server = await startCluster();
    const { port } = server;
    const body = `stat -c %a "$KUBECONFIG"; cat "$KUBECONFIG"; exec 9<>/dev/tcp/127.0.0.1/${port} && echo reached`;
    await using box = await boxFor(body);
    const pem = Buffer.from(certificate.ca).toString('base64');
    const files = { 'certificate-authority': 'ca.pem' };
    const config = kubeconfigText(server.url, { tokenFile: 'token', as: 'ann', 'as-groups': ['dev'] }, files);
    await writeTree(box.path, { 'ca.pem': certificate.ca, token: 'from-a-file\n', conf: config });
    const { exitCode, stderr } = await trial(box, ...KUBECONFIG);
    assert.is(exitCode, 0, stderr);
    assert.match(stderr, `hooks change the cluster ${server.url}`);
    const log = await runCommand(['logs', 'aaa', 'install', '--root', 'root'], box.path);
    assert.match(log.stdout, /^600$/m);
    assert.match(log.stdout, `"certificate-authority-data":"${pem}"`);
    assert.match(log.stdout, /"as":"ann","as-groups":\["dev"\],"token":"from-a-file"/);
    assert.match(log.stdout, /^reached$/m);
    assert.not.match(log.stdout, /ca\.pem|tokenFile/);
    assert.is(await stat(box.at(OWN)).catch(() => 'absent'), 'absent');
  },
);

inSandbox('a plug-in is started once outside, and hooks get its token with the time that it is for', async () => {
  await using server = await startCluster();
  await using box = await boxFor('cat "$KUBECONFIG"', undefined);
  const status = { token: 'fresh', expirationTimestamp: '2100-01-01T00:00:00Z' };
  const credential = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status };
  const plugin = `#!/bin/sh\necho once >>"\${0%/*}/calls"\ncat <<'END'\n${JSON.stringify(credential)}\nEND\n`;
  const exec = { apiVersion: credential.apiVersion, command: './plugin', interactiveMode: 'Never' };
  await writeTree(box.path, { plugin, conf: server.kubeconfig({ exec }) });
  await chmod(box.at('plugin'), 0o755);
  const { exitCode, stderr } = await trial(box, ...KUBECONFIG);
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, 'their credential expires at 2100-01-01T00:00:00.000Z');
  assert.is(await readFile(box.at('calls'), 'utf8'), 'once\n');
  const log = await runCommand(['logs', 'aaa', 'install', '--root', 'root'], box.path);
  assert.match(log.stdout, /"token":"fresh"/);
  assert.not.match(log.stdout, /plugin/);
});

inSandbox('a trial keeps to the cluster of its add-ons', async () => {
  await using one = await startCluster('1');
  await using other = await startCluster('2');
  await using box = await boxFor('true', one.kubeconfig());
  assert.is((await trial(box, ...KUBECONFIG)).exitCode, 0);
  await writeFile(box.at('conf'), other.kubeconfig());
  const { exitCode, stderr } = await trial(box, ...KUBECONFIG);
  assert.is(exitCode, 22, stderr);
  assert.match(stderr, `the add-ons of this trial are on another cluster than ${other.url}`);
  const removed = await runCommand(['reset', '--yes', '--root', 'root'], box.path);
  assert.is(removed.exitCode, 0, removed.stderr);
  assert.is((await trial(box, ...KUBECONFIG)).exitCode, 0);
});

inSandbox('a run without a kubeconfig in a trial that used a cluster says so before its hooks', async () => {
  await using server = await startCluster();
  await using box = await boxFor('echo hook >&2', server.kubeconfig());
  const words = /used a cluster, and this one does not: --kubeconfig FILE.* hooks that call kubectl fail/;
  assert.not.match((await trial(box)).stderr, words);
  assert.is((await trial(box, ...KUBECONFIG, '--reapply')).exitCode, 0);
  const { exitCode, stderr } = await trial(box, '--reapply');
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, words);
  assert.ok(stderr.search(words) < stderr.indexOf('aaa'), stderr);
  assert.match((await trial(box, '--dry-run')).stderr, words);
  assert.match((await runCommand(['uninstall', 'aaa', '--yes', '--root', 'root'], box.path)).stderr, words);
});

inSandbox(
  'resume of a trial whose kubeconfig is gone says how to continue it, and that works from any folder',
  async () => {
    await using server = await startCluster();
    await using box = await boxFor('[[ -e "$DIR/go" ]] && grep -o current-context "$KUBECONFIG"', server.kubeconfig());
    assert.is((await trial(box, ...KUBECONFIG)).exitCode, 20);
    await mkdir(box.at('moved'));
    await rename(box.at('conf'), box.at('moved/conf'));
    const resume = ['resume', '--root', box.at('root')];
    for (const dry of [[], ['--dry-run']]) {
      const gone = await runCommand([...resume, ...dry], box.path);
      assert.is(gone.exitCode, 14, gone.stderr);
      const text = gone.stderr.replaceAll(/\s+/g, ' ');
      assert.match(text, `cannot resume: ${box.at('conf')}, the kubeconfig of the last run, does not exist`);
      assert.match(text, `hint: curlew resume --root ${box.at('root')} --kubeconfig FILE continues`);
    }
    await writeFile(box.at('root/var/lib/curlew/go'), '');
    const { exitCode, stderr } = await runCommand([...resume, '--kubeconfig', 'conf'], box.at('moved'));
    assert.is(exitCode, 0, stderr);
    const log = await runCommand(['logs', 'aaa', 'install', '--root', 'root'], box.path);
    assert.match(log.stdout, /^current-context$/m);
  },
);

inSandbox('the command that resume proposes to go back reaches the cluster of the resumed run', async () => {
  await using server = await startCluster();
  await using box = await boxFor('true', server.kubeconfig());
  const newer = bundleOf([
    { name: 'aaa', version: '2.0.0', files: { 'install.sh': 'aaa() { [[ -e "$DIR/go" ]]; }\n' } },
  ]);
  assert.is((await trial(box, ...KUBECONFIG)).exitCode, 0);
  await writeFile(box.at('b.tar.gz'), newer);
  assert.is((await trial(box, ...KUBECONFIG)).exitCode, 20);
  await writeFile(box.at('root/var/lib/curlew/go'), '');
  const { stdout, stderr } = await runCommand(['resume', '--root', 'root'], box.path);
  assert.match(stdout, `curlew rollback --root root --kubeconfig ${box.at('conf')} aaa restores 1.0.0`, stderr);
});

inSandbox('resume refuses a kubeconfig of another cluster', async () => {
  await using one = await startCluster('1');
  await using other = await startCluster('2');
  await using box = await boxFor('[[ -e "$DIR/go" ]]', one.kubeconfig());
  assert.is((await trial(box, ...KUBECONFIG)).exitCode, 20);
  await writeFile(box.at('other'), other.kubeconfig());
  await writeFile(box.at('root/var/lib/curlew/go'), '');
  const { exitCode, stderr } = await runCommand(['resume', '--root', 'root', '--kubeconfig', 'other'], box.path);
  assert.is(exitCode, 22, stderr);
  assert.match(stderr, `the add-ons of this trial are on another cluster than ${other.url}`);
});

inSandbox('a hook that asks for a cluster without one fails with the option that gives one', async () => {
  await using box = await boxFor(
    'kubectl() { echo "The connection to the server localhost:8080 was refused" >&2; return 1; }\nkubectl get nodes',
  );
  const { exitCode, stderr } = await trial(box);
  assert.is(exitCode, 20);
  assert.match(stderr, /hooks of a trial reach a cluster only with --kubeconfig FILE, and then they change it/);
});

const refused = async (): Promise<KubeServer> => startKubeServer(() => statusReply(401, 'Unauthorized'), certificate);

for (const [title, conf, words, message] of [
  ['a file that does not exist', undefined, KUBECONFIG, /conf: no such file[^]*--kubeconfig takes/],
  ['what is not a kubeconfig', 'kind: Secret', KUBECONFIG, /conf: it is not of kind Config/],
  [
    'no current context',
    kubeconfigText('https://127.0.0.1:1', {}, {}).replace('"current-context":"test"', '"x":0'),
    KUBECONFIG,
    /conf: it names no current context[^]*contexts are "test"/,
  ],
  [
    'a context that does not exist',
    kubeconfigText('https://127.0.0.1:1', {}, {}),
    [...KUBECONFIG, '--context', 'prod'],
    /no context "prod"[^]*contexts are "test"/,
  ],
  [
    'a dead server',
    kubeconfigText('https://127.0.0.1:1', {}, {}),
    KUBECONFIG,
    /cannot be used: .*127\.0\.0\.1:1.*refused/,
  ],
  [
    'a certificate that does not exist',
    kubeconfigText('https://127.0.0.1:1', {}, { 'certificate-authority': 'none.pem' }),
    KUBECONFIG,
    /none\.pem: no such file/,
  ],
  [
    'a plug-in that does not exist',
    kubeconfigText(
      'https://127.0.0.1:1',
      { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'no-such' } },
      {},
    ),
    KUBECONFIG,
    /credential plug-in "no-such": the program does not exist[^]*hint: install it, or add its folder to PATH/,
  ],
  ['a context without a kubeconfig', undefined, ['--context', 'prod'], /--context requires --kubeconfig/],
] as const) {
  for (const dry of [[], ['--dry-run']]) {
    test(`refused before anything runs${dry.length === 0 ? '' : ', and by a dry run'}: ${title}`, async () => {
      await using box = await boxFor('true', conf);
      const { exitCode, stderr } = await trial(box, ...words, ...dry);
      assert.ok([14, 25, 33, 64].includes(exitCode), `${exitCode}: ${stderr}`);
      assert.match(stderr, message);
      assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
    });
  }
}

test('credentials that the server refuses are refused before anything runs', async () => {
  await using server = await refused();
  await using box = await boxFor('true', server.kubeconfig());
  const { exitCode, stderr } = await trial(box, ...KUBECONFIG);
  assert.is(exitCode, 33, stderr);
  assert.match(stderr, /cannot be used: .* returned 401/);
  assert.match(stderr.replaceAll(/\s+/g, ' '), 'choose the kubeconfig of an administrator with --kubeconfig');
  assert.not.match(stderr, /test-token/);
});

test('no hint about a kubeconfig of --kubeconfig names a variable', async () => {
  const CONFIGS = [
    '[]',
    kubeconfigText('https://127.0.0.1:1', {}, { 'certificate-authority-data': 'eA==' }),
    kubeconfigText('https://127.0.0.1:1', {}, {}).replace('"current-context":"test"', '"x":0'),
    kubeconfigText('https://127.0.0.1:1', { tokenFile: '.' }, {}),
  ];
  for (const conf of CONFIGS) {
    await using box = await boxFor('true', conf);
    const { exitCode, stderr } = await trial(box, ...KUBECONFIG);
    assert.is(exitCode, 33, stderr);
    assert.match(stderr, /\bhint: /);
    assert.not.match(stderr, /KUBECONFIG/);
    assert.match(stderr, box.at('conf').split('/').at(-2) ?? '');
  }
});

test('a kubeconfig is only for the sandbox of a trial', async () => {
  await using box = await boxFor('true', '');
  for (const [why, ...words] of [
    ['--root', '--unconfined'],
    ['--root, which --unconfined disables', '--unconfined', '--root', 'root'],
  ] as const) {
    const { exitCode, stderr } = await runCommand(
      ['install', '--bundle', 'b.tar.gz', ...words, ...KUBECONFIG],
      box.path,
    );
    assert.is(exitCode, 64, stderr);
    assert.match(stderr, new RegExp(`--kubeconfig requires the sandbox of ${why}$`, 'm'));
  }
});

test.run();
