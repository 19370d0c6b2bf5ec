/** Versions of other programs' kinds that come and go while a controller runs. */
import { groupBy } from '../../../src/core/group-by.ts';
import { passHub } from '../../../src/fleet/hub/run/hub-pass.ts';
import { Upstream } from '../../../src/fleet/hub/run/upstream.ts';
import { FOREIGN_KINDS } from '../../../src/fleet/upstream/foreign-kinds.ts';
import type { ApiAnswer, KubeApi } from '../../../src/cluster/kube/api.ts';
import type { ApiFailure } from '../../../src/cluster/kube/problem.ts';
import { until } from '../../support/appears.ts';
import * as assert from '../../support/assert.ts';
import { noRepository, openMemoryHub } from '../../support/hub-memory.ts';
import { answering, contents, NOW } from '../../support/hub-passes.ts';
import { addOnTemplate, decision, managedCluster, managementAddOn, placement } from '../../support/ocm-files.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/upstream-versions');
const KINDS = FOREIGN_KINDS.clustermanagementaddons;
const GONE: ApiFailure = {
  kind: 'problem',
  problem: 'not found',
  message: 'the server could not find the requested resource',
};

/** A server with these objects, and the add-on kinds in versions that change. */
function serverOf(objects: readonly object[]) {
  let served: readonly string[] = [];
  const ends: (() => void)[] = [];
  const paths: string[] = [];
  const isGone = (path: string): boolean => {
    const [, group = '', version = ''] = /^\/apis\/([^/]+)\/([^/]+)\//.exec(path) ?? [];
    return group.startsWith('addon.') && !served.includes(version);
  };
  const discovery = (): object => ({
    kind: 'APIGroupDiscoveryList',
    items: [...groupBy(KINDS, ({ group }) => group)].map(([name, kinds]) => ({
      metadata: { name },
      versions: (name.startsWith('addon.') ? served : ['v1', 'v1beta1']).map((version) => ({
        version,
        resources: kinds.map(({ kind, plural: resource }) => {
          return { resource, responseKind: { kind }, scope: 'Namespaced', verbs: ['list'] };
        }),
      })),
    })),
  });
  const answerTo = (path: string): ApiAnswer => {
    if (path === '/api') return { kind: 'answer', value: { kind: 'APIGroupDiscoveryList', items: [] }, bytes: 0 };
    if (path === '/apis') return { kind: 'answer', value: discovery(), bytes: 0 };
    paths.push(path);
    if (isGone(path)) return GONE;
    const kind = KINDS.find(({ plural }) => path.includes(`/${plural}?`))?.kind;
    const items = objects.filter((one) => (one as { readonly kind: string }).kind === kind);
    return { kind: 'answer', value: { metadata: { resourceVersion: '1' }, items }, bytes: 0 };
  };
  const api = {
    ask: async ({ path }) => Promise.resolve(answerTo(path)),
    follow: async (path, { signal }) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        ends.push(() => isGone(path) && resolve(GONE));
      }),
  } as Pick<KubeApi, 'ask' | 'follow'> as KubeApi;
  const serve = (...versions: readonly string[]): void => {
    served = versions;
    for (const end of ends) end();
  };
  return { api, paths, serve };
}

test('a version that is no longer served is replaced by another known one, and nothing is removed meanwhile', async () => {
  const objects = [
    managedCluster('oslo', { env: 'prod' }),
    managementAddOn({ all: {} }),
    addOnTemplate('web-1', []),
    placement('all'),
    decision('all', ['oslo'], [0, '']),
  ].map((one, at) => {
    const { metadata, ...others } = one as { readonly metadata: object };
    return { ...others, metadata: { ...metadata, uid: `o${at}`, resourceVersion: '1' } };
  });
  const { api, paths, serve } = serverOf(objects);
  serve('v1beta1', 'v1alpha1');
  await using memory = await openMemoryHub([answering('oslo', 'v1.34.1'), ...objects]);
  const stop = new AbortController();
  const { signal } = stop;
  const said: string[] = [];
  const upstream = await Upstream.open(api, ['clustermanagementaddons'], {
    signal,
    askMs: 5,
    onChange: () => undefined,
    findNewest: noRepository,
    say: (_, text) => void said.push(text),
  });
  const running = upstream.run(signal).catch(() => undefined);
  try {
    const hub = { ...memory.hub, upstream };
    await until(() => upstream.problem === undefined);
    for (const at of [0, 1, 2]) assert.is((await passHub(hub, NOW + at)).isDecided, true);
    const before = contents(memory);
    assert.match(before, /^oslo:/);

    serve('v2');
    await until(() => upstream.problem?.includes('only as v2, not as v1alpha1 or v1beta1') === true);
    const count = memory.writes.length;
    assert.is((await passHub(hub, NOW + 3)).isDecided, false);
    assert.equal([memory.writes.slice(count), contents(memory)], [[], before]);

    serve('v1beta1');
    await until(() => upstream.problem === undefined);
    const asked = paths.length;
    for (const at of [4, 5]) assert.is((await passHub(hub, NOW + at)).isDecided, true);
    assert.equal([memory.writes.filter((one) => one.startsWith('delete')), contents(memory)], [[], before]);
    const group = 'addon.open-cluster-management.io';
    const text = `clustermanagementaddons are read in other versions from now on: ClusterManagementAddOn in ${group}/v1beta1 instead of ${group}/v1alpha1`;
    assert.equal(said.filter((one) => one.startsWith(text)).length, 1);
    serve('v1beta1', 'v2');
    assert.equal(
      paths.slice(asked).filter((path) => path.includes('/v1alpha1/')),
      [],
    );
  } finally {
    stop.abort(new Error('the test is over'));
    await running;
  }
});

test.run();
