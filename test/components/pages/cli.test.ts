/** The commands of docs/cli.md, on a node with a container runtime and a cluster. */
import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../../support/assert.ts';
import { publishImages } from '../../support/image-release.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, startCluster } from '../support/page-servers.ts';
import { ROOT } from '../support/programs.ts';

const test = suite('components/pages/cli', { timeoutMs: 300_000 });
const { signal } = new AbortController();
const ADDON = 'addons/registry/2.8.1';
const CHANNEL = `apiVersion: fleet.curlew.dev/v1alpha1
kind: Channel
metadata: { name: stable }
spec:
  addons: [{ name: web, version: 1.0.0, manifest: web.yaml }]
`;

const page = await readFile(join(ROOT, 'docs/cli.md'), 'utf8');

unless(noPageMachine('containerd', 'ctr', ...CLUSTER_PROGRAMS), test)('every command of the page works', async () => {
  await using box = await tree();
  await using machine = await pageMachine('docs/cli.md', {
    files: {
      ...plainAddons('node-reserve@1.0.0', 'web@1.0.0'),
      'installer.yaml': installerSpec('registry: { version: 2.8.1 }'),
      'proxy.yaml': installerSpec('proxy: { version: 2.8.1 }'),
      'channel.yaml': CHANNEL,
      'web.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: web, namespace: default }\n',
    },
  });
  const data = Buffer.from('function registry() { true; }\n');
  const files = [
    { path: 'install.sh', data },
    { path: 'registry.yaml', data: Buffer.from('kind: Registry\n') },
  ];
  const addons = ['registry', 'proxy'].map((name) => ({
    name,
    version: '2.8.1',
    images: { [`docker.io/library/${name}:2.8.1`]: makeImage([makeLayer({ [name]: name.repeat(1000) })]) },
    files,
  }));
  await publishImages(box, addons, signal);
  await cp(box.at('store'), machine.at('/srv/dist'), { recursive: true });
  await machine.start('mkdir -p /etc/containerd; : >/etc/containerd/config.toml; exec containerd', 'ctr version');
  await machine.run(`curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz
mkdir -p /srv/unpacked ~/.zfunc ~/.config/fish/completions
curlew bundle proxy.yaml --from /srv/dist -o - | tar -xz -C /srv/unpacked`);
  await using cluster = await startCluster(machine);
  const planned = await machine.block('curlew publish', { status: 2 });
  assert.match(planned, /web 1\.0\.0: new[^]*images +1 of 1 to load[^]*web: planned\n[^]*add --yes to apply this$/);
  assert.equal(await cluster.kubectl(['get', 'configmap', 'web', '--ignore-not-found']), '');
  await machine.run(
    'curlew install --bundle bundle.tar.gz && ctr -n k8s.io images rm docker.io/library/registry:2.8.1',
  );
  assert.match(
    await machine.block('curlew load-images'),
    /\nregistry-2\.8\.1 +1 of 1 loaded[^]*\nproxy-2\.8\.1 +1 of 1 missing[^]*\nregistry-2\.8\.1 +1 image, all present/,
  );
  assert.match(await machine.run('ctr -n k8s.io images ls -q'), 'docker.io/library/registry:2.8.1');
  await machine.run(`cd /var/lib/curlew/${ADDON}
sed -i s/true/TRUE/ install.sh
echo more >>registry.yaml`);
  await machine.block('curlew verify --installed', { status: 15 });
  await machine.block('curlew completion');
  await machine.run('grep compdef ~/.zfunc/_curlew && grep complete ~/.config/fish/completions/curlew.fish');
  const [, shown = ''] = /^```text\n(error [^]*?)\n```$/m.exec(page) ?? [];
  assert.is(await machine.run('! curlew build node-reserv'), shown);
  assert.equal(machine.left(), []);
});

test.run();
