/** Requests to API servers that a test makes: what an answer means, and which kubeconfig and credentials a request goes with. */
import { execa } from 'execa';
import { writeFile } from 'node:fs/promises';
import { createServer as createPlainServer, type AddressInfo, type Socket } from 'node:net';
import { createServer } from 'node:tls';
import { openApi, type ApiAnswer, type KubeApi } from '../../../src/cluster/kube/api.ts';
import { apiPath } from '../../../src/cluster/kube/path.ts';
import * as assert from '../../support/assert.ts';
import { kubeconfigText, startKubeServer, statusReply } from '../../support/kube-server.ts';
import { freePort } from '../../support/ports.ts';
import { startProxy } from '../../support/proxy-server.ts';
import { suite } from '../../support/suite.ts';
import { keyPairs, makeCertificate } from '../../support/tls.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { startServer, type Asked, type Reply } from '../../support/web-server.ts';

// not fast: servers that answer slowly or without end
const test = suite('cluster/kube/api');
const GET = { verb: 'get', path: apiPath`/api/v1/namespaces/${'x'}` } as const;
const certificate = await makeCertificate();

async function openIn(box: Tree, text: string, deadlineMs?: number): Promise<KubeApi> {
  await writeFile(box.at('conf'), text);
  const api = await openApi({ env: { KUBECONFIG: box.at('conf'), PATH: process.env['PATH'] }, deadlineMs });
  if (api === undefined) throw new Error('no kubeconfig');
  return api;
}

function problemIn(answer: ApiAnswer | undefined): string {
  return answer?.kind === 'problem' ? `${answer.problem}: ${answer.message}` : 'an answer';
}

/** Answers of one request to a server with these replies. */
async function answerTo(reply: (asked: Asked) => Reply | { readonly json: unknown }, deadlineMs?: number) {
  await using box = await tree();
  await using server = await startKubeServer(reply, certificate);
  const api = await openIn(box, server.kubeconfig(), deadlineMs);
  return { answer: await api.ask(GET, { signal: new AbortController().signal }), log: server.log };
}

for (const [title, reply, problem] of [
  ['what is not there', statusReply(404, 'NotFound', 'namespaces "x" not found'), 'not found'],
  ['what is there already', statusReply(409, 'AlreadyExists'), 'already exists'],
  ['a change by somebody else', statusReply(409, 'Conflict'), 'conflict'],
  ['a right that is missing', statusReply(403, 'Forbidden'), 'refused'],
  ['a token that is not known', statusReply(401, 'Unauthorized'), 'refused'],
  ['a server that starts', { status: 503, body: 'apiserver not ready' }, 'unreachable'],
  ['a server that has too much to do', statusReply(429, 'TooManyRequests'), 'unreachable'],
  ['an error of the server', statusReply(500, 'InternalError'), 'unreachable'],
  ['an error of etcd', statusReply(500, '', 'etcdserver: leader changed'), 'unreachable'],
  ['a field of another type', statusReply(500, '', 'failed to create typed patch object (x/a): y'), 'failed'],
  ['a gateway without a server', { status: 502, body: '<html>' }, 'unreachable'],
  ['a document that is wrong', statusReply(422, 'Invalid'), 'failed'],
  ['a list that has expired', statusReply(410, 'Expired'), 'expired'],
  ['a redirect', { status: 302, headers: { location: 'https://127.0.0.1:1/' } }, 'failed'],
  ['another protocol', { status: 101, headers: { connection: 'Upgrade', upgrade: 'x' } }, 'failed'],
  ['what is not JSON', { status: 200, body: 'hello' }, 'failed'],
  ['JSON without end', { status: 200, body: '['.repeat(100_000) }, 'failed'],
  ['a connection that breaks in the middle', { status: 200, body: '{"a":1}', sending: { resetAt: 3 } }, 'unreachable'],
  ['an answer that ends too early', { status: 200, body: '{"a":1}', sending: { closeAt: 3 } }, 'unreachable'],
  ['an answer without end', { status: 200, sending: 'endless' }, 'failed'],
] as const satisfies readonly (readonly [string, Reply, string])[]) {
  test(`${title} is told apart`, async () => {
    const { answer } = await answerTo(() => reply);
    assert.is(answer.kind === 'problem' ? answer.problem : 'an answer', problem);
  });
}

