/** Digests of values in Secrets and ConfigMaps, for passes of a controller. */
import { CurlewError } from '../../../src/core/errors.ts';
import { readFleetAddon, type HubAddon, type Live } from '../../../src/fleet/hub/observe.ts';
import { happened, statusObject } from '../../../src/fleet/hub/write.ts';
import type { ClusterAddon, FleetAddonStatus } from '../../../src/fleet/rollout/fleet.ts';
import { ValuesObjects } from '../../../src/fleet/hub/run/values-objects.ts';
import { valuesDigest } from '../../../src/fleet/hub/values-object.ts';
import { step } from '../../../src/fleet/rollout/step.ts';
import { Refused, type Call } from '../../../src/cluster/kube/call.ts';
import * as assert from '../../support/assert.ts';
import { hubAddon } from '../../support/hub-objects.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/values-objects');
const { signal: SIGNAL } = new AbortController();

function addonWith(annotations: Readonly<Record<string, string>> = {}, status?: object, secret = 'web') {
  const own = hubAddon('web', { valuesSecret: { name: secret } }) as Live;
  const metadata = {
    name: 'web',
    uid: 'u',
    resourceVersion: '1',
    generation: 1,
    labels: {},
    annotations,
    finalizers: [],
  };
  return readFleetAddon({ ...own, metadata, ...(status && { status }) });
}

function digestOf(one: HubAddon | undefined): string {
  const { source } = one?.addon ?? addonWith().addon;
  const content = 'content' in source ? source.content : {};
  return (content['valuesSecret'] as { readonly digest?: string }).digest ?? '';
}

/** A hub with this Secret; `at` is the clock. */
function hubWith(given: { text: string | undefined; uid: string; failure?: CurlewError | undefined }) {
  const hub = { ...given, reads: 0, at: 0 };
  const call: Call = async () => {
    hub.reads += 1;
    if (hub.failure !== undefined) throw hub.failure;
    if (hub.text === undefined) return Promise.resolve({ outcome: 'not found' });
    const data = hub.text === '' ? {} : { 'values.yaml': Buffer.from(hub.text).toString('base64') };
    const metadata = { name: 'web', uid: hub.uid, resourceVersion: `of ${hub.text}` };
    return Promise.resolve({ outcome: 'done', value: { apiVersion: 'v1', kind: 'Secret', metadata, data }, bytes: 0 });
  };
  const secrets = new ValuesObjects(call, () => hub.at);
  const look = async (): Promise<string> => {
    const [one] = await secrets.complete([addonWith()], SIGNAL);
    return one?.problem ?? digestOf(one);
  };
  return { hub, secrets, look };
}

test('a digest is kept for a while, changes with the values, and cannot be told from the values alone', async () => {
  const { hub, look } = hubWith({ text: 'token: first', uid: '1' });
  const first = await look();
  assert.equal([await look(), hub.reads], [first, 1]);
  hub.text = 'token: second';
  assert.is(await look(), first);
  hub.at += ValuesObjects.keptMs;
  const second = await look();
  assert.equal([second === first, hub.reads], [false, 2]);
  assert.is.not(await hubWith({ text: 'token: second', uid: '2' }).look(), second);
});

test('a Secret that is missing, has no such key, or no map is a problem, whose message quotes nothing of it', async () => {
  const { hub, look } = hubWith({ text: 'token: first', uid: '1' });
  await look();
  const problems: readonly (readonly [string | undefined, string])[] = [
    [undefined, 'there is no Secret curlew-system/web'],
    ['', 'Secret curlew-system/web has no text in data.values.yaml'],
    ['a: 1\ntoken: "some', 'Secret curlew-system/web: data.values.yaml is not a map in YAML: line 2'],
    ['some', 'Secret curlew-system/web: data.values.yaml is not a map in YAML: line 1'],
  ];
  for (const [text, expected] of problems) {
    hub.text = text;
    hub.at += ValuesObjects.keptMs;
    assert.is(await look(), expected);
  }
  hub.text = 'token: first';
  assert.match(await look(), /is not a map/);
  hub.at += ValuesObjects.keptMs;
  assert.match(await look(), /^sha256:/);
});

