import type { Call } from '../../../src/cluster/kube/call.ts';
import type { LiveObject } from '../../../src/cluster/kube/objects.ts';
import { diagnose } from '../../../src/cluster/deliver/diagnose.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/deliver/troubles');

const POD = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const metadata = { name: 'web-1', namespace: 'web', uid: 'u' };
/** No events, no logs. */
const call: Call = async () => Promise.resolve({ outcome: 'done', value: { items: [], metadata: {} }, bytes: 0 });

/** What is reported about a pod whose container has this state. */
async function told(state: object, lastState: object = {}): Promise<readonly string[]> {
  const status = { containerStatuses: [{ name: 'main', ready: false, state, lastState }] };
  const pod: unknown = { apiVersion: 'v1', kind: 'Pod', metadata, status };
  return diagnose({ call }, POD, pod as LiveObject);
}

test('a container that was killed for its memory, or has failed, is reported with its exit code', async () => {
  const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 10s' };
  assert.equal(await told({ waiting }, { terminated: { reason: 'OOMKilled', exitCode: 137 } }), [
    'pod web-1: main: CrashLoopBackOff: back-off 10s: OOMKilled, exit code 137',
  ]);
  assert.equal(await told({ terminated: { reason: 'Error', exitCode: 3 } }), [
    'pod web-1: main: Error: ended, exit code 3',
  ]);
});

test('of a pod, the state of its containers comes before its events, which only repeat that it does not run', async () => {
  const state = { waiting: { reason: 'CrashLoopBackOff' } };
  const status = { containerStatuses: [{ name: 'main', ready: false, state }] };
  const event = { metadata: { name: 'e' }, reason: 'BackOff', message: 'Back-off restarting failed container main' };
  const items: Readonly<Record<string, readonly object[]>> = { events: [event], pods: [{ metadata, status }] };
  const answer: Call = async (doing, request) => {
    const [, kind = ''] = /\/(events|pods)\?/.exec(request.path) ?? [];
    if (request.path.includes('involvedObject.uid%3Ddeployment')) return call(doing, request);
    return Promise.resolve({ outcome: 'done', value: { items: items[kind] ?? [], metadata: {} }, bytes: 0 });
  };
  const deployment: unknown = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'web', uid: 'deployment' },
    spec: { selector: { matchLabels: { app: 'web' } } },
  };
  const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments', namespaced: true };
  assert.equal(await diagnose({ call: answer }, DEPLOYMENT, deployment as LiveObject), [
    'pod web-1: main: CrashLoopBackOff',
    'pod web-1: BackOff: Back-off restarting failed container main',
  ]);
});

test('a long message keeps its end, where the cause of a failed pull is', async () => {
  const message = `failed to pull ${'x'.repeat(500)}: no such host`;
  const [line = ''] = await told({ waiting: { reason: 'ErrImagePull', message } });
  assert.match(line, /^pod web-1: main: ErrImagePull: failed to pull x+ … x+: no such host$/);
  assert.is(line.length, 300);
});

test.run();
