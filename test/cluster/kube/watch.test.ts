/** The objects of a kind as a list and a watch of an API server show them, also after whatever breaks either. */
import { openApi } from '../../../src/cluster/kube/api.ts';
import { listObjects, type LiveObject } from '../../../src/cluster/kube/objects.ts';
import { openCalls } from '../../../src/cluster/kube/call.ts';
import { Watch } from '../../../src/cluster/kube/watch.ts';
import { Backoff } from '../../../src/platform/limit/backoff.ts';
import { until } from '../../support/appears.ts';
import { apiClient, type ApiClient } from '../../support/api-client.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../../support/api-server/server.ts';
import { StatusError } from '../../support/api-server/store.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';

const test = suite('cluster/kube/watch');
const certificate = await makeCertificate();
const MAPS = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
const PATH = '/api/v1/namespaces/default/configmaps';
/** All attempts may begin at once. */
const soon = (): Backoff => new Backoff({ random: () => -2, now: () => 0 });

interface Scene extends AsyncDisposable {
  readonly server: MemoryApiServer;
  readonly client: ApiClient;
  readonly watch: Watch<string>;
  readonly sees: (...names: readonly string[]) => Promise<void>;
  /** Requests of the watch so far. */
  readonly count: (kind: 'list' | 'watch') => number;
}

async function scene(
  before: (request: string) => void = () => undefined,
  { idleMs = 60_000, first = ['one', 'two'] }: { readonly idleMs?: number; readonly first?: readonly string[] } = {},
): Promise<Scene> {
  let isOpen = false;
  const server = await startMemoryApiServer({
    certificate,
    before: (request) => {
      if (isOpen) before(request);
    },
  });
  const box = await tree({ conf: server.kubeconfig });
  const client = apiClient(server.kubeconfig);
  for (const name of first) await client.create(PATH, { metadata: { name } });
  const api = await openApi({ env: { KUBECONFIG: box.at('conf') } });
  if (api === undefined) throw new Error('no kubeconfig');
  const look = ({ metadata }: LiveObject): string => metadata.name;
  const watch = new Watch(api, { resource: MAPS, look, onChange: () => undefined, idleMs, backoff: soon() });
  const stop = new AbortController();
  isOpen = true;
  const running = watch.run(stop.signal).catch(() => undefined);
  return {
    server,
    client,
    watch,
    sees: async (...names) => until(() => watch.values().toSorted().join() === names.toSorted().join()),
    count: (kind) =>
      server.requests.filter(
        (one) => one.startsWith('GET /api/v1/configmaps') && one.includes('watch=') === (kind === 'watch'),
      ).length,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

test('objects are listed once, and each change comes by itself', async () => {
  await using it = await scene();
  await it.sees('one', 'two');
  assert.is(it.watch.problem, undefined);
  await it.client.create(PATH, { metadata: { name: 'three' } });
  await it.client.remove(`${PATH}/one`);
  await it.sees('two', 'three');
  assert.equal([it.count('list'), it.count('watch')], [1, 1]);
});

test('a list comes in pages', async () => {
  const first = Array.from({ length: 130 }, (_, at) => `map-${at}`);
  await using it = await scene(undefined, { first });
  await it.sees(...first);
  assert.is(it.count('list'), 2);
});

test('a version that has expired leads to a new list', async () => {
  let isFirst = true;
  await using it = await scene((request) => {
    if (!request.includes('watch=true') || !isFirst) return;
    isFirst = false;
    throw new StatusError(410, 'Expired', 'too old resource version');
  });
  await until(() => it.count('list') === 2);
  await it.client.create(PATH, { metadata: { name: 'three' } });
  await it.sees('one', 'two', 'three');
  assert.is(it.watch.problem, undefined);
});

test('a connection that is silent leads to a new list', async () => {
  await using it = await scene(undefined, { idleMs: 100 });
  await it.sees('one', 'two');
  await until(() => it.count('list') >= 3);
  await it.client.create(PATH, { metadata: { name: 'three' } });
  await it.sees('one', 'two', 'three');
});

for (const [title, error, message] of [
  ['a server that is overloaded', new StatusError(429, 'TooManyRequests', 'try later'), /429|try later/],
  ['a user without rights', new StatusError(403, 'Forbidden', 'no'), /403/],
  ['a kind that is gone', new StatusError(404, 'NotFound', 'the server could not find it'), /does not have this kind/],
  ['a server that is broken', new StatusError(500, 'InternalError', 'etcd'), /500|etcd/],
] as const) {
  test(`${title}: what was seen stays, with the problem, until a list is whole again`, async () => {
    let isBroken = false;
    await using it = await scene(
      (request) => {
        if (isBroken && request.includes('/configmaps')) throw error;
      },
      { idleMs: 150 },
    );
    await it.sees('one', 'two');
    isBroken = true;
    await until(() => message.test(it.watch.problem ?? ''));
    assert.equal(it.watch.values(), ['one', 'two']);
    isBroken = false;
    await it.client.remove(`${PATH}/one`);
    await it.sees('two');
    assert.is(it.watch.problem, undefined);
  });
}

test('a list that fails between its pages changes nothing', async () => {
  const first = Array.from({ length: 130 }, (_, at) => `map-${at}`);
  let isBroken = false;
  await using it = await scene(
    (request) => {
      if (isBroken && request.includes('continue=')) throw new StatusError(500, 'InternalError', 'etcd');
    },
    { idleMs: 150, first },
  );
  await it.sees(...first);
  isBroken = true;
  await until(() => it.watch.problem?.includes('list configmaps') === true);
  assert.is(it.watch.values().length, 130);
});

test('what a write returns is known before the watch brings it, and older news do not undo it', async () => {
  await using it = await scene();
  await it.sees('one', 'two');
  const api = await openApi({ env: { KUBECONFIG: (await tree({ conf: it.server.kubeconfig })).at('conf') } });
  if (api === undefined) throw new Error('no kubeconfig');
  const call = openCalls(api, { patienceMs: 0, signal: never });
  const old = (await listObjects(call, MAPS))?.find(({ metadata }) => metadata.name === 'one');
  await it.client.remove(`${PATH}/one`);
  await it.sees('two');
  await it.client.create(PATH, { metadata: { name: 'one' } });
  await it.sees('one', 'two');
  if (old === undefined) throw new Error('there is no object');
  it.watch.drop(old.metadata);
  assert.equal(it.watch.values().toSorted(), ['one', 'two']);
  // The response of the write that has taken the last finalizer may come after the news of the deletion.
  await it.client.remove(`${PATH}/one`);
  await it.sees('two');
  it.watch.put({ ...old, metadata: { ...old.metadata, deletionTimestamp: '2026-01-02T03:04:05Z' } });
  assert.equal(it.watch.values(), ['two']);
});

test('after a failure, a key waits 1 s, then twice as long each time, up to 5 minutes', () => {
  let now = 0;
  const backoff = new Backoff({ now: () => now, random: () => 0.5 });
  const waits = Array.from({ length: 10 }, () => backoff.failed('a'));
  assert.equal(waits, [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]);
  assert.equal([backoff.mayBegin('a'), backoff.mayBegin('b'), backoff.keep(new Set(['a']))], [false, true, 300_000]);
  now = 300_000;
  assert.equal([backoff.mayBegin('a'), backoff.keep(new Set(['a']))], [true, Infinity]);
  backoff.succeeded('a');
  assert.is(backoff.failed('a'), 1000);
  assert.is(backoff.keep(new Set()), Infinity);
  assert.ok(backoff.mayBegin('a'));
});

test.run();
