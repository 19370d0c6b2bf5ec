/** An upgrade of a node that is cut after its last hook: whenever that is, the same command again leaves no node cordoned. */
import { cpSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { upgradeOf } from '../../src/app/node-upgrade.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { nodePath } from '../../src/core/layout.ts';
import { whyAddon } from '../../src/runtime/history/why.ts';
import { unfinishedRequest } from '../../src/runtime/prepare/last-run.ts';
import { prepare } from '../../src/runtime/prepare/prepare.ts';
import { execute } from '../../src/runtime/run/execute.ts';
import { apiClient, at, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { packagesOf, requestOf, trace, tracer } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('an upgrade that is cut');
const certificate = await makeCertificate();
const NODE = hostname().toLowerCase();

interface Scene extends AsyncDisposable {
  readonly box: Tree;
  readonly server: MemoryApiServer;
  readonly api: ApiClient;
  /** Called at each request to the API server. */
  moment: (what: string) => void;
  /** What `curlew upgrade` does with a bundle of this version. Returns what is next. */
  readonly upgrade: (version: string, given?: Given) => Promise<string | undefined>;
}

interface Given {
  readonly signal?: AbortSignal;
  readonly report?: (event: ProgressEvent) => void;
}

/** This machine as the only control plane of its cluster, with Kubernetes 1.33.13 by a run. */
async function scene(): Promise<Scene> {
  const box = await tree();
  const server = await startMemoryApiServer({ certificate, before: (request) => one.moment(request) });
  const api = apiClient(server.kubeconfig);
  await mkdir(box.at('kubernetes'));
  await writeFile(box.at('kubernetes/admin.conf'), server.kubeconfig);
  const one: Scene = {
    box,
    server,
    api,
    moment: () => undefined,
    upgrade: async (version, { signal = never, report = () => undefined } = {}) => {
      const context = { signal, report, env: {}, cwd: box.path };
      const request = requestOf(
        box,
        await packagesOf(bundleOf([tracer('kubernetes', '', version), tracer('flannel')])),
      );
      await using prepared = await prepare(request, context);
      const upgrade = await upgradeOf(prepared, {}, context, { folder: box.at('kubernetes') });
      await execute(prepared, { report, signal, node: upgrade?.around });
      return upgrade?.next();
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
  await one.upgrade('1.33.13');
  const labels = { 'node-role.kubernetes.io/control-plane': '' };
  await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE, labels } });
  await setVersion(one, 'v1.33.13');
  await trace(box);
  return one;
}

async function setVersion({ api }: Scene, version: string): Promise<void> {
  const conditions = [{ type: 'Ready', status: 'True' }];
  const nodeInfo = { kubeletVersion: version, containerRuntimeVersion: 'containerd://2.2.6' };
  await api.merge(`/api/v1/nodes/${NODE}/status`, { status: { conditions, nodeInfo } });
  const maps = '/api/v1/namespaces/kube-system/configmaps';
  const data = { ClusterConfiguration: `kind: ClusterConfiguration\nkubernetesVersion: ${version}\n` };
  const metadata = { name: 'kubeadm-config', namespace: 'kube-system' };
  if ((await api.get(`${maps}/kubeadm-config`)).status === 200) await api.merge(`${maps}/kubeadm-config`, { data });
  else await api.create(maps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
}

async function isCordoned({ api }: Scene): Promise<boolean> {
  return at((await api.get(`/api/v1/nodes/${NODE}`)).body, 'spec.unschedulable') === true;
}

/** Upgrades to 1.34.4, whose kubelet reports its version with the outro of the last add-on. */
async function whole(one: Scene, given: Given = {}): Promise<string | undefined> {
  let raised: Promise<void> | undefined;
  try {
    return await one.upgrade('1.34.4', {
      ...given,
      report: (event) => {
        if (event.type === 'step-started' && event.id === 'hook flannel_outro') raised = setVersion(one, 'v1.34.4');
        given.report?.(event);
      },
    });
  } finally {
    await raised;
  }
}

test('whenever it is killed after its last hook, its run is unfinished until the node is uncordoned, and the repeat does that', async () => {
  await using one = await scene();
  const { box, server } = one;
  const cuts: { readonly what: string; readonly at: string; readonly restore: () => void }[] = [];
  const cut = (what: string): void => {
    const copy = box.at(`cut-${cuts.length}`);
    cpSync(box.at('node'), copy, { recursive: true });
    cuts.push({ what, at: copy, restore: server.backUp() });
  };
  await whole(one, {
    report: (event) => {
      if (event.type === 'step-started' && event.id === 'node uncordon') one.moment = cut;
      if (event.type.startsWith('step-')) if (one.moment === cut) cut(`${event.type} ${'id' in event ? event.id : ''}`);
    },
  });
  one.moment = () => undefined;
  assert.is(await isCordoned(one), false);
  assert.ok(cuts.length >= 5, cuts.map(({ what }) => what).join('\n'));
  await trace(box);
  const states = new Set<boolean>();
  for (const { what, at: copy, restore } of cuts) {
    restore();
    await rm(box.at('node'), { recursive: true });
    await cp(copy, box.at('node'), { recursive: true });
    // The lock of a process that was killed is free.
    await rm(box.at(`node/${nodePath.lock}`), { force: true });
    await setVersion(one, 'v1.34.4');
    states.add(await isCordoned(one));
    assert.ok((await unfinishedRequest(box.at('node'))) !== undefined, `${what}: resume has something to resume`);
    const { last } = await whyAddon(box.at('node'), 'kubernetes', { signal: never });
    assert.ok(
      last?.actions.some(({ id }) => id === 'node uncordon'),
      what,
    );
    await one.upgrade('1.34.4');
    assert.is(await isCordoned(one), false, what);
    assert.is(await unfinishedRequest(box.at('node')), undefined, what);
    assert.equal(await trace(box), [], `${what}: no hook runs again`);
  }
  assert.is(states.size, 2, 'it is cut before the uncordon, and after it');
});

test('Ctrl-C while it waits for the node says how to continue, and a resume does', async () => {
  await using one = await scene();
  const stop = new AbortController();
  const report = (event: ProgressEvent): void => {
    if (event.type === 'step-started' && event.id === 'node uncordon') stop.abort();
  };
  const error = await assert.rejectsWith(whole(one, { signal: stop.signal, report }), 'CANCELLED');
  assert.match(error.hint ?? '', 'curlew resume');
  assert.is(await isCordoned(one), true);
  await one.upgrade('1.34.4');
  assert.is(await isCordoned(one), false);
});

test('a node that an earlier version of curlew has left cordoned is uncordoned by a run that has nothing else to do', async () => {
  await using one = await scene();
  await whole(one);
  const spec = { unschedulable: true };
  const path = `/api/v1/nodes/${NODE}`;
  await one.api.merge(path, { metadata: { annotations: { 'curlew.dev/cordon': 'v1.34.4' } }, spec });
  assert.is(await one.upgrade('1.34.4'), `${NODE} takes pods again`);
  assert.is(await isCordoned(one), false);
  assert.is(await one.upgrade('1.34.4'), undefined);
  // The cordon of a person stays.
  await one.api.merge(path, { spec });
  assert.is(await one.upgrade('1.34.4'), undefined);
  assert.is(await isCordoned(one), true);
});

test('a run that changes nothing goes on without an API server', async () => {
  await using one = await scene();
  await one.server[Symbol.asyncDispose]();
  assert.is(await one.upgrade('1.33.13'), undefined);
  assert.equal(await trace(one.box), [
    'kubernetes_pre_init 1',
    'flannel_pre_init 1',
    'kubernetes_already_applied 1',
    'flannel_already_applied 1',
    'kubernetes_post_init 1',
    'flannel_post_init 1',
    'kubernetes_outro 1',
    'flannel_outro 1',
  ]);
});

test.run();