test('a server that is away leaves an add-on as it was, and a missing right is named with what gives it', async () => {
  const { hub, look } = hubWith({ text: 'token: first', uid: '1' });
  const first = await look();
  hub.failure = new CurlewError('CLUSTER_FAILED', 'no answer');
  hub.at += ValuesObjects.keptMs;
  assert.is(await look(), first);
  const failure = new Refused('cannot read Secret curlew-system/web: forbidden', '', { status: 403 });
  const { look: lookAtOther } = hubWith({ text: '', uid: '1', failure });
  assert.match(
    await lookAtOther(),
    /forbidden: apply what curlew hub manifests --values-secret web prints; repeat the options of earlier runs, or/,
  );
});

test('a server that is away before anything was read makes no add-on invalid, and is asked again at once', async () => {
  const { hub, look } = hubWith({
    text: 'token: first',
    uid: '1',
    failure: new CurlewError('CLUSTER_FAILED', 'no answer'),
  });
  await assert.rejectsWith(look(), 'CLUSTER_FAILED', /no answer/);
  hub.failure = undefined;
  assert.match(await look(), /^sha256:/);
});

test('a Secret that a server refuses to return for long is a problem of its add-on alone', async () => {
  const failure = new Refused('cannot read Secret curlew-system/web: it cannot be decrypted', '', { status: 500 });
  const { hub, look } = hubWith({ text: 'token: first', uid: '1', failure });
  await assert.rejectsWith(look(), 'CLUSTER_FAILED', /decrypted/);
  hub.at += ValuesObjects.keptMs - 1;
  await assert.rejectsWith(look(), 'CLUSTER_FAILED', /decrypted/);
  hub.at += 1;
  assert.is(await look(), failure.message);
  hub.failure = undefined;
  hub.at += ValuesObjects.keptMs;
  assert.match(await look(), /^sha256:/);
});

test('a refusal after any other answer, or after nothing needed the Secret, counts as a new one', async () => {
  const failure = new Refused('cannot read Secret curlew-system/web: it cannot be decrypted', '', { status: 500 });
  const forbidden = new Refused('cannot read Secret curlew-system/web: forbidden', '', { status: 403 });
  const { hub, secrets, look } = hubWith({ text: undefined, uid: '1', failure });
  const between: readonly (() => Promise<unknown>)[] = [
    async () => {
      hub.failure = undefined;
      assert.match(await look(), /^there is no Secret/);
    },
    async () => {
      hub.failure = forbidden;
      assert.match(await look(), /forbidden/);
    },
    async () => secrets.complete([], SIGNAL),
  ];
  for (const answer of between) {
    hub.failure = failure;
    await assert.rejectsWith(look(), 'CLUSTER_FAILED', /decrypted/);
    await answer();
    hub.failure = failure;
    hub.at += ValuesObjects.keptMs;
    await assert.rejectsWith(look(), 'CLUSTER_FAILED', /decrypted/);
    hub.at += ValuesObjects.keptMs;
    assert.is(await look(), failure.message);
    await secrets.complete([], SIGNAL);
    hub.at += ValuesObjects.keptMs;
  }
});

test('the Secrets of many add-ons are read together, twenty at once, and each of them once', async () => {
  let [reads, present, most] = [0, 0, 0];
  const call: Call = async (_doing, { path }) => {
    reads += 1;
    present += 1;
    most = Math.max(most, present);
    await new Promise((done) => setImmediate(done));
    present -= 1;
    const [name = ''] = path.split('/').slice(-1);
    const value = { apiVersion: 'v1', kind: 'Secret', metadata: { name, uid: name }, data: { 'values.yaml': 'e30=' } };
    return { outcome: 'done', value, bytes: 0 };
  };
  const addons = Array.from({ length: 60 }, (_, at) => addonWith({}, undefined, `web-${at % 30}`));
  const digests = (await new ValuesObjects(call).complete(addons, SIGNAL)).map(digestOf);
  assert.equal([reads, most, new Set(digests).size, digests.includes('')], [30, 20, 30, false]);
});