test('an answer that does not come ends at the deadline, and so does one that drips', async () => {
  for (const sending of ['never', { haltAt: 3 }] as const) {
    const { answer } = await answerTo(() => ({ status: 200, body: '{"a":1}', sending }), 300);
    assert.is(problemIn(answer), 'unreachable: no response in 0.3 s');
  }
});

test('what a server says is in the message, without the credentials that it repeats, and cannot drive a terminal', async () => {
  const { answer } = await answerTo((asked) =>
    statusReply(403, 'Forbidden', `no right\u001b[31m: ${String(asked.headers['authorization'])}`),
  );
  assert.match(problemIn(answer), /returned 403 \(Forbidden: no right/);
  assert.not.match(problemIn(answer), /test-token|\u001b/);
  assert.match((answer as { readonly hint?: string }).hint ?? '', 'KUBECONFIG');
});

test('a server that names when to ask again is asked again then, as long as there is time', async () => {
  let times = 0;
  const busy = (after: string): Reply => ({
    ...statusReply(429, 'TooManyRequests'),
    headers: { 'retry-after': after },
  });
  const { answer, log } = await answerTo(() => ((times += 1) <= 2 ? busy('0') : { json: { ok: true } }));
  assert.equal([answer, log.length], [{ kind: 'answer', value: { ok: true }, bytes: 11 }, 3]);
  const after = { 'retry-after': '0' };
  const leaderless = { ...statusReply(500, 'ServerTimeout', 'etcdserver: leader changed'), headers: after };
  times = 0;
  assert.is((await answerTo(() => ((times += 1) === 1 ? leaderless : { json: 1 }))).answer.kind, 'answer');
  const late = await answerTo(() => busy('60'), 5000);
  assert.equal([late.answer.kind, late.log.length], ['problem', 1]);
  const always = await answerTo(() => busy('0'));
  assert.is(always.log.length, 11);
});

test('a caller that gives up gets its own reason, and the connection is closed', async () => {
  await using box = await tree();
  await using server = await startKubeServer(() => ({ status: 200, sending: 'never' }), certificate);
  const api = await openIn(box, server.kubeconfig());
  const stop = new AbortController();
  const asking = api.ask(GET, { signal: stop.signal }).catch((error: unknown) => error);
  while (server.log.length === 0) await new Promise(setImmediate);
  stop.abort(new Error('enough'));
  assert.is(String(await asking), 'Error: enough');
  while (server.connections() > 0) await new Promise(setImmediate);
});

test('requests share a connection', async ({ signal }) => {
  await using box = await tree();
  await using server = await startKubeServer(() => ({ json: {} }), certificate);
  const api = await openIn(box, server.kubeconfig());
  for (let times = 0; times < 5; times += 1) await api.ask(GET, { signal });
  assert.is(server.connections(), 1);
});

test('a connection that has gone while it was idle is no answer to what only asks; a change is not sent twice', async ({
  signal,
}) => {
  await using box = await tree();
  let connections = 0;
  const asked: string[] = [];
  const stale = createServer({ key: certificate.key, cert: certificate.cert }, (socket) => {
    connections += 1;
    let requests = 0;
    socket.on('error', () => undefined);
    socket.on('data', (part) => {
      asked.push(String(part).slice(0, 4).trim());
      // The first request of each connection is answered; to the second it is as good as gone.
      if ((requests += 1) > 1) socket.destroy();
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
    });
  });
  await new Promise<void>((resolve) => {
    stale.listen(0, '127.0.0.1', resolve);
  });
  const { port } = stale.address() as AddressInfo;
  const api = await openIn(box, kubeconfigText(`https://127.0.0.1:${port}`, {}, authority(certificate.ca)));
  try {
    for (const times of [1, 2]) assert.is(problemIn(await api.ask(GET, { signal })), 'an answer', String(times));
    assert.equal([connections, asked], [2, ['GET', 'GET', 'GET']]);
    const put = { verb: 'replace', path: GET.path, document: '{}' } as const;
    assert.match(problemIn(await api.ask(put, { signal })), /^unreachable: .*connection was reset/);
    assert.is(asked.filter((method) => method === 'PUT').length, 1);
  } finally {
    stale.close();
  }
});

test('a pipe in the place of a kubeconfig or a token is not waited for', async ({ signal }) => {
  await using box = await tree({ conf: kubeconfigText('https://127.0.0.1:1', { tokenFile: 'pipe' }, {}) });
  await execa('mkfifo', [box.at('pipe')]);
  for (const named of ['conf', 'pipe:conf']) {
    const paths = named.split(':').map((one) => box.at(one));
    const api = await openApi({ env: { KUBECONFIG: paths.join(':') } });
    if (api === undefined) throw new Error('no kubeconfig');
    const problem = problemIn(await api.ask(GET, { signal }));
    assert.match(problem, /^failed: kubeconfig: cannot read .*pipe: it is not a file$/);
  }
});

test('documents are sent with their length, below the path of the address', async ({ signal }) => {
  await using box = await tree();
  await using server = await startKubeServer(() => ({ json: {} }), certificate);
  const api = await openIn(
    box,
    kubeconfigText(`${server.url}/k8s/clusters/c-1/`, { token: 't' }, authority(server.ca)),
  );
  await api.ask({ verb: 'create', path: apiPath`/api/v1/namespaces`, document: '{"ü":1}' }, { signal });
  await api.ask({ verb: 'replace', path: apiPath`/api/v1/namespaces/${'x'}`, document: '{}' }, { signal });
  assert.equal(
    server.log.map(({ method, path, body, headers }) => [method, path, body, headers['content-length']]),
    [
      ['POST', '/k8s/clusters/c-1/api/v1/namespaces', '{"ü":1}', '8'],
      ['PUT', '/k8s/clusters/c-1/api/v1/namespaces/x', '{}', '2'],
    ],
  );
});

function authority(ca: string): object {
  return { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
}

test('a redirect is not followed', async () => {
  await using other = await startServer(() => ({ status: 200, body: '{}' }));
  const { answer } = await answerTo(() => ({ status: 307, headers: { location: other.url } }));
  assert.match(problemIn(answer), /^failed: .*returned 307.*, which is not followed$/);
  assert.equal(other.log, []);
});

test('a server that nobody knows, of another name, without TLS or away is told apart', async ({ signal }) => {
  await using box = await tree();
  await using server = await startKubeServer(() => ({ json: {} }), certificate);
  const ask = async (text: string): Promise<string> => problemIn(await (await openIn(box, text)).ask(GET, { signal }));
  const other = await makeCertificate();
  assert.match(await ask(server.kubeconfig({}, authority(other.ca))), /^refused: .*not from the authority of/);
  assert.match(await ask(server.kubeconfig({}, { 'tls-server-name': 'other' })), /^refused: .*for another name/);
  assert.is(await ask(server.kubeconfig({}, { 'tls-server-name': 'localhost' })), 'an answer');
  const insecure = { 'certificate-authority-data': '', 'insecure-skip-tls-verify': true };
  assert.is(await ask(server.kubeconfig({}, insecure)), 'an answer');
  assert.match(await ask(kubeconfigText(`https://127.0.0.1:${await freePort()}`, {}, {})), /^unreachable: .*refused/);
  await using plain = await startServer(() => ({ status: 200, body: '{}' }));
  assert.match(await ask(kubeconfigText(`https://${plain.host}`, {}, {})), /^failed: .*does not speak TLS/);
  assert.is(await ask(kubeconfigText(plain.url, { token: 't' }, {})), 'an answer');
  assert.is(plain.log.at(-1)?.headers['authorization'], undefined);
  assert.match(
    await ask(kubeconfigText('http://10.0.0.1', {}, {})),
    /^failed: .*plain http to 10\.0\.0\.1 is not allowed/,
  );
});

test('a certificate that has expired is a matter of the clock', async ({ signal }) => {
  const past = { notBeforeDate: new Date('2020-01-01'), notAfterDate: new Date('2021-01-01') };
  await using box = await tree();
  await using server = await startKubeServer(() => ({ json: {} }), await makeCertificate(['localhost'], past));
  const answer = await (await openIn(box, server.kubeconfig())).ask(GET, { signal });
  assert.match(problemIn(answer), /^refused: .*its certificate has expired/);
  assert.match((answer as { readonly hint?: string }).hint ?? '', 'correct the clock of this machine');
});

test('credentials go as they are given, and a token file counts as it is now', async ({ signal }) => {
  await using box = await tree({ token: ' first\n' });
  await using server = await startKubeServer(() => ({ json: {} }), certificate);
  const sent = async (user: object): Promise<unknown> => {
    await (await openIn(box, server.kubeconfig(user))).ask(GET, { signal });
    return server.log.at(-1)?.headers['authorization'];
  };
  assert.is(await sent({ token: 'abc' }), 'Bearer abc');
  assert.is(await sent({ username: 'u', password: 'p' }), `Basic ${Buffer.from('u:p').toString('base64')}`);
  assert.is(await sent({}), undefined);
  assert.is(await sent({ tokenFile: 'none', token: 'abc' }), 'Bearer abc', 'as client-go does');
  const user = { tokenFile: 'token', token: 'other', as: 'jane', 'as-groups': ['a', 'b'] };
  const api = await openIn(box, server.kubeconfig(user));
  await api.ask(GET, { signal });
  await writeFile(box.at('token'), 'second');
  await api.ask(GET, { signal });
  assert.equal(
    server.log.slice(-2).map(({ headers }) => headers['authorization']),
    ['Bearer first', 'Bearer second'],
  );
  assert.is(server.log.at(-1)?.headers['impersonate-user'], 'jane');
  assert.equal(server.log.at(-1)?.headers['impersonate-group'], 'a, b');
  await writeFile(box.at('token'), 'a b');
  assert.match(problemIn(await api.ask(GET, { signal })), /^failed: .*its token is not valid$/);
});

test('a kubeconfig that changes during a run counts from the next request on', async ({ signal }) => {
  await using box = await tree();
  await using first = await startKubeServer(() => ({ json: 1 }), certificate);
  await using second = await startKubeServer(() => ({ json: 2 }));
  const api = await openIn(box, first.kubeconfig());
  assert.equal(await api.ask(GET, { signal }), { kind: 'answer', value: 1, bytes: 1 });
  await writeFile(box.at('conf'), second.kubeconfig());
  assert.equal(await api.ask(GET, { signal }), { kind: 'answer', value: 2, bytes: 1 });
  await writeFile(box.at('conf'), '');
  assert.match(problemIn(await api.ask(GET, { signal })), /^unreachable: no kubeconfig names a current context/);
});

test('keys that cannot be used are named without the words of OpenSSL', async ({ signal }) => {
  const { files } = await keyPairs();
  await using box = await tree({ ...files, 'none.crt': 'x' });
  const ask = async (user: object, cluster: object = {}): Promise<string> => {
    const text = kubeconfigText('https://127.0.0.1:1', user, cluster);
    return problemIn(await (await openIn(box, text)).ask(GET, { signal }));
  };
  const files2 = (cert: string, key: string): object => ({ 'client-certificate': cert, 'client-key': key });
  assert.match(await ask(files2('a.crt', 'b.key')), /^failed: .*do not match$/);
  assert.match(await ask(files2('none.crt', 'a.key')), /^failed: .*cannot be read or are not PEM$/);
  assert.match(await ask(files2('a.crt', 'away.key')), /^failed: kubeconfig: cannot read .*away\.key: no such file$/);
  assert.match(await ask({}, { 'certificate-authority': 'none.crt' }), /conf: .* authority .*none\.crt is not PEM$/);
  assert.match(await ask(files2('a.crt', 'a.key')), /^unreachable: /);
});

test('proxy-url is the way to the server, whatever the variables say', async ({ signal }) => {
  await using box = await tree();
  await using server = await startKubeServer(() => ({ json: {} }), certificate);
  await using proxy = await startProxy();
  const api = await openIn(box, server.kubeconfig({ token: 't' }, { 'proxy-url': proxy.url }));
  assert.is(problemIn(await api.ask(GET, { signal })), 'an answer');
  assert.equal(proxy.log, [`CONNECT 127.0.0.1:${server.port}`]);
});

test("a proxy over TLS is met with the operator's authorities, the server with that of the kubeconfig", async ({
  signal,
}) => {
  await using box = await tree();
  await using server = await startKubeServer(() => ({ json: {} }), certificate);
  const tls = await makeCertificate();
  await using proxy = await startProxy({ tls });
  await writeFile(box.at('ca.pem'), tls.ca);
  await writeFile(box.at('conf'), server.kubeconfig({ token: 't' }, { 'proxy-url': proxy.url }));
  const api = await openApi({ env: { KUBECONFIG: box.at('conf'), SSL_CERT_FILE: box.at('ca.pem') } });
  assert.is(problemIn(await api?.ask(GET, { signal })), 'an answer');
  assert.equal(proxy.log, [`CONNECT 127.0.0.1:${server.port}`]);
});

test('a proxy that is silent, or answers letter by letter, ends at the deadline, and with the caller', async ({
  signal,
}) => {
  await using box = await tree();
  const sockets = new Set<Socket>();
  const timers: NodeJS.Timeout[] = [];
  const slow = createPlainServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.on('data', () => {
      if (timers.length > 0) return;
      socket.write('HTTP/1.1 200 ');
      timers.push(setInterval(() => socket.write('a'), 10));
    });
  });
  await new Promise<void>((resolve) => {
    slow.listen(0, '127.0.0.1', resolve);
  });
  const proxy = { 'proxy-url': `http://127.0.0.1:${(slow.address() as AddressInfo).port}` };
  try {
    const text = kubeconfigText('https://10.0.0.1:6443', {}, proxy);
    for (const times of [1, 2]) {
      const answer = await (await openIn(box, text, 300)).ask(GET, { signal });
      assert.is(problemIn(answer), 'unreachable: no response in 0.3 s', String(times));
    }
    const stop = new AbortController();
    const asking = (await openIn(box, text)).ask(GET, { signal: stop.signal }).catch((error: unknown) => error);
    while (sockets.size === 0) await new Promise(setImmediate);
    stop.abort(new Error('enough'));
    assert.is(String(await asking), 'Error: enough');
    // Nothing is left that would keep the process alive.
    while (sockets.size > 0) await new Promise(setImmediate);
  } finally {
    for (const timer of timers) clearInterval(timer);
    for (const socket of sockets) socket.destroy();
    slow.close();
  }
});

