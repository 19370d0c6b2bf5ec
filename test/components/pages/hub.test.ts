/** The commands of docs/hub.md: a hub, a site with an agent, a cluster that the controller delivers to, and all their people. */
import { digestOf } from '../../../src/core/digest.ts';
import { makeKeyPair, readPrivateKey } from '../../../src/formats/signing/keys.ts';
import { signText } from '../../../src/formats/signing/signature.ts';
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { noPageMachine, pageMachine } from '../support/page-machine.ts';
import { HUB_PROGRAMS, startCluster, startHub, startWeb, WEB_PROGRAM } from '../support/page-servers.ts';

const test = suite('components/pages/hub', { timeoutMs: 300_000 });
const PACKAGES = 'packages.example.com';
const HUB = 'hub.example.com';

unless(noPageMachine(WEB_PROGRAM, ...HUB_PROGRAMS), test)('every command of the page works', async () => {
  const pair = makeKeyPair(undefined);
  const manifest = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: page, namespace: default }\n';
  const addon = {
    apiVersion: 'fleet.curlew.dev/v1alpha1',
    kind: 'FleetAddon',
    metadata: { name: 'dashboard' },
    spec: {
      source: { manifest: `https://${PACKAGES}/page.yaml`, hash: digestOf(manifest) },
      clusterSelector: { matchLabels: { env: 'prod' } },
      rollout: {
        type: 'Progressive',
        groups: [{ name: 'canary', selector: { matchLabels: { env: 'prod' } } }],
        approval: ['canary'],
      },
    },
  };
  await using machine = await pageMachine('docs/hub.md', {
    hosts: [PACKAGES, HUB],
    files: {
      'curlew.pub': pair.publicKey,
      'values.yaml': 'password: hush\n',
      'oslo.values.yaml': 'site: north\n',
      'paris.values.yaml': 'site: south\n',
      'addon.json': JSON.stringify(addon),
      'web/page.yaml': manifest,
      'web/page.yaml.sigstore.json': signText(Buffer.from(manifest), readPrivateKey(pair.privateKey, 'key', undefined)),
    },
  });
  await startWeb(machine, { [PACKAGES]: '/root/work/web' });
  await using oslo = await startCluster(machine);
  await machine.run('cp ~/.kube/config oslo.conf');
  await using hub = await startHub(machine, HUB);
  await machine.run('cp ~/.kube/config hub.conf');
  /** Waits until a line of bash succeeds. */
  const becomes = async (line: string): Promise<string> => machine.run(`until ${line}; do sleep 0.2; done`);

  await machine.block('curlew hub manifests | kubectl apply -f -\nkubectl wait');
  await machine.block('curlew hub token paris');
  const registered = machine.block('curlew agent register');
  await becomes('kubectl get csr | grep Pending');
  const accepted = await machine.block('curlew fleet accept paris --kubeconfig hub.conf          #');
  assert.match(await registered, `registered paris at https://${HUB}:6443`);
  assert.match(await registered, /SHA256:\S+/.exec(accepted)?.[0] ?? 'a key');
  await machine.run('kubectl label -n fleet-paris clusters.fleet.curlew.dev paris env=prod');
  await machine.block('curlew controller --kubeconfig hub.conf --ready 8080');
  await becomes('curl -fs http://127.0.0.1:8080/ready');
  await machine.block('curlew agent run');
  await machine.block('curlew hub manifests --push oslo');
  await machine.run('kubectl apply -f addon.json');
  await machine.block('curlew fleet approve dashboard');
  assert.match(await machine.block('kubectl wait --for=condition=Available'), /dashboard condition met\n\[\]/);
  assert.match(await machine.block('kubectl get fleetaddons'), /^dashboard +True +AllSucceeded +2 /m);
  for (const server of [oslo, hub]) {
    assert.match(await server.kubectl(['get', 'configmap', 'page', '-o', 'name']), 'configmap/page');
  }
  await machine.block('--values-secret dashboard-1 | kubectl');
  await machine.block('--values-config-map sites');
  await machine.block('kubectl delete clusters');
  assert.is(await oslo.kubectl(['get', 'configmap', 'page', '--ignore-not-found']), '');
  await machine.run('kill $(</run/agent.pid) && rm paris.token');
  await becomes('curlew agent unregister --yes');
  await machine.block('curlew fleet accept paris --rejoin');
  const again = machine.run('curlew agent register --token-file paris.token --key curlew.pub');
  await becomes('kubectl get csr | grep Pending');
  await machine.block('curlew fleet accept paris');
  assert.match(await again, 'registered paris');
  await machine.block('curlew fleet detach paris');
  await machine.block('--reconcile helmchartproxies');
  assert.equal(machine.left(), []);
});

test.run();
