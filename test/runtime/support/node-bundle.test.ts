/** A support bundle of a machine with a secret in every place where a credential comes in. */
import { mkdir, open, readdir, stat } from 'node:fs/promises';
import { delimiter } from 'node:path';
import type { ProgressEvent } from '../../../src/core/events.ts';
import { openSupportArchive } from '../../../src/runtime/support/archive.ts';
import type { Item } from '../../../src/runtime/support/collect.ts';
import { knownSecrets } from '../../../src/runtime/support/known-secrets.ts';
import { planNode } from '../../../src/runtime/support/support-plan.ts';
import { redactor } from '../../../src/runtime/support/redact.ts';
import type { SupportIndex } from '../../../src/runtime/support/support-index.ts';
import { withoutRepeated, writeSupportBundle } from '../../../src/runtime/support/write-bundle.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { NODE, onNode, put } from '../../support/kept-node.ts';
import { suite } from '../../support/suite.ts';
import { readBundle } from '../../support/support-bundles.ts';
import { tree, writeTree, type Tree } from '../../support/tree.ts';

const test = suite('runtime/support/node-bundle', { timeoutMs: 60_000 });

const SPEC = `apiVersion: v1
kind: Secret
metadata: {name: x}
stringData:
  support-bundle-spec: |
    apiVersion: troubleshoot.sh/v1beta2
    kind: SupportBundle
    metadata: {name: aaa}
    spec:
      hostCollectors:
        - run: {collectorName: aaa-says, command: aaa-says}
        - unheardOf: {}
        - diskUsage: {collectorName: aaa-disk, path: /}
      hostAnalyzers:
        - diskUsage:
            checkName: Space of aaa
            collectorName: aaa-disk
            outcomes: [{warn: {when: 'total > 0', message: there is a disk}}, {pass: {message: no}}]
        - unheardOf: {checkName: Odd, outcomes: [{pass: {message: x}}]}
`;
/** By the place of the secret. */
const CANARY = (place: string): string => `c4n4ry${place.replaceAll(/[^a-z]/g, '')}9f8e7d`;
const SCHEMA = { type: 'object', properties: { greeting: { type: 'string', format: 'password' } } };

/** A machine whose run has failed; its hook has printed all that it was given. */
async function brokenMachine(): Promise<Tree> {
  const box = await tree();
  const hook = `aaa() { env; echo "$AAA_GREETING and $AAA_S3_SECRET_KEY"; echo "token: ${CANARY('hook')}"; return 1; }`;
  const extra = { settings: SCHEMA };
  const files = { Manifest: '', 'install.sh': hook, 'troubleshoot.yaml': SPEC };
  const spec = `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata: {name: test}
spec:
  aaa: {version: "1.0.0", greeting: ${CANARY('setting')}, s3SecretKey: ${CANARY('sss')}}
`;
  await put(box, [{ name: 'aaa', version: '1.0.0', files, extra }], spec);
  const env = { HTTPS_PROXY: `http://me:${CANARY('proxy')}@proxy:3128`, AAA_EXTRA_TOKEN: CANARY('environment') };
  const passed = Object.keys(env).flatMap((name) => ['--env', name]);
  const { exitCode, stderr } = await onNode(box, 'install', '--bundle', box.at('b.tar.gz'), ...passed, '--skip-images');
  assert.is(exitCode, 20, stderr);
  await writeTree(box.at('machine'), {
    'etc/kubernetes/admin.conf': `kind: Config\nusers:\n- name: a\n  user: {token: ${CANARY('kubeconfig')}, client-key-data: ${CANARY('clientkey')}}\n`,
    'etc/kubernetes/manifests/etcd.yaml': `kind: Pod\nspec: {containers: [{command: [etcd, --password=${CANARY('argument')}]}]}\n`,
    'etc/kubernetes/curlew/snapshot.env': `AWS_SECRET_ACCESS_KEY=${CANARY('snapshotenv')}\n`,
    'etc/kubernetes/curlew/join.yaml': `spec:\n  kubernetes: {certKey: ${CANARY('join')}}\n`,
    'etc/containerd/config.toml': `[plugins."x".auth]\n  password = "${CANARY('registry')}"\n`,
    'etc/systemd/system/containerd.service.d/proxy.conf': `[Service]\nEnvironment="HTTP_PROXY=http://me:${CANARY('unit')}@p"\n`,
    'var/lib/kubelet/config.yaml': 'kind: KubeletConfiguration\n',
    'var/log/pods/kube-system_etcd_1/etcd/0.log': `{"msg":"login","password":"${CANARY('podlog')}"}\nall is well\n`,
    'var/lib/curlew-remote/log': 'kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef\n',
  });
  await writeTree(box.path, {
    '.aws/credentials': `[default]\naws_secret_access_key = ${CANARY('awsfile')}\n`,
    '.docker/config.json': JSON.stringify({
      auths: { r: { auth: Buffer.from(`me:${CANARY('docker')}`).toString('base64') } },
    }),
  });
  const read = ['kubeconfig', 'setting', 'snapshotenv', 'join', 'awsfile', 'docker'].map(CANARY).join(' ');
  await writeTree(box.at('bin'), {
    'aaa-says': `#!/bin/sh\necho 'said ${CANARY('kubeconfig')} ${CANARY('unit')}'; echo 'password=${CANARY('stderr')}' >&2\n`,
    journalctl: `#!/bin/sh\necho "$* ${read} Authorization: Bearer ${CANARY('bearer')}"\n`,
    crictl: '#!/bin/sh\nexec sleep 1000\n',
  });
  return box;
}