test('other values than those of a revision are not delivered, and the next pass knows of them', async () => {
  const { hub, secrets, look } = hubWith({ text: 'token: first', uid: '1' });
  const digest = await look();
  const valuesOf = async (digest: string) => secrets.read([{ kind: 'Secret', name: 'web', digest }]);
  assert.equal((await valuesOf(digest))?.values, { token: 'first' });
  hub.text = 'token: second';
  await assert.rejectsWith(valuesOf(digest), 'CLUSTER_FAILED', /no longer has the values/);
  const second = await look();
  assert.is.not(second, digest);
  assert.equal((await valuesOf(second))?.values, { token: 'second' });
});

/** A ConfigMap of a hub with these values by cluster, and clusters `oslo` (a canary), `paris` and `rome`, which report what a test wants. */
function fleetWith(data: Readonly<Record<string, string>>) {
  const hub = { data, version: 1, at: 0 };
  const call: Call = async () => {
    const texts = Object.entries(hub.data).map(([name, text]) => [`${name}.values.yaml`, text]);
    const metadata = { name: 'web', uid: '1', resourceVersion: String(hub.version) };
    const value = { apiVersion: 'v1', metadata, data: Object.fromEntries(texts) as object };
    return Promise.resolve({ outcome: 'done', value, bytes: 0 });
  };
  const objects = new ValuesObjects(call, () => hub.at);
  const own = hubAddon('web', {
    valuesConfigMap: { name: 'web', perCluster: true },
    rollout: {
      type: 'ProgressivePerGroup',
      groups: [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }],
    },
  }) as Live;
  const metadata = { name: 'web', uid: 'u', resourceVersion: '1', labels: {}, annotations: {}, finalizers: [] };
  const clusters = ['oslo', 'paris', 'rome'].map((name) => {
    const labels = { env: 'prod', ...(name === 'oslo' && { ring: 'canary' }) };
    return { name, labels, available: true, kubernetes: 'v1.34.1' };
  });
  let clusterAddons: readonly ClusterAddon[] = [];
  let status: FleetAddonStatus | undefined;
  const events: string[] = [];
  /** What is written now, such as `oslo@1`, all of which succeeds then; and what waits. */
  const pass = async (): Promise<readonly [string, readonly string[]]> => {
    const [one] = await objects.complete([readFleetAddon({ ...own, metadata })], SIGNAL);
    assert.ok(one !== undefined && one.problem === undefined);
    const addons = [{ ...one.addon, ...(status && { status }) }];
    const {
      put,
      status: [next],
    } = step({ complete: true, clusters, addons, clusterAddons }, 1_800_000_000);
    if (next !== undefined) events.push(...happened(status, one, next.status).map(({ reason }) => reason));
    status = next?.status ?? status;
    const done = put.map(({ spec, ...key }): ClusterAddon => {
      const applied = { revision: spec.revision, hash: spec.specHash };
      return { ...key, spec, status: { applied, state: 'Succeeded', since: spec.startedAt } };
    });
    clusterAddons = [...clusterAddons.filter((old) => done.every(({ cluster }) => cluster !== old.cluster)), ...done];
    const waiting = status?.waiting ?? [];
    return [
      done.map(({ cluster, spec }) => `${cluster}@${spec.revision}`).join(' '),
      waiting.map(({ cluster, reason, message }) => `${cluster} ${reason} ${message}`),
    ];
  };
  const write = (next: Readonly<Record<string, string>>): void => {
    hub.data = next;
    hub.version += 1;
    hub.at += ValuesObjects.keptMs;
  };
  const sources = () => clusterAddons.map(({ spec }) => spec.source['valuesConfigMap']);
  return { pass, write, sources, events };
}

test('an object that names more clusters than a fleet has is refused before its texts are read', () => {
  const data = Object.fromEntries(Array.from({ length: 5001 }, (_, at) => [`c${at}.values.yaml`, '{']));
  const live = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web', uid: 'u' }, data } as unknown as Live;
  const place = { kind: 'ConfigMap', name: 'web', perCluster: true } as const;
  const refusal = /^a has values of 5001 clusters in keys CLUSTER\.values\.yaml, and at most 5000 may have some$/;
  assert.throwsWith(() => valuesDigest(live, place, 'a'), 'CLUSTER_FAILED', refusal);
  delete data['c0.values.yaml'];
  assert.is(valuesDigest(live, place, '').byCluster?.size, 5000);
});