test('a proxy that refuses is told apart from one that has no way to the server yet', async ({ signal }) => {
  await using box = await tree();
  for (const [status, problem] of [
    [403, 'failed'],
    [302, 'failed'],
    [407, 'failed'],
    [502, 'unreachable'],
  ] as const) {
    const answering = createPlainServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(`HTTP/1.1 ${status} x\r\n\r\n`));
    });
    await new Promise<void>((resolve) => {
      answering.listen(0, '127.0.0.1', resolve);
    });
    const proxy = { 'proxy-url': `http://127.0.0.1:${(answering.address() as AddressInfo).port}` };
    const answer = await (await openIn(box, kubeconfigText('https://10.0.0.1:6443', {}, proxy))).ask(GET, { signal });
    answering.close();
    assert.is(answer.kind === 'problem' ? answer.problem : 'an answer', problem, String(status));
  }
});

test('what a kubeconfig names is trusted without the authority above it', async ({ signal }) => {
  await using box = await tree();
  await using server = await startKubeServer(() => ({ json: {} }), certificate);
  const api = await openIn(box, server.kubeconfig({}, authority(certificate.cert)));
  assert.is(problemIn(await api.ask(GET, { signal })), 'an answer');
});

test('of an error without end only the beginning is read', async () => {
  const { answer } = await answerTo(() => statusReply(422, 'NotFound', 'x'.repeat(2_000_000)));
  assert.match(problemIn(answer), /^failed: [^ ]+ returned 422$/);
});

