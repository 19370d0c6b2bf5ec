/** Clocks of API servers. */
import { writeFile } from 'node:fs/promises';
import { openApi } from '../../../src/cluster/kube/api.ts';
import { apiPath } from '../../../src/cluster/kube/path.ts';
import * as assert from '../../support/assert.ts';
import { startKubeServer } from '../../support/kube-server.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';

const test = suite('cluster/kube/clock');
const certificate = await makeCertificate();

test('the time is that of the server if its clock differs by a minute or more', async () => {
  await using box = await tree();
  for (const [ahead, found] of [
    [3_600_000, 3600],
    [-3_600_000, -3600],
    [20_000, 0],
  ] as const) {
    const date = new Date(Date.now() + ahead).toUTCString();
    await using server = await startKubeServer(() => ({ status: 200, body: '1', headers: { date } }), certificate);
    await writeFile(box.at('conf'), server.kubeconfig());
    const api = await openApi({ env: { KUBECONFIG: box.at('conf') } });
    await api?.ask({ verb: 'get', path: apiPath`/version` }, { signal: new AbortController().signal });
    const difference = ((api?.now().getTime() ?? 0) - Date.now()) / 1000;
    assert.ok(Math.abs(difference - found) <= 2, `${difference}`);
  }
});

test.run();