test('values of each cluster roll out group by group, to the clusters whose own have changed', async () => {
  const { pass, write, sources } = fleetWith({ oslo: 'a: 1', paris: 'a: 1', rome: 'a: 2' });
  assert.is((await pass())[0], 'oslo@1');
  assert.is((await pass())[0], 'paris@1 rome@1');
  const [oslo, paris, rome] = sources() as readonly { readonly key: string; readonly digest: string }[];
  assert.equal([oslo?.key, oslo?.digest === paris?.digest], ['oslo.values.yaml', true]);
  assert.is.not(paris?.digest, rome?.digest);
  assert.is((await pass())[0], '');
  write({ oslo: 'a: 3', paris: 'a: 3', rome: 'a: 2' });
  assert.is((await pass())[0], 'oslo@2');
  assert.is((await pass())[0], 'paris@2');
  assert.is((await pass())[0], '');
});

test('a cluster whose values are missing or wrong waits with the reason, keeps what it has, and the others go on', async () => {
  const { pass, write, events } = fleetWith({ oslo: 'a: 1', rome: 'some' });
  assert.is((await pass())[0], 'oslo@1');
  const [written, waiting] = await pass();
  assert.equal(
    [written, waiting],
    [
      '',
      [
        'paris Content ConfigMap curlew-system/web has no text in data.paris.values.yaml',
        'rome Content ConfigMap curlew-system/web: data.rome.values.yaml is not a map in YAML: line 1',
      ],
    ],
  );
  assert.equal(events, ['RolloutStarted', 'Content']);
  write({ oslo: 'a: 1', paris: 'a: 1', rome: 'a: 1' });
  assert.is((await pass())[0], 'paris@1 rome@1');
  write({ paris: 'a: 2', rome: 'a: 2' });
  const [next, held] = await pass();
  assert.equal([next, held.length], ['paris@2 rome@2', 1]);
  assert.match(held.join(), /^oslo Content /);
});

test('an order of a rollout before the Secret changed is void, although the generation is the same', () => {
  const order = JSON.stringify({ generation: 1, at: '2026-01-02T03:04:05Z', groups: ['canary'] });
  const since = '2026-01-02T04:00:00Z';
  const status = { revision: 'x', since, observedGeneration: 1 };
  const { addon } = addonWith({ 'fleet.curlew.dev/approve': order }, status);
  assert.ok((addon.orders?.at ?? Infinity) < (addon.status?.since ?? 0));
});

test('an approval that is void since the Secret changed is named where a cluster waits, and in the conditions', () => {
  const began = Date.parse('2026-01-02T04:00:00Z') / 1000;
  const rollout = { groups: [{ name: 'all', selector: {} }], approval: ['all'] };
  const clusters = [{ name: 'oslo', labels: { env: 'prod' }, available: true, kubernetes: 'v1.34.1' }];
  const lookWith = (at: string, generation = 1) => {
    const found = addonWith({ 'fleet.curlew.dev/approve': JSON.stringify({ generation, at, groups: ['all'] }) });
    const addons = [{ ...found.addon, rollout }];
    const [written] = step({ complete: true, clusters, addons, clusterAddons: [] }, began).status;
    assert.ok(written);
    const { conditions } = statusObject(written.status, found, began);
    return JSON.stringify([written.status.waiting.map(({ message }) => message), conditions]);
  };
  const waits = "group all waits for a person's approval; the approval of 2026-01-02T03:04:05Z";
  const early = `${waits} is older than this rollout, which began at 2026-01-02T04:00:00Z: approve again`;
  assert.is(lookWith('2026-01-02T03:04:05Z').split(early).length, 4);
  const other = `${waits} was for another content: approve again`;
  assert.is(lookWith('2026-01-02T03:04:05Z', 7).split(other).length, 4);
  const later = "group all waits for a person's approval; the approval of 2026-01-02T05:00:00Z counts from then on: ";
  assert.is(lookWith('2026-01-02T05:00:00Z').split(later).length, 4);
  assert.not.match(lookWith('2026-01-02T04:00:00Z'), 'approval of');
});

test.run();
