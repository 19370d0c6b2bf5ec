/** The commands of docs/operating.md, on a node that installs, joins, upgrades, fails, and takes over a cluster of kURL. */
import { copyFile, mkdir } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, startCluster } from '../support/page-servers.ts';

const test = suite('components/pages/operating', { timeoutMs: 300_000 });
const HOST = 'packages.example.com';

unless(noPageMachine(...CLUSTER_PROGRAMS), test)('a node is installed, changed, mended and emptied', async () => {
  await using machine = await pageMachine('docs/operating.md', {
    files: {
      ...plainAddons('registry@1.0.0', 'registry@2.0.0', 'registry@3.0.0', 'web@1.0.0'),
      'addons/registry/3.0.0/install.sh': 'function registry() { echo it starts; test -e /root/mended; }\n',
      'installer.yaml': installerSpec('registry: { version: 1.0.0 }', 'web: { version: latest }'),
      'site.yaml': installerSpec('registry: { port: 5000 }'),
      'join.yaml': installerSpec('registry: { version: 3.0.0 }'),
    },
    hosts: [HOST],
    env: { KUBECONFIG: '/etc/kubernetes/admin.conf' },
  });
  await machine.run(`curlew publish --to /srv/dist --release v1
curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz
curlew serve --store /srv/dist --listen :443 --tls-cert /etc/page.crt --tls-key /etc/page.key`);
  const installed = await machine.block('tar -xzf bundle.tar.gz');
  assert.match(
    installed,
    /Nothing has changed; the plan is in \/root\/work\/bundle\/plan\.json[^]*registry +1\.0\.0 +installed \(it was not installed\)/,
  );
  assert.match(
    installed,
    /registry +1\.0\.0 +already applied[^]*registry +1\.0\.0 +installed \(its settings have changed\)/,
  );
  await machine.block('curlew install --bundle bundle.tar.gz --root /tmp/trial');
  await machine.run('grep registry@1.0.0 /etc/registry.txt && test -s /tmp/trial/host/etc/registry.txt');

  // Newer bundles are unpacked in the folder of the blocks.
  const unpack = `curlew bundle installer.yaml --from /srv/dist -o newer.tar.gz --force\ntar -xzf newer.tar.gz`;
  await machine.run(`sed -i 's/1.0.0/2.0.0/' installer.yaml\n${unpack}`);
  assert.match(await machine.run('./upgrade.sh'), /registry +1\.0\.0 → 2\.0\.0 +installed/);
  await machine.run(`sed -i 's/2.0.0/3.0.0/' installer.yaml\n${unpack}\n! ./upgrade.sh\ntouch /root/mended`);
  const resumed = await machine.block('curlew resume');
  assert.match(resumed, /registry +2\.0\.0 → 3\.0\.0 +installed[^]*registry can be rolled back to 2\.0\.0/);
  assert.match(resumed, /, install, failed\n[^]*== registry, run [^]*\nit starts/);

  const undone = await machine.block('curlew rollback registry', { answer: 'y' });
  assert.match(
    undone,
    /registry +3\.0\.0 → 2\.0\.0[^]*Uninstall registry 2\.0\.0\? [^]*Remove everything on this node/,
  );
  await machine.run('! test -e /var/lib/curlew');
  await machine.run(unpack);
  assert.match(await machine.block('./join.sh'), /registry +3\.0\.0 +joined[^]*web +1\.0\.0 +upgraded/);
  await machine.run('curlew reset --yes');

  await using cluster = await startCluster(machine);
  await mkdir(machine.at('/etc/kubernetes'));
  await copyFile(cluster.kubeconfig, machine.at('/etc/kubernetes/admin.conf'));
  await machine.run(`kubectl create namespace kurl
kubectl -n kurl create configmap kurl-current-config --from-literal=kurl-version=v2026.01.01-0 \
  --from-literal=addons-registry="$(printf '{"version":"1.0.0"}' | base64)"`);
  assert.match(await machine.run('! curlew install --bundle bundle.tar.gz'), 'kURL created this cluster');
  const adopted = await machine.block('--adopt');
  assert.match(adopted, /registry +1\.0\.0 +installed[^]*web +1\.0\.0 +installed/);
  assert.match(await machine.run('kubectl -n kurl get configmap curlew-records -o yaml'), 'addon.registry:');
  assert.equal(machine.left(), []);
});

test.run();
