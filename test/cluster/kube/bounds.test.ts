/** Servers that never come to an end. */
import { writeFile } from 'node:fs/promises';
import { openApi, type KubeApi } from '../../../src/cluster/kube/api.ts';
import { openCalls, type Call } from '../../../src/cluster/kube/call.ts';
import { holdLease } from '../../../src/cluster/kube/lease.ts';
import { listObjects } from '../../../src/cluster/kube/objects.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { startKubeServer, statusReply, type KubeServer } from '../../support/kube-server.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('cluster/kube/bounds', { timeoutMs: 120_000 });
const PODS = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };

async function callsTo(
  { kubeconfig }: KubeServer,
  path: string,
): Promise<{ readonly api: KubeApi; readonly call: Call }> {
  await writeFile(path, kubeconfig());
  const api = await openApi({ env: { KUBECONFIG: path } });
  if (api === undefined) throw new Error('no kubeconfig');
  return { api, call: openCalls(api, { patienceMs: 0, signal: never }) };
}

test('a list that continues without end is an error, by objects, by bytes, and at once for a repeated page', async () => {
  await using box = await tree();
  const large = { metadata: { name: 'a' }, data: 'x'.repeat(1 << 20) };
  const small = { metadata: { name: 'a' } };
  let pages = 0;
  for (const [items, nextOf, message, most] of [
    [Array.from({ length: 5000 }, () => small), String, /more than 100000 objects/, 21],
    [Array.from({ length: 20 }, () => large), String, /more than .* 268435456 bytes/, 13],
    [[small], () => 'same', /the same page again/, 2],
  ] as const) {
    pages = 0;
    await using server = await startKubeServer(() => {
      pages += 1;
      return { json: { metadata: { continue: nextOf(pages) }, items } };
    });
    const { call } = await callsTo(server, box.at('conf'));
    await assert.rejectsWith(listObjects(call, PODS), 'CLUSTER_FAILED', message);
    assert.is(pages, most);
  }
});

test('a Lease that others change each time is given up, with the last holder and how to find the others', async () => {
  await using box = await tree();
  let writes = 0;
  await using server = await startKubeServer(({ method }) => {
    if (method === 'GET') return { json: { metadata: { resourceVersion: '1' }, spec: {} } };
    writes += 1;
    return statusReply(409, 'Conflict');
  });
  const { api, call } = await callsTo(server, box.at('conf'));
  const request = { namespace: 'kube-system', name: 'curlew-addons', holder: 'me', doing: 'apply', signal: never };
  const error = await assert.rejectsWith(
    holdLease({ api, call }, request),
    'BUSY',
    /changed the Lease kube-system\/curlew-addons/,
  );
  assert.match(error.hint ?? '', 'kubectl get lease -n kube-system curlew-addons');
  assert.is(writes, 10);
});

test.run();
