/** A machine whose kubeadm was cut: who reads its cluster says so, and the repeated install goes on. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { CurlewError } from '../../../src/core/errors.ts';
import type { ProgressEvent } from '../../../src/core/events.ts';
import { openApi } from '../../../src/cluster/kube/api.ts';
import { madeIn } from '../../../src/cluster/kube/kubeadm-made.ts';
import { readFacts } from '../../../src/machine/facts.ts';
import { clusterHealth } from '../../../src/machine/run/node-health.ts';
import { openOwnApi } from '../../../src/machine/run/nodes.ts';
import { openCluster } from '../../../src/runtime/cluster/cluster.ts';
import { readRecords } from '../../../src/runtime/node/records.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../../support/api-server/server.ts';
import { StatusError } from '../../support/api-server/store.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('a machine whose kubeadm was cut');
const certificate = await makeCertificate();
const MARK = 'kubernetes/curlew/attempt';

interface Scene extends AsyncDisposable {
  readonly box: Tree;
  readonly server: MemoryApiServer;
  readonly env: Readonly<Record<string, string>>;
  /** Whether the API server denies everything, as before kubeadm has bound the role of administrators. */
  denies: boolean;
}

/** A machine whose kubeadm was cut after it had written admin.conf. */
async function cutMachine(): Promise<Scene> {
  const box = await tree();
  const before = (): void => {
    if (scene.denies) throw new StatusError(403, 'Forbidden', 'User "kubernetes-admin" cannot get resource');
  };
  const server = await startMemoryApiServer({ certificate, before });
  await mkdir(box.at('kubernetes/curlew'), { recursive: true });
  await writeFile(box.at(MARK), '');
  await writeFile(box.at('kubernetes/admin.conf'), server.kubeconfig);
  const scene: Scene = {
    box,
    server,
    env: { KUBECONFIG: box.at('kubernetes/admin.conf') },
    denies: true,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
  return scene;
}

test('its files say whether it is in a cluster: the mark of an attempt counts before any kubeconfig', async () => {
  await using box = await tree();
  const folder = box.at('kubernetes');
  assert.is(await madeIn(folder), 'none');
  await mkdir(box.at('kubernetes/curlew'), { recursive: true });
  assert.is(await madeIn(folder), 'none');
  await writeFile(box.at(MARK), '');
  assert.is(await madeIn(folder), 'unfinished');
  await writeFile(box.at('kubernetes/kubelet.conf'), '');
  assert.is(await madeIn(folder), 'unfinished');
  await rm(box.at(MARK));
  assert.is(await madeIn(folder), 'made');
});

for (const moment of ['before it wrote admin.conf', 'after it']) {
  test(`who asks its cluster is told, before a request, what completes a kubeadm that was cut ${moment}`, async () => {
    await using scene = await cutMachine();
    if (moment !== 'after it') await rm(scene.box.at('kubernetes/admin.conf'));
    const error = await openApi({ env: scene.env }).catch((reason: unknown) => reason);
    assert.ok(error instanceof CurlewError);
    assert.is(error.code, 'CLUSTER_FAILED');
    assert.is(error.message, 'this machine is in no cluster yet: kubeadm init or join has not finished');
    assert.match(error.hint ?? '', 'curlew resume');
    const folders = {
      kubernetes: scene.box.at('kubernetes'),
      kubelet: scene.box.at('kubelet'),
      images: scene.box.path,
    };
    assert.equal((await clusterHealth({ env: {}, signal: never }, folders))?.problems, [error.message]);
    assert.equal(scene.server.requests, []);
  });
}

test('a machine with the mark of an attempt is no control plane', () => {
  const facts = ['hostname=cp1', 'machineId=1', 'arch=x86_64', 'part=admin.conf'];
  assert.is(readFacts(facts.join('\n'))?.isControlPlane, true);
  assert.is(readFacts([...facts, 'part=curlew/attempt'].join('\n'))?.isControlPlane, false);
});

test('a run that upgrades nodes sees no cluster on it, and then the one that is made', async () => {
  await using scene = await cutMachine();
  const context = { env: {}, cwd: scene.box.path, signal: never, report: noReport };
  const at = { folder: scene.box.at('kubernetes') };
  assert.is(await openOwnApi(context, at), undefined);
  await rm(scene.box.at(MARK));
  assert.is((await openOwnApi(context, at))?.isAdmin, true);
  await rm(scene.box.at('kubernetes/admin.conf'));
  await writeFile(scene.box.at('kubernetes/kubelet.conf'), scene.server.kubeconfig);
  assert.is((await openOwnApi(context, at))?.isAdmin, false);
});

for (const answers of ['denies everything', 'already answers']) {
  test(`a repeated install completes a cluster that ${answers}, and records itself in what it has made`, async () => {
    await using scene = await cutMachine();
    scene.denies = answers === 'denies everything';
    const { box, env } = scene;
    // kubeadm makes another cluster in the place of the one that was cut.
    const made = await startMemoryApiServer({ certificate });
    await using _made = made;
    await writeFile(box.at('made.conf'), made.kubeconfig);
    const hook = 'kubernetes() { cp "$MADE" "$KUBECONFIG"; rm "$MARK"; }';
    const packages = await packagesOf(bundleOf([tracer('kubernetes', hook), tracer('flannel')]));
    const find = async () => openCluster({ env, patienceMs: 0, signal: never });
    const cluster = { find, adopt: false, whole: true, release: undefined, entries: new Map() };
    const events: ProgressEvent[] = [];
    const more = {
      ...env,
      PATH: process.env['PATH'],
      TRACE: box.at('trace'),
      MARK: box.at(MARK),
      MADE: box.at('made.conf'),
    };
    await run(box, packages, { cluster, env: more, events });
    const notes = events.flatMap((event) => (event.type === 'note' ? [event.text] : []));
    assert.match(notes.join('\n'), /kubeadm init or join has not finished/);
    assert.equal(
      scene.server.requests.filter((one) => one.includes('namespaces')),
      [],
    );
    assert.is((await readRecords(box.at('node'))).cluster, (await find())?.uid);
    assert.match(JSON.stringify(await (await find())?.readRecords()), /"flannel":\{.*"finished":true/);
  });
}

test.run();
