/** Credentials by programs that a kubeconfig names: real scripts, and a server that knows some tokens. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { openApi, type ApiAnswer } from '../../../src/cluster/kube/api.ts';
import { apiPath } from '../../../src/cluster/kube/path.ts';
import { processInfo } from '../../../src/platform/process/process-tree.ts';
import * as assert from '../../support/assert.ts';
import { startKubeServer, statusReply, type KubeServer } from '../../support/kube-server.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('cluster/kube/exec-plugin');
const GET = { verb: 'get', path: apiPath`/api/v1/namespaces/${'x'}` } as const;
const V1 = 'client.authentication.k8s.io/v1';
const certificate = await makeCertificate();

/** Takes the tokens that are good; everything else is answered with 401. */
async function serverFor(good: ReadonlySet<string>): Promise<KubeServer> {
  const isGood = (value: unknown): boolean => good.has(String(value).replace('Bearer ', ''));
  return startKubeServer(
    ({ headers }) => (isGood(headers['authorization']) ? { json: {} } : statusReply(401, 'Unauthorized')),
    certificate,
  );
}

/** A plug-in whose lines of bash may count how often they ran (`$n`). */
async function boxWith(lines: string, server: KubeServer, exec: object = {}, cluster: object = {}): Promise<Tree> {
  const count = 'cd "$(dirname "$0")"; echo x >>runs; n=$(wc -l <runs)';
  const box = await tree({ login: `#!/bin/bash\n${count}\n${lines}\n` });
  const user = { exec: { apiVersion: V1, command: './login', interactiveMode: 'Never', ...exec } };
  await writeFile(box.at('conf'), server.kubeconfig(user, cluster));
  return box;
}

async function askTimes(box: Tree, times: number, deadlineMs?: number): Promise<readonly ApiAnswer[]> {
  const api = await openApi({ env: { KUBECONFIG: box.at('conf'), PATH: process.env['PATH'] }, deadlineMs });
  if (api === undefined) throw new Error('no kubeconfig');
  const { signal } = new AbortController();
  return Promise.all(Array.from({ length: times }, async () => api.ask(GET, { signal })));
}

async function runs(box: Tree): Promise<number> {
  return (await readFile(box.at('runs'), 'utf8')).length / 2;
}

const kinds = (answers: readonly ApiAnswer[]): readonly string[] => answers.map(({ kind }) => kind);

function saying(status: string, apiVersion = V1): string {
  return `echo '{"apiVersion":"${apiVersion}","kind":"ExecCredential","status":'"${status.replaceAll('"', '\\"')}"'}'`;
}

test('a plug-in is asked once for many requests, and what it gives is sent', async () => {
  await using server = await serverFor(new Set(['good']));
  await using box = await boxWith(saying('{"token":"good"}'), server);
  assert.equal(kinds(await askTimes(box, 4)), ['answer', 'answer', 'answer', 'answer']);
  assert.is(await runs(box), 1);
});

test('one whose time is over is asked again, and so is one whose token is refused, once', async () => {
  await using server = await serverFor(new Set(['t2', 'old']));
  await using ending = await boxWith(saying('{"token":"old","expirationTimestamp":"2020-01-01T00:00:00Z"}'), server);
  assert.equal(kinds(await askTimes(ending, 2)), ['answer', 'answer']);
  assert.is(await runs(ending), 2);
  await using refused = await boxWith(saying('{"token":"t$n"}'), server);
  assert.equal(kinds(await askTimes(refused, 1)), ['answer']);
  assert.is(await runs(refused), 2);
  await using never = await boxWith(saying('{"token":"no$n"}'), server);
  const [answer] = await askTimes(never, 1);
  assert.equal([answer?.kind, await runs(never)], ['problem', 2]);
});

test('it gets its words and variables, and what the cluster is where it wants that', async () => {
  await using server = await serverFor(new Set(['a-b']));
  const exec = { args: ['b'], env: [{ name: 'FIRST', value: 'a' }], provideClusterInfo: true };
  const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'y' } }];
  const lines = `echo "$KUBERNETES_EXEC_INFO" >info\n${saying('{"token":"$FIRST-$1"}')}`;
  await using box = await boxWith(lines, server, exec, { extensions });
  assert.equal(kinds(await askTimes(box, 1)), ['answer']);
  const info = JSON.parse(await readFile(box.at('info'), 'utf8')) as { readonly spec: { readonly cluster: object } };
  assert.equal(info, {
    apiVersion: V1,
    kind: 'ExecCredential',
    spec: {
      interactive: false,
      cluster: {
        server: server.url,
        'certificate-authority-data': Buffer.from(server.ca).toString('base64'),
        config: { audience: 'y' },
      },
    },
  });
});

