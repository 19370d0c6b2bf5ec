/** Leases on an API server that a test makes: who may write, after a pause and after a renewal whose answer was lost. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { CurlewError } from '../../../src/core/errors.ts';
import { openApi } from '../../../src/cluster/kube/api.ts';
import { openCalls, type Call } from '../../../src/cluster/kube/call.ts';
import { holdLease, type HeldLease } from '../../../src/cluster/kube/lease.ts';
import { apiPath } from '../../../src/cluster/kube/path.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { startKubeServer, statusReply } from '../../support/kube-server.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';
import type { Reply } from '../../support/web-server.ts';

const test = suite('cluster/kube/lease');
const certificate = await makeCertificate();
const GUARDED = { verb: 'create', path: apiPath`/api/v1/namespaces`, document: '{}' } as const;

interface Spec {
  readonly holderIdentity: string;
}

interface Scene extends AsyncDisposable {
  readonly lease: HeldLease;
  /** Calls that the lease guards. */
  readonly call: Call;
  /** What the server has been asked to write, without Leases. */
  readonly written: () => number;
  /** Who has the Lease; empty after its release. */
  readonly holder: () => string | undefined;
  /** Writes like another process that has waited for it. */
  readonly takeAway: () => void;
  /** From now on, renewals are refused, as by a webhook of the cluster. */
  readonly refuse: () => void;
  /** The next renewal is stored, and answered with an error. */
  readonly loseAnswer: () => void;
  /** The next renewal is stored, and answered after this happens. */
  readonly delayAnswer: (meanwhile: () => void) => void;
  /** Lets time pass on the clock of the process and on that of the machine. */
  readonly pass: (processMs: number, machineMs: number) => void;
}

async function heldScene(ended = never): Promise<Scene> {
  const box = await tree();
  let stored: { readonly metadata: { readonly resourceVersion: string }; readonly spec: Spec } | undefined;
  let [version, written, isLost, isRefused] = [0, 0, false, false];
  let meanwhile: (() => void) | undefined;
  const store = (spec: Spec): void => {
    version += 1;
    stored = { metadata: { resourceVersion: String(version) }, spec };
  };
  const server = await startKubeServer(({ method, path, body }): Reply | { readonly json: unknown } => {
    if (!path.includes('/leases')) {
      written += 1;
      return { json: {} };
    }
    if (method === 'GET') return stored === undefined ? statusReply(404, 'NotFound') : { json: stored };
    if (isRefused) return statusReply(403, 'Forbidden', 'admission webhook denied the request');
    const given = JSON.parse(body) as { readonly metadata: { readonly resourceVersion?: string } } & {
      readonly spec: Spec;
    };
    if (given.metadata.resourceVersion !== stored?.metadata.resourceVersion) return statusReply(409, 'Conflict');
    store(given.spec);
    const renewed = stored;
    meanwhile?.();
    meanwhile = undefined;
    if (!isLost) return { json: renewed };
    isLost = false;
    return statusReply(409, 'Conflict');
  }, certificate);
  await writeFile(box.at('conf'), server.kubeconfig());
  const api = await openApi({ env: { KUBECONFIG: box.at('conf') } });
  if (api === undefined) throw new Error('no kubeconfig');
  const options = { patienceMs: 1000, signal: never };
  const clocks = [0, 0];
  const name = { namespace: 'kube-system', name: 'test', holder: 'me', doing: 'test leases', signal: ended };
  const call = openCalls(api, { ...options, signal: ended });
  const lease = await holdLease({ api, call }, { ...name, now: () => [clocks[0] ?? 0, clocks[1] ?? 0] });
  return {
    lease,
    call: openCalls(api, { ...options, signal: lease.signal, guard: lease.guard }),
    written: () => written,
    holder: () => stored?.spec.holderIdentity,
    takeAway: () => store({ holderIdentity: 'another' }),
    refuse: () => (isRefused = true),
    loseAnswer: () => (isLost = true),
    delayAnswer: (then) => (meanwhile = then),
    pass: (processMs, machineMs) => {
      clocks[0] = (clocks[0] ?? 0) + processMs;
      clocks[1] = (clocks[1] ?? 0) + machineMs;
    },
    [Symbol.asyncDispose]: async () => {
      await lease[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

for (const [title, processMs, machineMs] of [
  ['a process that was stopped', 60_000, 60_000],
  ['a machine that was suspended', 0, 60_000],
  ['a machine whose clock was set back meanwhile', 60_000, -60_000],
] as const) {
  test(`${title} writes nothing more if another process has taken its Lease`, async () => {
    await using scene = await heldScene();
    await scene.call('write', GUARDED);
    scene.takeAway();
    scene.pass(processMs, machineMs);
    await assert.rejectsWith(scene.call('write', GUARDED), 'BUSY', /^cannot test leases: the Lease \S+ was lost/);
    assert.ok(scene.lease.signal.aborted);
    assert.is(scene.written(), 1);
  });
}

test('a process that a signal ends releases its Lease', async () => {
  const ended = new AbortController();
  await using scene = await heldScene(ended.signal);
  assert.match(scene.holder() ?? '', /^me_/);
  ended.abort(new Error('Ctrl-C'));
  await scene.lease[Symbol.asyncDispose]();
  assert.is(scene.holder(), '');
});

test('a process that was stopped continues if nobody has taken its Lease', async () => {
  await using scene = await heldScene();
  scene.pass(60_000, 60_000);
  await scene.call('write', GUARDED);
  assert.is(scene.written(), 1);
});

test('a renewal whose answer was lost is no loss of the Lease', async () => {
  await using scene = await heldScene();
  scene.loseAnswer();
  scene.pass(60_000, 60_000);
  await scene.call('write', GUARDED);
  assert.is(scene.written(), 1);
});

test('a renewal that is answered after another process has taken the Lease is a loss of it', async () => {
  await using scene = await heldScene();
  scene.delayAnswer(() => {
    scene.pass(20_000, 20_000);
    scene.takeAway();
  });
  scene.pass(11_000, 11_000);
  await assert.rejectsWith(scene.call('write', GUARDED), 'BUSY', /^cannot test leases: the Lease \S+ was lost/);
  assert.is(scene.written(), 0);
});

test('a Lease that cannot be renewed names the reason, not another process', async () => {
  await using scene = await heldScene();
  const { signal } = scene.lease;
  scene.refuse();
  scene.pass(16_000, 16_000);
  if (!signal.aborted) await once(signal, 'abort');
  const { code, message } = signal.reason as CurlewError;
  assert.is(code, 'CLUSTER_FAILED');
  assert.match(message, /^cannot test leases: cannot write the Lease kube-system\/test: .*admission webhook denied/);
});

test.run();
