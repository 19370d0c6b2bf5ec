/** Requests to a real API server: who may ask, how it is reached, and what becomes of one that goes away. */
import { writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { generate } from 'selfsigned';
import { openApi, type ApiAnswer } from '../../src/cluster/kube/api.ts';
import { apiPath } from '../../src/cluster/kube/path.ts';
import * as assert from '../support/assert.ts';
import { kubeconfigText } from '../support/kube-server.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/kube-api', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

const SYSTEM = apiPath`/api/v1/namespaces/${'kube-system'}`;

interface Given {
  readonly user?: object;
  readonly cluster?: object;
  readonly url?: string;
}

if (reason === undefined) {
  let server: ApiServer;
  let admin: { readonly cluster: object; readonly user: object };
  let clients: { readonly private: string; readonly cert: string };

  test.before(async () => {
    const box = opened.keep(await tree());
    clients = await generate([{ name: 'commonName', value: 'clients' }], {
      keyType: 'ec',
      algorithm: 'sha256',
      extensions: [{ name: 'basicConstraints', cA: true, critical: true }],
    });
    await writeFile(box.at('clients.crt'), clients.cert);
    server = opened.keep(
      await startApiServer(box.at('server'), { options: ['--client-ca-file', box.at('clients.crt')] }),
    );
    const text = JSON.parse(await server.kubectl(['config', 'view', '--raw', '-o', 'json'])) as {
      readonly clusters: readonly [{ readonly cluster: object }];
      readonly users: readonly [{ readonly user: object }];
    };
    admin = { cluster: text.clusters[0].cluster, user: text.users[0].user };
  });
  test.after(opened.close);

  const ask = async ({ user = admin.user, cluster = {}, url = server.url }: Given): Promise<ApiAnswer> => {
    await using box = await tree({ conf: kubeconfigText(url, user, { ...admin.cluster, ...cluster, server: url }) });
    const api = await openApi({ env: { KUBECONFIG: box.at('conf'), PATH: process.env['PATH'] } });
    const answer = await api?.ask({ verb: 'get', path: SYSTEM }, { signal: new AbortController().signal });
    if (answer === undefined) throw new Error('no kubeconfig');
    return answer;
  };
  const told = async (given: Given): Promise<string> => {
    const answer = await ask(given);
    return answer.kind === 'answer' ? 'an answer' : `${answer.problem}: ${answer.message}; ${answer.hint ?? ''}`;
  };

  test('an administrator gets an answer, a user without rights the reason of the server', async () => {
    assert.is(await told({}), 'an answer');
    assert.match(
      await told({ user: { ...admin.user, as: 'jane', 'as-groups': ['developers'] } }),
      /^refused: .*returned 403 \(Forbidden: namespaces "kube-system" is forbidden: User "jane" cannot get resource/,
    );
    const both = { ...admin.user, as: 'jane', 'as-groups': ['system:masters'] };
    assert.is(await told({ user: both }), 'an answer');
  });

  test('a token and an authority that are not of this cluster are refused, a plug-in gives one that is', async () => {
    assert.match(await told({ user: { token: 'topsecret' } }), /^refused: .*returned 401 \(Unauthorized\)/);
    const { ca } = await makeCertificate();
    const other = { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
    assert.match(await told({ cluster: other }), /^refused: .*not from the authority of the kubeconfig/);
    const { token } = admin.user as { readonly token: string };
    const version = 'client.authentication.k8s.io/v1';
    const said = JSON.stringify({ apiVersion: version, kind: 'ExecCredential', status: { token } });
    const exec = { apiVersion: version, command: 'echo', args: [said], interactiveMode: 'Never' };
    assert.is(await told({ user: { exec } }), 'an answer');
  });

  test('client certificates count for whom they name, until they expire', async () => {
    const made = async (time: object): Promise<object> => {
      const attributes = [
        { name: 'commonName', value: 'me' },
        { name: 'organizationName', value: 'system:masters' },
      ];
      const pair = await generate(attributes, {
        keyType: 'ec',
        algorithm: 'sha256',
        ca: { key: clients.private, cert: clients.cert },
        extensions: [
          { name: 'basicConstraints', cA: false },
          { name: 'extKeyUsage', clientAuth: true },
        ],
        ...time,
      });
      const base64 = (text: string): string => Buffer.from(text).toString('base64');
      return { 'client-certificate-data': base64(pair.cert), 'client-key-data': base64(pair.private) };
    };
    assert.is(await told({ user: await made({}) }), 'an answer');
    const past = { notBeforeDate: new Date('2020-01-01'), notAfterDate: new Date('2021-01-01') };
    assert.match(
      await told({ user: await made(past) }),
      /^refused: .*Unauthorized.*the client certificate of the kubeconfig expired at 2021-01-01.*; correct the clock/,
    );
  });

  test('a connection that is cut anywhere in the answer is one that is away', async () => {
    let allowed = 0;
    const cut = createServer((client) => {
      const onward = connect(Number(new URL(server.url).port), '127.0.0.1');
      let passed = 0;
      onward.on('data', (part) => {
        const rest = part.subarray(0, Math.max(0, allowed - passed));
        passed += part.byteLength;
        client.write(rest);
        if (passed > allowed) client.resetAndDestroy();
      });
      client.on('data', (part) => onward.write(part));
      for (const socket of [client, onward]) {
        socket.on('error', () => undefined);
        socket.on('close', () => (socket === client ? onward : client).destroy());
      }
    });
    await new Promise<void>((resolve) => {
      cut.listen(0, '127.0.0.1', resolve);
    });
    const url = `https://127.0.0.1:${(cut.address() as AddressInfo).port}`;
    try {
      for (const bytes of [0, 100, 1200, 1500, 1800]) {
        allowed = bytes;
        assert.match(await told({ url }), /^unreachable: /, String(bytes));
      }
      allowed = Number.POSITIVE_INFINITY;
      assert.is(await told({ url }), 'an answer');
    } finally {
      cut.close();
    }
  });

  test('a connection that waits for the next request keeps no process alive', async () => {
    const open = (): number => process.getActiveResourcesInfo().filter((one) => one === 'TCPSocketWrap').length;
    while (open() > 0) await new Promise(setImmediate);
    assert.is(await told({}), 'an answer');
    while (open() > 0) await new Promise(setImmediate);
  });
} else {
  test.skip('requests to an API server', reason);
}

test.run();