const KEY = { env: [{ name: 'KEY', value: 'topsecret' }] };

for (const [title, lines, why, exec] of [
  ['fails', 'echo "no $KEY for you" >&2; exit 3', /failed with status 3: no \[secret\] for you$/, KEY],
  ['prints no JSON', 'echo hello', /its output is not JSON/, {}],
  ['prints another version', saying('{"token":"x"}', 'other/v1'), /not an ExecCredential of/, {}],
  ['gives nothing', saying('{}'), /neither a token nor a certificate/, {}],
  ['gives half a pair', saying('{"clientKeyData":"topsecret"}'), /only one of certificate and key/, {}],
  ['prints without end', 'exec yes topsecret', /more than 1048576 bytes/, {}],
  ['hangs', 'sleep 1000 & echo $! >child; exec sleep 1000', /no response in time/, {}],
  ['is not executable', '', /cannot be started \(EACCES\)$/, { command: './conf' }],
  ['has more words than the system takes', '', /cannot be started \(E2BIG\)$/, { args: ['topsecret'.repeat(20_000)] }],
  ['is killed', 'kill -KILL $$', /: terminated by SIGKILL$/, {}],
  ['says nothing', 'exit 3', /: failed with status 3$/, {}],
  ['is not there', '', /the program does not exist/, { command: './none', installHint: 'npm i login' }],
] as const) {
  test(`a plug-in that ${title} is named, with no secret of it`, async () => {
    await using server = await serverFor(new Set());
    await using box = await boxWith(lines, server, exec);
    const [answer] = await askTimes(box, 1, title === 'hangs' ? 1000 : undefined);
    if (answer?.kind !== 'problem') throw new Error('it was taken');
    assert.match(answer.message, why);
    assert.match(answer.message, 'credential plug-in');
    assert.not.match(answer.message, 'topsecret');
    if (title === 'hangs') assert.is(processInfo(Number(await readFile(box.at('child'), 'utf8'))), undefined);
    if (title === 'is not there') assert.is(answer.hint, 'npm i login');
    assert.equal(server.log, []);
  });
}

test('a request that is cancelled does not wait for the plug-in that another one has started', async ({ signal }) => {
  await using server = await serverFor(new Set(['good']));
  await using box = await boxWith(`until [ -e go ]; do sleep 0.01; done; ${saying('{"token":"good"}')}`, server);
  const api = await openApi({ env: { KUBECONFIG: box.at('conf'), PATH: process.env['PATH'] } });
  const first = api?.ask(GET, { signal });
  const gone = new AbortController();
  const second = api?.ask(GET, { signal: gone.signal }).catch((error: unknown) => error);
  const reason = new Error('gone');
  gone.abort(reason);
  assert.is(await second, reason);
  await writeFile(box.at('go'), '');
  assert.is((await first)?.kind, 'answer');
});

test('a token with a header in it is not sent', async () => {
  await using server = await serverFor(new Set());
  await using box = await boxWith(saying('{"token":"topsecret\\\\r\\\\nX: y"}'), server);
  const [answer] = await askTimes(box, 1);
  assert.match(answer?.kind === 'problem' ? answer.message : '', /its token is not valid$/);
  assert.equal(server.log, []);
});

test('a kubeconfig from elsewhere starts no program, and sends the content of no file', async ({ signal }) => {
  await using server = await serverFor(new Set(['good']));
  await using box = await boxWith(saying('{"token":"good"}'), server);
  await writeFile(box.at('token'), 'good');
  const users = [
    [{ exec: { apiVersion: V1, command: './login', interactiveMode: 'Never' } }, /starts the program ".*\/login"/],
    [{ tokenFile: 'token' }, /sends the token in .*\/token/],
  ] as const;
  for (const [user, message] of users) {
    await writeFile(box.at('conf'), server.kubeconfig(user));
    const api = await openApi({ env: { KUBECONFIG: box.at('conf') }, isForeign: true });
    const answer = await api?.ask(GET, { signal });
    assert.match(answer?.kind === 'problem' ? answer.message : '', message);
  }
  assert.equal(server.log, []);
  assert.equal((await readdir(box.path)).toSorted(), ['conf', 'login', 'token']);
  await writeFile(box.at('conf'), server.kubeconfig({ token: 'good' }));
  const api = await openApi({ env: { KUBECONFIG: box.at('conf') }, isForeign: true });
  assert.is((await api?.ask(GET, { signal }))?.kind, 'answer');
});

test.run();
