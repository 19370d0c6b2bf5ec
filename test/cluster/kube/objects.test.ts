/** Objects on an API server that a test makes: lists of large objects, and why one is refused. */
import { writeFile } from 'node:fs/promises';
import { fieldChanges } from '../../../src/cluster/channel/difference.ts';
import { valuesDigest } from '../../../src/cluster/deliver/observe.ts';
import { openApi } from '../../../src/cluster/kube/api.ts';
import { openCalls, Refused, type Call } from '../../../src/cluster/kube/call.ts';
import { applyObject, getObject, mapObjects } from '../../../src/cluster/kube/objects.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { startKubeServer, statusReply } from '../../support/kube-server.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';
import { tree } from '../../support/tree.ts';
import type { Asked, Reply } from '../../support/web-server.ts';

const test = suite('cluster/kube/objects');
const certificate = await makeCertificate();
const JOBS = { apiVersion: 'batch/v1', kind: 'Job', plural: 'jobs', namespaced: true };

async function withServer(
  answer: (asked: Asked) => Reply | { readonly json: unknown },
  work: (call: Call) => Promise<void>,
): Promise<void> {
  await using box = await tree();
  await using server = await startKubeServer(answer, certificate);
  await writeFile(box.at('conf'), server.kubeconfig());
  const api = await openApi({ env: { KUBECONFIG: box.at('conf') } });
  if (api !== undefined) await work(openCalls(api, { patienceMs: 1000, signal: never }));
}

test('a list of objects too large for one response comes in smaller pages', async () => {
  const pages: string[] = [];
  const answer = ({ path }: Asked): Reply | { readonly json: unknown } => {
    const limit = new URL(path, 'https://x').searchParams.get('limit') ?? '';
    pages.push(limit);
    if (limit === '100') return { status: 200, body: `{"items":[],"x":"${'x'.repeat(33 << 20)}"}` };
    return { json: { items: [{ metadata: { name: 'one' } }] } };
  };
  await withServer(answer, async (call) => {
    assert.equal(await mapObjects(call, JOBS, {}, ({ metadata }) => metadata.name), ['one']);
    assert.equal(pages, ['100', '20']);
  });
});

test('an API server that comes back may deny requests for a moment, and one that was there all the time may not', async () => {
  const starting = [statusReply(503, 'ServiceUnavailable'), statusReply(403, 'Forbidden', 'no role bindings yet')];
  const asked: string[] = [];
  const answer = ({ path }: Asked): Reply | { readonly json: unknown } => {
    asked.push(path);
    if (path.includes('secrets')) return statusReply(403, 'Forbidden', 'no right');
    return starting.shift() ?? { json: { metadata: { name: 'one' } } };
  };
  const secrets = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };
  const at = { namespace: 'x', name: 'one' };
  await withServer(answer, async (call) => {
    await assert.rejectsWith(getObject(call, secrets, at), 'CLUSTER_FAILED', /no right/);
    assert.is(asked.length, 1);
    assert.is((await getObject(call, JOBS, at))?.metadata.name, 'one');
    assert.equal([starting.length, asked.length], [0, 4]);
  });
});

test('a change beyond 2^53 is seen, shown with all digits, and counts in digests', async () => {
  const text = (size: bigint): string => {
    const managedFields = [{ manager: 'me', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:size': {} } } }];
    const metadata = { name: 'x', namespace: 'x', managedFields };
    return `{"kind":"Job","metadata":${JSON.stringify(metadata)},"spec":{"size":${size}}}`;
  };
  const [before, after] = [9007199254740992n, 9007199254740993n];
  const answer = ({ method }: Asked): Reply => ({ status: 200, body: text(method === 'GET' ? before : after) });
  await withServer(answer, async (call) => {
    const live = await getObject(call, JOBS, { namespace: 'x', name: 'x' });
    const applied = await applyObject(call, JOBS, { namespace: 'x', name: 'x', value: {} }, { manager: 'me' });
    if (live === undefined || applied.outcome !== 'applied') throw new Error('no object');
    assert.equal(fieldChanges(live, applied.object), [{ field: '.spec.size', before: `${before}`, after: `${after}` }]);
    assert.not.equal(valuesDigest(live, 'me', JOBS), valuesDigest(applied.object, 'me', JOBS));
  });
});

for (const [title, cause, said] of [
  [
    'a long value',
    { field: 'spec.template', message: `Invalid value: ${'{"a": 1} '.repeat(500)}: field is immutable` },
    /\(Invalid: spec\.template: Invalid value: \{"a".{1,80}…: field is immutable\)$/,
  ],
  [
    'a long reason',
    {
      field: 'spec',
      message: `Forbidden: updates to statefulset spec for fields other than ${'x, '.repeat(90)}are forbidden`,
    },
    /\(Invalid: spec: Forbidden: updates to .*, are forbidden\)$/,
  ],
] as const) {
  test(`an object that cannot be changed is refused with its field and its reason, also after ${title}`, async () => {
    const status = { kind: 'Status', reason: 'Invalid', code: 422, message: `Job "x" is invalid: ${'x'.repeat(5000)}` };
    const body = JSON.stringify({ ...status, details: { causes: [{ reason: 'FieldValueInvalid', ...cause }] } });
    await withServer(
      () => ({ status: 422, body }),
      async (call) => {
        const applying = applyObject(call, JOBS, { namespace: 'x', name: 'x', value: {} }, { manager: 'me' });
        const error = await applying.then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        assert.ok(error instanceof Refused);
        assert.match(error.message, said);
        assert.match(error.hint ?? '', 'delete the object, which the next run creates again, or rename it');
      },
    );
  });
}

test.run();
