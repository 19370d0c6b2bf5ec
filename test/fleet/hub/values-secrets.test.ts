/** Digests of values in Secrets, for passes of a controller. */
import { CurlewError } from '../../../src/core/errors.ts';
import { readFleetAddon, type HubAddon, type Live } from '../../../src/fleet/hub/observe.ts';
import { statusObject } from '../../../src/fleet/hub/write.ts';
import { ValuesSecrets } from '../../../src/fleet/hub/run/values-secrets.ts';
import { step } from '../../../src/fleet/rollout/step.ts';
import { Refused, type Call } from '../../../src/cluster/kube/call.ts';
import * as assert from '../../support/assert.ts';
import { hubAddon } from '../../support/hub-objects.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/values-secrets');
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
    const value = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'web', uid: hub.uid }, data };
    return Promise.resolve({ outcome: 'done', value, bytes: 0 });
  };
  const secrets = new ValuesSecrets(call, () => hub.at);
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
  hub.at += ValuesSecrets.keptMs;
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
    hub.at += ValuesSecrets.keptMs;
    assert.is(await look(), expected);
  }
  hub.text = 'token: first';
  assert.match(await look(), /is not a map/);
  hub.at += ValuesSecrets.keptMs;
  assert.match(await look(), /^sha256:/);
});

test('a server that is away leaves an add-on as it was, and a missing right is named with what gives it', async () => {
  const { hub, look } = hubWith({ text: 'token: first', uid: '1' });
  const first = await look();
  hub.failure = new CurlewError('CLUSTER_FAILED', 'no answer');
  hub.at += ValuesSecrets.keptMs;
  assert.is(await look(), first);
  const failure = new Refused('cannot read Secret curlew-system/web: forbidden', '', { status: 403 });
  const { look: lookAtOther } = hubWith({ text: '', uid: '1', failure });
  assert.match(await lookAtOther(), /forbidden: apply what curlew hub manifests --values-secret web prints$/);
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
  hub.at += ValuesSecrets.keptMs - 1;
  await assert.rejectsWith(look(), 'CLUSTER_FAILED', /decrypted/);
  hub.at += 1;
  assert.is(await look(), failure.message);
  hub.failure = undefined;
  hub.at += ValuesSecrets.keptMs;
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
    hub.at += ValuesSecrets.keptMs;
    await assert.rejectsWith(look(), 'CLUSTER_FAILED', /decrypted/);
    hub.at += ValuesSecrets.keptMs;
    assert.is(await look(), failure.message);
    await secrets.complete([], SIGNAL);
    hub.at += ValuesSecrets.keptMs;
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
  const digests = (await new ValuesSecrets(call).complete(addons, SIGNAL)).map(digestOf);
  assert.equal([reads, most, new Set(digests).size, digests.includes('')], [30, 20, 30, false]);
});

test('other values than those of a revision are not delivered, and the next pass knows of them', async () => {
  const { hub, secrets, look } = hubWith({ text: 'token: first', uid: '1' });
  const digest = await look();
  assert.equal((await secrets.read({ name: 'web', digest })).values, { token: 'first' });
  hub.text = 'token: second';
  await assert.rejectsWith(secrets.read({ name: 'web', digest }), 'CLUSTER_FAILED', /no longer has the values/);
  const second = await look();
  assert.is.not(second, digest);
  assert.equal((await secrets.read({ name: 'web', digest: second })).values, { token: 'second' });
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
