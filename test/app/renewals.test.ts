/** A controller under a flood of requests for certificates. */
import { passRequests } from '../../src/fleet/hub/run/renewals.ts';
import type { AgentRequest } from '../../src/fleet/hub/certificate-requests.ts';
import type { Call } from '../../src/cluster/kube/call.ts';
import { Backoff } from '../../src/platform/limit/backoff.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

// own process: measures memory
const test = suite('app/renewals');

const FLOOD = 5000;
const MB = 1 << 20;

function request(place: number, more: Partial<AgentRequest> = {}): AgentRequest {
  return {
    name: `curlew-paris-${String(place).padStart(5, '0')}`,
    resourceVersion: '1',
    createdAt: '2026-01-02T03:04:05Z',
    kind: 'join',
    cluster: 'paris',
    by: 'system:bootstrap:abcdef',
    user: 'curlew:cluster:paris:1',
    fingerprint: '',
    isPending: true,
    isApproved: false,
    isIssued: false,
    problem: 'its usages are not exactly "client auth"',
    ...more,
  };
}

function renewal(place: number, user: string): AgentRequest {
  return request(place, { kind: 'renewal', cluster: user, by: user, user, problem: undefined });
}

/** A hub with these requests, in which each cluster has accepted the user of its own name. */
function hubWith(all: readonly AgentRequest[]) {
  const open = new Map(all.map((one) => [one.name, one]));
  const decided: string[] = [];
  let looks = 0;
  const call: Call = async (_doing, { path }) => {
    const [, namespace = '', binding] = /namespaces\/fleet-([^/]+)\/(rolebindings)/.exec(path) ?? [];
    const value =
      binding === undefined ? { metadata: { name: path } } : { subjects: [{ kind: 'User', name: namespace }] };
    const [, name = ''] = /certificatesigningrequests\/([^/]+)\/approval/.exec(path) ?? [];
    if (open.delete(name)) decided.push(name);
    const metadata = { name: name || 'x', uid: 'x', resourceVersion: '2', labels: {}, annotations: {}, finalizers: [] };
    return Promise.resolve({ outcome: 'done', value: { metadata, ...value } } as never);
  };
  const requests = {
    problem: undefined,
    values: () => {
      looks += 1;
      return [...open.values()];
    },
    put: () => undefined,
  };
  const { signal } = new AbortController();
  const hub = { call, signal, requests, backoff: new Backoff(), say: () => undefined };
  return { hub, decided, looks: () => looks };
}

test('of 5,000 bad requests of a token, a pass decides 16, and renewals of other senders are among them', async () => {
  const flood = Array.from({ length: FLOOD }, (_, place) => request(place));
  const users = Array.from({ length: 10 }, (_, place) => `rome${place}`);
  const renewals = users.map((user, place) => renewal(FLOOD + place, user));
  const { hub, decided, looks } = hubWith([...flood, ...renewals]);
  const before = process.memoryUsage().heapUsed;
  const { problem, nextMs } = await passRequests(hub);
  assert.ok(process.memoryUsage().heapUsed - before < 20 * MB);
  assert.equal([problem, nextMs, decided.length, looks()], [undefined, 0, 16, 1]);
  assert.ok(renewals.every(({ name }) => decided.includes(name)));
  await passRequests(hub);
  assert.is(decided.length, 32);
});

test('5,000 renewals of one agent: all but the newest are denied in time, and another agent is not kept waiting', async () => {
  const flood = Array.from({ length: FLOOD }, (_, place) => renewal(place, 'paris'));
  const other = renewal(FLOOD, 'rome');
  const { hub, decided } = hubWith([...flood, other]);
  await passRequests(hub);
  assert.is(decided.length, 16);
  assert.ok(decided.includes(other.name));
});

test('requests that wait for a person are neither decided nor a reason to come back', async () => {
  const { hub, decided } = hubWith(Array.from({ length: FLOOD }, (_, place) => request(place, { problem: undefined })));
  const { nextMs } = await passRequests(hub);
  assert.equal([decided.length, nextMs], [0, Infinity]);
});

test.run();
