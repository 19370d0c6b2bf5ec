/** The commands of the pages for users of other programs, which give their objects back. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { CAPI_KINDS, definitionsOf, OCM_KINDS } from '../../support/upstream-kinds.ts';
import { noPageMachine, pageMachine } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, startCluster } from '../support/page-servers.ts';

const test = suite('components/pages/from-pages', { timeoutMs: 180_000 });

for (const [page, [definition], kind, name] of [
  ['docs/from-helm-chart-proxy.md', definitionsOf(CAPI_KINDS), 'HelmChartProxy', 'calico'],
  ['docs/from-open-cluster-management.md', definitionsOf(OCM_KINDS), 'ClusterManagementAddOn', 'hello'],
] as const) {
  unless(noPageMachine(...CLUSTER_PROGRAMS), test)(`${page} releases an object that a controller holds`, async () => {
    const { spec, metadata } = definition as {
      readonly metadata: { readonly name: string };
      readonly spec: { readonly group: string; readonly versions: readonly [{ readonly name: string }] };
    };
    const held = {
      apiVersion: `${spec.group}/${spec.versions[0].name}`,
      kind,
      metadata: { name, finalizers: ['fleet.curlew.dev/addon'] },
    };
    await using machine = await pageMachine(page, {
      files: { 'definition.json': JSON.stringify(definition), 'object.json': JSON.stringify(held) },
    });
    await using cluster = await startCluster(machine);
    await machine.run(`kubectl apply -f definition.json
kubectl wait --for=condition=Established crd/${metadata.name}
until kubectl apply -f object.json; do sleep 0.2; done
kubectl delete --wait=false -f object.json`);
    const left = ['get', metadata.name, '-o', 'name', '-A'];
    assert.match(await cluster.kubectl(left), name);
    await machine.block('kubectl patch');
    assert.is(await cluster.kubectl(left), '');
    if (kind === 'ClusterManagementAddOn') {
      await machine.block('kubectl create clusterrole');
      const controller = '--as=system:serviceaccount:curlew-system:curlew-controller';
      const may = ['auth', 'can-i', 'bind', 'clusterroles/web-reader', controller];
      assert.is((await cluster.kubectl(may)).trim(), 'yes');
      await machine.run('openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=agents -keyout ca.key -out ca.crt');
      await machine.block('curlew hub manifests --signer');
      for (const [what, answer] of [
        [['get', 'secrets/agents-ca', '-n', 'open-cluster-management-hub'], 'yes'],
        [['get', 'secrets/other', '-n', 'open-cluster-management-hub'], 'no'],
      ] as const) {
        const said = await cluster.kubectl(['auth', 'can-i', ...what, controller]).catch(() => 'no');
        assert.is(said.trim(), answer, what.join(' '));
      }
    }
    assert.equal(machine.left(), []);
  });
}

test.run();
