/** What people order about an add-on of a hub, over an API server of the tests. */
import { approveAddon, pauseAddon, resumeAddon, retryAddon, rollBackAddon } from '../../src/app/fleet-order.ts';
import type { Context } from '../../src/core/context.ts';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { hubAddon } from '../support/hub-objects.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/hub-orders', { timeoutMs: 60_000 });
const ROOT = '/apis/fleet.curlew.dev/v1alpha1/fleetaddons';
const AT_HUB = { addon: 'web', kubeconfig: 'hub.conf' };
const certificate = await makeCertificate();

interface Hub extends AsyncDisposable {
  readonly client: ApiClient;
  readonly context: Context;
  readonly before: (hook: ((request: string) => void) | undefined) => void;
  readonly annotation: (verb: string) => Promise<unknown>;
}

/** A hub with the add-on `web`, whose group `prod` waits for an approval. */
async function openHub(): Promise<Hub> {
  let before: ((request: string) => void | Promise<void>) | undefined;
  const server = await startMemoryApiServer({ certificate, before: (request) => before?.(request) });
  const client = apiClient(server.kubeconfig);
  const definition = hubManifests().find((one) => textAt(one as never, 'metadata.name').startsWith('fleetaddons.'));
  await client.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition ?? {});
  while ((await client.get(ROOT)).status !== 200);
  const groups = ['canary', 'prod'].map((name) => ({ name, selector: { matchLabels: { env: name } } }));
  await client.create(ROOT, hubAddon('web', { rollout: { type: 'Progressive', groups, approval: ['prod'] } }));
  const box = await tree({ 'hub.conf': server.kubeconfig });
  const context = { signal: new AbortController().signal, report: noReport, env: { USER: 'eva' }, cwd: box.path };
  return {
    client,
    context,
    before: (hook) => (before = hook),
    annotation: async (verb) => {
      const { body } = await client.get(`${ROOT}/web`);
      const all = at(body, 'metadata.annotations') as Readonly<Record<string, string>> | undefined;
      const text = all?.[`fleet.curlew.dev/${verb}`];
      return text === undefined ? undefined : (JSON.parse(text) as unknown);
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

test('an order is an annotation with the generation, the time of the hub and who has given it; others stay', async () => {
  await using hub = await openHub();
  const { context } = hub;
  await hub.client.merge(`${ROOT}/web`, { metadata: { annotations: { team: 'a' } } });
  assert.equal(await pauseAddon(AT_HUB, context), { addon: 'web', generation: 1 });
  assert.is(await hub.annotation('pause'), true);
  await resumeAddon(AT_HUB, context);
  assert.is(await hub.annotation('pause'), undefined);
  await rollBackAddon(AT_HUB, context);
  const { at: time, ...rest } = (await hub.annotation('rollback')) as { readonly at: string };
  assert.equal(rest, { generation: 1, by: 'eva' });
  assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  assert.match((await retryAddon(AT_HUB, context)).warning ?? '', /^the order has no effect: the add-on goes back/);
  assert.ok(await hub.annotation('retry'));
  assert.is(textAt((await hub.client.get(`${ROOT}/web`)).body, 'metadata.annotations.team'), 'a');
});

test('an approval has what earlier ones of the generation have approved, except for what counts from its time', async () => {
  await using hub = await openHub();
  const { context } = hub;
  await assert.rejectsWith(approveAddon({ ...AT_HUB, group: ['canary'] }, context), 'USAGE', /needs no approval/);
  await assert.rejectsWith(approveAddon(AT_HUB, context), 'USAGE', /nothing says what/);
  assert.is(await hub.annotation('approve'), undefined);
  await approveAddon({ ...AT_HUB, removals: 3 }, context);
  assert.equal((await approveAddon({ ...AT_HUB, group: ['prod'] }, context)).groups, ['prod']);
  const { at: _at, ...both } = (await hub.annotation('approve')) as { readonly at: string };
  assert.equal(both, { generation: 1, by: 'eva', removals: 3, groups: ['prod'] });
  await approveAddon({ ...AT_HUB, downgrade: true }, context);
  const { at: _then, ...last } = (await hub.annotation('approve')) as { readonly at: string };
  assert.equal(last, { generation: 1, by: 'eva', groups: ['prod'], downgrade: true });
  await hub.client.merge(`${ROOT}/web`, { spec: { dependsOn: ['base'] } });
  await approveAddon({ ...AT_HUB, deletions: true }, context);
  const { at: _now, ...next } = (await hub.annotation('approve')) as { readonly at: string };
  assert.equal(next, { generation: 2, by: 'eva', deletions: true });
});

test('approvals of removals within one second have different times', async () => {
  await using hub = await openHub();
  const times: string[] = [];
  for (let removals = 1; removals < 4; removals += 1) {
    await approveAddon({ ...AT_HUB, removals }, hub.context);
    times.push(textAt((await hub.annotation('approve')) as never, 'at'));
  }
  assert.equal([...new Set(times)].toSorted(), times);
});

test('a change of another writer is kept, and one that never ends is named', async () => {
  await using hub = await openHub();
  let changes = 0;
  const disturb = (most: number) => (request: string) => {
    if (!request.startsWith('PATCH') || request.includes('merge') || changes >= most) return;
    changes += 1;
    throw new StatusError(409, 'Conflict', 'the object has been modified');
  };
  hub.before(disturb(2));
  await pauseAddon(AT_HUB, hub.context);
  assert.is(await hub.annotation('pause'), true);
  hub.before(disturb(Infinity));
  await assert.rejectsWith(pauseAddon(AT_HUB, hub.context), 'BUSY', /order anything about web: others change it/);
});

test('without the add-on or the right to it, with files too, or with neither, an order says what is wrong', async () => {
  await using hub = await openHub();
  const { context } = hub;
  await assert.rejectsWith(
    pauseAddon({ ...AT_HUB, addon: 'wbe' }, context),
    'NOT_FOUND',
    /the hub has no FleetAddon wbe/,
  );
  hub.before((request) => {
    if (request.startsWith('PATCH')) throw new StatusError(403, 'Forbidden', 'eva cannot patch fleetaddons');
  });
  await assert.rejectsWith(
    pauseAddon(AT_HUB, context),
    'CLUSTER_FAILED',
    /cannot change FleetAddon web: .*eva cannot patch/,
  );
  await assert.rejectsWith(
    pauseAddon({ ...AT_HUB, files: ['fleet'] }, context),
    'USAGE',
    /it is in files, or at a hub/,
  );
  await assert.rejectsWith(pauseAddon({ addon: 'web' }, context), 'USAGE', /it is in files, or at a hub/);
});

test.run();
