/** The commands of docs/channels.md, against an index of kops in S3, a channel and a cluster. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, S3_ENVIRONMENT, S3_PROGRAM, startBuckets, startCluster } from '../support/page-servers.ts';
import { ROOT } from '../support/programs.ts';

const test = suite('components/pages/channels', { timeoutMs: 300_000 });

const DNS = 'coredns.addons.k8s.io';
const object = (kind: string, name: string, data = '{}'): string =>
  `apiVersion: v1\nkind: ${kind}\nmetadata: { name: ${name}, namespace: default }\ndata: ${data}\n`;

const MANIFEST = object('ConfigMap', 'coredns');

/** An index of kops; the entry that the page shows begins at line 17. */
const INDEX = `# The add-on index of clusters with CoreDNS.
kind: Addons
metadata:
  name: bootstrap
spec:
  addons:
${(
  [
    ['1.9.4', 'k8s-1.19', '<1.28.0'],
    ['1.11.1', 'k8s-1.28', '>=1.28.0 <1.32.0'],
    ['1.12.0', 'k8s-1.32', '>=1.32.0'],
  ] as const
)
  .map(
    ([version, id, range]) => `  - name: ${DNS}
    version: ${version}
    id: ${id}
    kubernetesVersion: '${range}'
    selector: { k8s-addon: ${DNS} }
    manifest: ${DNS}/${id}.yaml
    # Its objects are in namespace default.
    needsRollingUpdate: all
    manifestHash: ${hexOf(digestOf(MANIFEST))}
    # ${id}
`,
  )
  .join('')}`;

const entry = (name: string, version: string, range: string): string =>
  `  - { name: ${name}, version: ${version}, kubernetesVersion: '${range}', manifest: ${name}-${version}.yaml }\n`;
const channel = (...entries: readonly string[]): string =>
  `apiVersion: fleet.curlew.dev/v1alpha1\nkind: Channel\nmetadata: { name: stable }\nspec:\n  addons:\n${entries.join('')}`;

const page = await readFile(join(ROOT, 'docs/channels.md'), 'utf8');

/** The output of a command as the page shows it. */
function shown(begin: string): string {
  const blocks = [...page.matchAll(/^```text\n(.*?)\n```$/gms)].map(([, block = '']) => block);
  return blocks.find((block) => block.startsWith(begin)) ?? '';
}

unless(noPageMachine(S3_PROGRAM, ...CLUSTER_PROGRAMS), test)('every command of the page works', async () => {
  await using machine = await pageMachine('docs/channels.md', {
    env: S3_ENVIRONMENT,
    files: {
      ...plainAddons('web@1.0.0'),
      'addon.yaml': INDEX,
      ...Object.fromEntries(['k8s-1.19', 'k8s-1.28', 'k8s-1.32'].map((id) => [`${DNS}/${id}.yaml`, MANIFEST])),
      'channel.yaml': channel(entry('web', '1.0.0', '>=1.30.0')),
      'upgrade.yaml': channel(
        entry('kubernetes', '1.31.4', '>=1.30.0'),
        entry('kubernetes', '1.32.1', '>=1.30.0'),
        entry('db', '1.0.0', '<1.31.0'),
        entry('db', '2.0.0', '>=1.30.0'),
        entry('web', '1.0.0', '<1.32.0'),
        entry('web', '2.0.0', '>=1.31.0'),
      ),
      'web-1.0.0.yaml': object('ConfigMap', 'page', '{ version: "1" }'),
    },
  });
  await startBuckets(machine, ['addons', 'releases']);
  await using cluster = await startCluster(machine);
  await machine.run('cp -r addon.yaml coredns.addons.k8s.io /var/s3/data/addons/');
  await machine.block('curlew channel apply s3://addons/addon.yaml', { status: 2 });
  await machine.block('curlew channel check addon.yaml');
  assert.is(
    await machine.block('channel explain coredns.addons.k8s.io addon.yaml'),
    shown('coredns.addons.k8s.io for'),
  );
  assert.match(
    await machine.block('curlew channel apply channel.yaml', { status: 2 }),
    '\n  + ConfigMap default/page\n',
  );
  await machine.run('curlew channel apply channel.yaml --yes');
  assert.match(await machine.block('curlew channel status', { status: 2 }), 'web on https://');
  assert.match(await cluster.kubectl(['get', 'configmap', 'page', '-o', 'name']), 'configmap/page');
  await machine.run('mv upgrade.yaml channel.yaml');
  assert.is(await machine.block('channel plan channel.yaml'), shown('Kubernetes v1.30.2'));
  await machine.block('--channel stable');
  assert.match(await machine.run('cat /var/s3/data/releases/dist/channels/stable.yaml'), 'web-1.0.0.tar.gz');
  assert.equal(machine.left(), []);
});

test.run();
