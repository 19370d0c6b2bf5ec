/** The JSON interface of etcd, by a server that demands a client's certificate. */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { openEtcd, type Etcd } from '../../../src/cluster/kube/etcd.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';

const test = suite('cluster/kube/etcd');
const { key, cert, ca } = await makeCertificate();

interface Server extends AsyncDisposable {
  readonly etcd: Etcd;
  readonly asked: readonly string[];
}

/** Answers by path; a text is an error. */
async function serve(answers: (own: string) => Readonly<Record<string, object | string>>): Promise<Server> {
  const asked: string[] = [];
  let own = '';
  const server = createServer({ key, cert, ca, requestCert: true, rejectUnauthorized: true }, (request, response) => {
    void text(request).then((body) => {
      asked.push(`${request.method} ${request.url} ${body}`.trim());
      const answer = answers(own)[request.url ?? ''] ?? 'no such path';
      response.statusCode = typeof answer === 'string' ? 503 : 200;
      response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  own = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const box = await tree({ 'ca.crt': ca, 'healthcheck-client.crt': cert, 'healthcheck-client.key': key });
  const etcd = await openEtcd({ signal: never, folder: box.path, server: own });
  if (etcd === undefined) throw new Error('no certificates');
  return {
    etcd,
    asked,
    [Symbol.asyncDispose]: async () => {
      etcd[Symbol.dispose]();
      server.closeAllConnections();
      server.close();
      await box[Symbol.asyncDispose]();
    },
  };
}

test('members have the ids of 64 bits that they have, and those that do not answer are not healthy', async () => {
  await using server = await serve((own) => ({
    '/health': { health: 'true', reason: '' },
    '/v3/cluster/member/list': {
      header: { cluster_id: '1' },
      members: [
        { ID: '18446744073709551615', name: 'one', peerURLs: [own], clientURLs: [own] },
        {
          ID: '2',
          name: 'two',
          peerURLs: ['https://[fd00::2]:2380'],
          clientURLs: ['https://127.0.0.1:1'],
          isLearner: true,
        },
        { ID: '3', peerURLs: [own] },
      ],
    },
  }));
  assert.equal(await server.etcd.members(), [
    { id: '18446744073709551615', name: 'one', addresses: ['127.0.0.1'], learner: false, healthy: true, answers: true },
    { id: '2', name: 'two', addresses: ['fd00::2'], learner: true, healthy: false, answers: false },
    { id: '3', name: '', addresses: ['127.0.0.1'], learner: false, healthy: false, answers: false },
  ]);
});

test('a member that raises an alarm is not healthy', async () => {
  await using server = await serve((own) => ({
    '/health': { health: 'false', reason: 'ALARM NOSPACE' },
    '/v3/cluster/member/list': { members: [{ ID: '1', name: 'one', clientURLs: [own] }] },
  }));
  assert.equal(await server.etcd.members(), [
    { id: '1', name: 'one', addresses: [], learner: false, healthy: false, answers: true },
  ]);
});

test('a member is removed by its id, and a refusal has the reason', async () => {
  await using server = await serve(() => ({ '/v3/cluster/member/remove': { members: [] } }));
  await server.etcd.remove('18446744073709551615');
  assert.equal(server.asked, ['POST /v3/cluster/member/remove {"ID":"18446744073709551615"}']);
  await using broken = await serve(() => ({ '/v3/cluster/member/remove': 'etcdserver: unhealthy cluster' }));
  await assert.rejectsWith(
    broken.etcd.remove('1'),
    'CLUSTER_FAILED',
    /cannot remove a member .*503 \(etcdserver: unhealthy/,
  );
});

test('a member agrees if it answers a linearizable read, whatever it lists', async () => {
  await using server = await serve(() => ({ '/v3/kv/range': { header: {} } }));
  assert.is(await server.etcd.agrees(), true);
  assert.equal(server.asked, ['POST /v3/kv/range {"key":"aGVhbHRo","keys_only":true}']);
  await using lost = await serve(() => ({ '/v3/kv/range': 'etcdserver: request timed out' }));
  assert.is(await lost.etcd.agrees(), false);
});

test('the size of the data is that of the member, and an answer without it is refused', async () => {
  await using server = await serve(() => ({ '/v3/maintenance/status': { dbSize: '8589934592' } }));
  assert.is(await server.etcd.size(), 2 ** 33);
  await using other = await serve(() => ({ '/v3/maintenance/status': {} }));
  await assert.rejectsWith(other.etcd.size(), 'CLUSTER_FAILED', /cannot read the size of etcd: the response has/);
});

test('an answer that is not that of etcd is refused', async () => {
  await using server = await serve(() => ({ '/v3/cluster/member/list': { members: [{ ID: 7 }] } }));
  await assert.rejectsWith(
    server.etcd.members(),
    'CLUSTER_FAILED',
    /cannot list the members of etcd: the response has/,
  );
});

test('a machine without the certificates of kubeadm has no etcd', async () => {
  await using box = await tree();
  assert.equal(await openEtcd({ signal: never, folder: box.path }), undefined);
});

test('a damaged certificate of kubeadm is named, with what makes it again', async () => {
  const cut = { 'ca.crt': ca, 'healthcheck-client.crt': cert.slice(0, 200), 'healthcheck-client.key': key };
  await using box = await tree(cut);
  await assert.rejectsWith(
    openEtcd({ signal: never, folder: box.path }),
    'CLUSTER_FAILED',
    /cannot use ca.crt and healthcheck-client in/,
  );
});

test.run();