async function parts(box: Tree) {
  const env = {
    PATH: [box.at('bin'), process.env['PATH']].join(delimiter),
    HOME: box.path,
    KUBECONFIG: box.at('none'),
    AWS_SECRET_ACCESS_KEY: CANARY('aws'),
  };
  const folders = { directory: box.at(NODE), root: box.at('machine'), remote: '/var/lib/curlew-remote', env };
  return { ...(await planNode(folders, { env })), redactor: redactor(await knownSecrets(folders)) };
}

const WRITE = { about: 'one', tool: '1.0.0', report: noReport, signal: never, limit: 5000 };

test('no secret of the machine is in a bundle, and what happened is', async () => {
  await using box = await brokenMachine();
  const { items, ...rest } = await parts(box);
  // The one that hangs has a test of its own.
  const own = items.filter(({ source }) => !source.startsWith('crictl'));
  const { index, file } = await writeSupportBundle(box.at('support.tar.gz'), { items: own, ...rest }, WRITE);
  assert.is((await stat(file)).mode & 0o777, 0o600);
  const { files, whole } = await readBundle(file);
  const found = [...whole.matchAll(/c4n4ry\w{0,20}|abcdef\.0123456789abcdef/g)].map(([text]) => text);
  assert.equal([...new Set(found)], []);
  assert.not.match(JSON.stringify(index), /c4n4ry/);
  const names = [...files.keys()];
  const indexed = index.files.map(({ path }) => path);
  // What a program writes besides its output is next to it, and has no line of its own in the preview.
  const listed = new Set(indexed.map((path) => path.replace(/-(?:stderr\.txt|info\.json)$/, '.txt')));
  assert.equal(
    [...listed],
    withoutRepeated(own).map(({ path }) => path),
  );
  assert.equal(
    names.filter((name) => !indexed.includes(name)),
    ['version.yaml', 'curlew/index.json'],
  );
  assert.is(names[0], 'version.yaml');
  for (const name of [
    'curlew/records.json',
    'curlew/specs/aaa.yaml',
    'curlew/remote/log',
    'host-files/etc/kubernetes/manifests/etcd.yaml',
    'host-collectors/system/sysctl.json',
    'host-collectors/run-host/aaa-says.txt',
    'host-collectors/run-host/kubelet-journal.txt',
    'host-collectors/diskUsage/aaa-disk.json',
  ]) {
    assert.ok(files.has(name), `${name} is not in ${names.join(' ')}`);
  }
  const log = names.find((name) => name.endsWith('/aaa.log')) ?? '';
  assert.match(files.get(log) ?? '', /^\[secret\] and \[secret\]\ntoken: \[secret\]$/m);
  assert.match(files.get('pod-logs/kube-system_etcd_1/etcd/0.log') ?? '', /all is well/);
  assert.match(files.get('host-collectors/run-host/kubelet-journal.txt') ?? '', /--unit=kubelet/);
  assert.match(files.get('host-collectors/diskUsage/aaa-disk.json') ?? '', /"total_bytes": \d+/);
  const about = ({ title }: { readonly title: string }): boolean => ['Space of aaa', 'Odd'].includes(title);
  assert.equal(
    index.results.filter(about).map(({ verdict, message }) => [verdict, message]),
    [['warn', 'there is a disk']],
  );
  assert.match(index.notEvaluated.find(about)?.reason ?? '', /analyzer unheardOf is not known/);
  assert.match(
    index.files.find(({ path }) => /unheardOf/.test(path))?.problem ?? '',
    /collector unheardOf is not known/,
  );
  assert.not(index.complete);
});

