/** What a new add-on applies, as kustomize, which is in kubectl too, puts it together. */
import { execa } from 'execa';
import { dirname, join } from 'node:path';
import * as assert from '../support/assert.ts';
import { newIn, RESOURCES } from '../support/scaffold.ts';
import { suite } from '../support/suite.ts';
import { API_SERVER_PROGRAMS, startApiServer } from './support/api-server.ts';
import { cannotRun, oracle } from './support/programs.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('new add-ons and kustomize');

const LIBRARY = join(import.meta.dirname, '../../scripts/lib');
const HOMELESS = RESOURCES.replaceAll('  namespace: web-system\n', '');

const KUSTOMIZE = oracle('kustomize');
const { failed } = await execa(KUSTOMIZE, ['version'], { reject: false });

/** Renders as a hook does, twice, and has kustomize put together what was rendered. */
async function rendered(box: Tree, name: string, variables: string): Promise<string> {
  const script = `set -e; DIR=$PWD
    for file in "$1"/*.sh; do . "$file"; done
    . "addons/$2/1.0.0/install.sh"; ${variables}
    "$2_render"; "$2_render"; "$3" build "kustomize/$2"`;
  const { stdout } = await execa('bash', ['-c', script, 'bash', LIBRARY, name, KUSTOMIZE], { cwd: box.path });
  return stdout;
}

for (const [title, files, from] of [
  ['with namespaces of its own', { 'web.yaml': RESOURCES }, 'web.yaml'],
  ['without namespaces', { 'web.yaml': HOMELESS }, 'web.yaml'],
  ['from nothing', {}, undefined],
] as const) {
  const name = `kustomize puts together an add-on ${title}`;
  if (failed) {
    test.skip(name, 'missing: scripts/tools kustomize');
    continue;
  }
  test(name, async () => {
    await using box = await tree(files);
    const { namespace } = await newIn(box, { from, hooks: ['all'] });
    const text = await rendered(box, 'web', 'WEB_REPLICAS=7');
    assert.match(text, `\n  namespace: ${namespace}\n`);
    assert.match(text, '\n  replicas: 7\n');
    assert.match(text, 'kind: Namespace');
    assert.match(text, 'support-bundle-spec');
    assert.not.match(await rendered(box, 'web', ''), 'replicas: 7');
  });
}

const WITH_DATA = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: webs.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Web, plural: webs }
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { ports: [{ port: 80 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: registry.k8s.io/pause:3.9 }] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: web-reader }
`;

const why = cannotRun(...API_SERVER_PROGRAMS);
if (why !== undefined) test.skip('what a new add-on removes from a cluster', why);
else {
  test('what a new add-on applied is removed from the cluster, but for its data where that is to be kept', async () => {
    await using folder = await tree();
    await using server = await startApiServer(folder.at('server'));
    await using box = await tree({ 'web.yaml': WITH_DATA });
    const { namespace } = await newIn(box, { from: 'web.yaml' });
    const call = async (words: string): Promise<string> => {
      const script = `set -eE; DIR=$PWD; for file in "$1"/*.sh; do . "$file"; done
        . addons/web/1.0.0/install.sh; ${words}`;
      const env = {
        KUBECONFIG: server.kubeconfig,
        PATH: `${dirname(oracle('../api-server/kubectl'))}:${process.env['PATH'] ?? ''}`,
      };
      const { all } = await execa('bash', ['-c', script, 'bash', LIBRARY], { cwd: box.path, env, all: true });
      return all;
    };
    const found = async (): Promise<readonly string[]> => {
      const kinds = 'namespace,persistentvolumeclaim,clusterrole,deployment,service,customresourcedefinition';
      const list = await server.kubectl(['get', kinds, '--all-namespaces', '-o', 'name']);
      return list.split('\n').filter((name) => /\bwebs?\b|data/.test(name) && !name.includes('system:'));
    };
    // Nothing rolls out on an API server alone.
    assert.match(await call('web'), 'web is applied, but this cluster has no nodes to run it');
    const node = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'one' } });
    assert.match(await call(`echo '${node}' | kubectl create -f -; web_running || echo waits`), 'waits');
    const before = await found();
    assert.ok(before.length > 4, before.join(' '));
    await call('CURLEW_KEEP_DATA=1; web_pre_remove');
    assert.equal(await found(), [
      `namespace/${namespace}`,
      'persistentvolumeclaim/data',
      'customresourcedefinition.apiextensions.k8s.io/webs.example.com',
    ]);
  });
}

test.run();