test('a folder in the place of a kubeconfig is not taken for none', async ({ signal }) => {
  await using box = await tree({ 'sub/conf': '' });
  const api = await openApi({ env: { KUBECONFIG: box.at('sub') } });
  assert.match(problemIn(await api?.ask(GET, { signal })), /sub: it is a folder$/);
  assert.is(await openApi({ env: { KUBECONFIG: box.at('sub/conf/conf') } }), undefined);
});

test('without a kubeconfig there is nothing to ask, and of several files one is enough', async () => {
  await using box = await tree({ conf: '' });
  assert.is(await openApi({ env: { KUBECONFIG: box.at('none') } }), undefined);
  assert.ok((await openApi({ env: { KUBECONFIG: `${box.at('none')}:${box.at('conf')}` } })) !== undefined);
});

test('a name cannot leave its place in a path', async () => {
  assert.is(
    apiPath`/api/v1/namespaces/${'a b'}/pods?labelSelector=${'app=x/../y'}`,
    '/api/v1/namespaces/a%20b/pods?labelSelector=app%3Dx%2F..%2Fy',
  );
  for (const name of ['', '.', '..', 'a/b', '%2e', '\ud800']) {
    const made = Promise.resolve(name).then((one) => apiPath`/api/v1/namespaces/${one}/pods`);
    await assert.rejectsWith(made, 'CLUSTER_FAILED', /cannot be the name of an object/);
  }
});

test.run();