const GOOD: Item = { path: 'good.txt', source: 'good', collect: async () => [{ path: 'good.txt', text: 'good\n' }] };
const HANGS: Item = { path: 'hangs.txt', source: 'hangs', collect: async () => new Promise(() => undefined) };
const NOTHING = { verdicts: async () => ({ results: [], notEvaluated: [] }), redactor: redactor([]) };

function problems({ files }: SupportIndex): readonly (readonly [string, string])[] {
  return files.flatMap(({ path, problem }) => (problem === undefined ? [] : [[path, problem] as const]));
}

test('what hangs is left out after its time, and the rest is there', async () => {
  await using box = await tree();
  const items = [GOOD, HANGS, { ...GOOD, path: 'more.txt', collect: async () => [{ path: 'more.txt', text: 'more' }] }];
  const written = await writeSupportBundle(box.at('x.tgz'), { items, ...NOTHING }, { ...WRITE, limit: 50 });
  assert.equal(problems(written.index), [['hangs.txt', 'not finished after 0.05 s']]);
  assert.equal(
    [...(await readBundle(written.file)).files.keys()],
    ['version.yaml', 'good.txt', 'more.txt', 'curlew/index.json'],
  );
  const all = await writeSupportBundle(box.at('y.tgz'), { items, ...NOTHING }, { ...WRITE, limitOfAll: 60 });
  assert.match(JSON.stringify(problems(all.index)), /not within 0.001 minutes/);
});

test('a bundle that is stopped is whole, and says what is missing', async () => {
  await using box = await tree();
  const stop = new AbortController();
  const report = (event: ProgressEvent): void => {
    if (event.type === 'step-started' && event.title === 'hangs.txt') stop.abort(new Error('stopped'));
  };
  const options = { ...WRITE, report, signal: stop.signal };
  const { cut, file } = await writeSupportBundle(box.at('x.tgz'), { items: [GOOD, HANGS], ...NOTHING }, options);
  assert.is(cut, 'stopped');
  const { index } = await readBundle(file);
  assert.equal(problems(index).at(-1), ['hangs.txt', 'the command was stopped']);
  assert.equal(await readdir(box.path), ['x.tgz']);
});

test('what could collect nothing gets no name: it was stopped, or nothing answered', async () => {
  await using box = await tree();
  const stopped = AbortSignal.abort(new Error('stopped'));
  const never = writeSupportBundle(
    box.at('x.tgz'),
    { items: [GOOD, HANGS], ...NOTHING },
    { ...WRITE, signal: stopped },
  );
  await assert.rejectsWith(never, 'CANCELLED', /^canceled; nothing was written$/);
  const away: Item = { ...GOOD, path: 'hosts/a', collect: async () => Promise.reject(new Error('it does not answer')) };
  const failed = writeSupportBundle(box.at('x.tgz'), { items: [away], ...NOTHING }, WRITE);
  await assert.rejectsWith(failed, 'FETCH_FAILED', /nothing was written\nhosts\/a: it does not answer$/);
  assert.equal(await readdir(box.path), []);
});

test('a long log is shortened to its end, and what does not fit is left out', async () => {
  await using box = await tree();
  const text = 'first\n'.padEnd(5000, 'x') + '\nlast\n';
  const long: Item = { path: 'long.txt', source: 'long', collect: async () => [{ path: 'long.txt', text }] };
  const { index, file } = await writeSupportBundle(
    box.at('x.tgz'),
    { items: [long], ...NOTHING },
    { ...WRITE, maxBytes: 1000 },
  );
  assert.equal(index.files, [{ path: 'long.txt', source: 'long', state: 'shortened', bytes: 5 }]);
  assert.is((await readBundle(file)).files.get('long.txt'), 'last\n');
  await mkdir(box.at('full'));
  const handle = await open(box.at('full/x'), 'wx+');
  const archive = await openSupportArchive(handle, 'x', { maxBytes: 10 });
  assert.is(await archive.add('a', Buffer.alloc(8)), undefined);
  assert.is(await archive.add('b', Buffer.alloc(8)), 'the bundle is full');
  await handle.close();
});

test('an ordinary user gets what that user may read, and the reason for the rest', async () => {
  const denied = Object.assign(new Error('EACCES'), { code: 'EACCES' });
  const item: Item = { path: 'runs', source: '/x', collect: async () => Promise.reject(denied) };
  await using box = await tree();
  const { index } = await writeSupportBundle(box.at('x.tgz'), { items: [item, GOOD], ...NOTHING }, WRITE);
  assert.equal(problems(index), [['runs', 'permission denied: run the command as root']]);
});

test.run();
