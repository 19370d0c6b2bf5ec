/** The commands of README.md, from an add-on in an empty folder to a node that runs it. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, startCluster } from '../support/page-servers.ts';

const test = suite('components/pages/readme', { timeoutMs: 300_000 });

unless(noPageMachine(...CLUSTER_PROGRAMS), test)('every command of README works', async () => {
  await using machine = await pageMachine('README.md', {
    files: {
      'installer.yaml': installerSpec('web: { version: latest }'),
      'web.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: page, namespace: default }\ndata: { a: b }\n',
    },
  });
  await using cluster = await startCluster(machine);
  assert.match(await machine.block('curlew doctor'), '# Writing an add-on');
  await machine.block('curlew new web');
  const page = ['get', 'configmap', 'page', '-o', 'name'];
  assert.match(await cluster.kubectl(page), 'configmap/page');
  await machine.run(
    'kubectl delete configmap page && mkdir /etc/kubernetes && cp ~/.kube/config /etc/kubernetes/admin.conf',
  );
  console.log(await machine.block('bundle/install.sh'));
  assert.match(await cluster.kubectl(page), 'configmap/page');
  // Both are commands of a checkout, which other tests run.
  assert.equal(machine.left(), ['scripts/quickstart']);
});

test.run();
