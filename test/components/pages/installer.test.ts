/** The command of docs/installer.md reads a secret of an add-on from the cluster. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, startCluster } from '../support/page-servers.ts';

const test = suite('components/pages/installer', { timeoutMs: 300_000 });

unless(noPageMachine(...CLUSTER_PROGRAMS), test)('the settings of an add-on are in the cluster', async () => {
  await using machine = await pageMachine('docs/installer.md', {
    files: {
      ...plainAddons('registry@2.8.1'),
      'installer.yaml': installerSpec('registry: { version: latest, port: 5000, adminPassword: hunter2 }'),
    },
    env: { KUBECONFIG: '/root/.kube/config' },
  });
  await using cluster = await startCluster(machine);
  await machine.run(`curlew publish --to /srv/dist --release v1
curlew install --from /srv/dist --installer installer.yaml`);
  assert.equal(JSON.parse(await machine.block('kubectl')), {
    version: '2.8.1',
    port: 5000,
    adminPassword: 'hunter2',
  });
  const map = await cluster.kubectl(['-n', 'kurl', 'get', 'configmap', 'kurl-current-config', '-o', 'json']);
  const { data = {} } = JSON.parse(map) as { readonly data?: Readonly<Record<string, string>> };
  assert.equal(JSON.parse(Buffer.from(data['addons-registry'] ?? '', 'base64').toString()), {
    version: '2.8.1',
    port: 5000,
  });
  assert.equal(machine.left(), []);
});

test.run();
