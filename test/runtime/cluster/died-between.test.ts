/** Runs that end between a record of the node, a hook and what the cluster is told: the next run puts all of it right. */
import { readFile, writeFile } from 'node:fs/promises';
import { CurlewError } from '../../../src/core/errors.ts';
import type { ProgressEvent } from '../../../src/core/events.ts';
import { readRecords } from '../../../src/runtime/node/records.ts';
import * as assert from '../../support/assert.ts';
import { memoryCluster } from '../../support/memory-cluster.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run, trace, tracer, type Given } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('runs that die between the node and the cluster');

async function fails(box: Tree, packages: Parameters<typeof run>[1], given: Given, why: RegExp): Promise<void> {
  const message = await run(box, packages, given).then(
    () => 'it did not fail',
    (error: unknown) => String(error),
  );
  assert.match(message, why);
}

test('what a hook that is done has applied is told by the run that goes on', async () => {
  await using box = await tree();
  const { state, given } = memoryCluster();
  const packages = await packagesOf(bundleOf([tracer('aaa')]));
  await fails(box, packages, given('addKurl'), /no addKurl/);
  await trace(box);
  await run(box, packages, given());
  assert.not((await trace(box)).includes('aaa 2'), 'the hook does not run again');
  assert.equal(Object.keys(state.current ?? {}).toSorted(), ['addons-aaa', 'kurl-version']);
});

test("kURL's state is begun once by a run and those that go on from it, wherever the first one stopped", async () => {
  await using box = await tree();
  const { state, given } = memoryCluster();
  const settings = (x: number): Given => ({ settings: { aaa: { x } } });
  const packages = await packagesOf(bundleOf([tracer('aaa', 'aaa_outro() { [ ! -e "$DIR/stop" ]; }')]));
  const before = { 'kurl-version': 'v0', 'addons-zzz': 'x' };
  for (const [at, [write, why]] of Object.entries({
    1: ['writeRecords', /no writeRecords/],
    2: ['keepKurl', /no keepKurl/],
    3: ['beginKurl', /no beginKurl/],
    4: ['addKurl', /no addKurl/],
  } as const)) {
    state.current = before;
    const same = settings(Number(at));
    await fails(box, packages, { ...given(write), ...same }, why);
    await run(box, packages, { ...given(), ...same });
    assert.equal(state.last, before, write);
    assert.equal(Object.keys(state.current ?? {}).toSorted(), ['addons-aaa', 'kurl-version'], write);
  }
});

test('what can be gone back to is not forgotten when the cluster was not told of the new version', async () => {
  await using box = await tree();
  const { given } = memoryCluster();
  await run(box, await packagesOf(bundleOf([tracer('aaa')])), given());
  const packages = await packagesOf(bundleOf([tracer('aaa', 'aaa() { false; }', '2.0.0')]));
  await fails(box, packages, given('writeRecords', 2), /no writeRecords/);
  await fails(box, packages, given(), /aaa failed/);
  await fails(box, packages, given('writeRecords', 1), /no writeRecords/);
  await fails(box, packages, given(), /aaa failed/);
  assert.is((await readRecords(box.at('node'))).applied['aaa']?.previous?.version, '1.0.0');
});

test('what is installed is not replaced by an older version after it failed to be applied again', async () => {
  await using box = await tree();
  const { given } = memoryCluster();
  const env = { PATH: process.env['PATH'], TRACE: box.at('trace'), STATE: box.at('state') };
  const packages = await packagesOf(bundleOf([tracer('aaa', 'aaa() { [ ! -e "$STATE" ]; }', '2.0.0')]));
  await run(box, packages, { ...given(), env });
  await writeFile(box.at('state'), '');
  await fails(box, packages, { ...given(), env, reapply: true }, /aaa failed/);
  await fails(box, packages, { env, reapply: true }, /aaa failed/);
  const older = await packagesOf(bundleOf([tracer('aaa')]));
  await fails(box, older, given(), /this would downgrade aaa from 2\.0\.0 to 1\.0\.0/);
  await fails(box, older, {}, /this would downgrade aaa from 2\.0\.0 to 1\.0\.0/);
});

test('a reset that died before the cluster heard of it still takes its records away', async () => {
  for (const [write, times] of [
    ['writeRecords', 1],
    ['writeRecords', 2],
  ] as const) {
    await using box = await tree();
    const { state, given } = memoryCluster();
    const packages = await packagesOf(bundleOf([tracer('aaa', 'aaa_uninstall() { :; }')]));
    await run(box, packages, given());
    const reset = { kind: 'reset', reapply: true } as const;
    await fails(box, packages, { ...given(write, times), ...reset }, /no writeRecords/);
    await run(box, packages, { ...given(), ...reset });
    assert.equal(state.applied, {});
    assert.equal((await readRecords(box.at('node'))).applied, {});
  }
});

test('a cluster that refuses after its creation was cut off stops nothing that creates it again', async () => {
  const refusing = (box: Tree, inner: Given['cluster']): Given['cluster'] =>
    inner && {
      ...inner,
      find: async () => {
        const state = await readFile(box.at('state'), 'utf8').catch(() => 'none');
        if (state === 'half\n') throw new CurlewError('CLUSTER_FAILED', 'cannot find the cluster: 403 (Forbidden)');
        return state === 'none' ? undefined : inner.find();
      },
    };
  await using box = await tree();
  const { state, given } = memoryCluster();
  const { cluster } = given();
  const env = { PATH: process.env['PATH'], TRACE: box.at('trace'), STATE: box.at('state') };
  const cut: Given = { cluster: refusing(box, cluster), env };
  const init =
    'kubernetes() { if [ -e "$STATE" ]; then echo whole >"$STATE"; else echo half >"$STATE"; kill -9 $$; fi; }';
  const packages = await packagesOf(bundleOf([tracer('kubernetes', init), tracer('aaa')]));
  await fails(box, packages, cut, /kubernetes failed|was ended|SIGKILL/);

  // Nothing creates the cluster again.
  await fails(box, await packagesOf(bundleOf([tracer('aaa')])), cut, /403 \(Forbidden\)/);
  const events: ProgressEvent[] = [];
  const done = await run(box, packages, { ...cut, events });
  assert.equal(
    done.addons.map(({ outcome }) => outcome),
    ['installed', 'installed'],
  );
  assert.match(JSON.stringify(events), /403 \(Forbidden\); the install of kubernetes has not finished/);
  assert.equal(Object.keys(state.applied).toSorted(), ['aaa', 'kubernetes']);

  // Once it is installed, a refusal counts.
  await writeFile(box.at('state'), 'half\n');
  await fails(box, packages, cut, /403 \(Forbidden\)/);
});

test('a cluster that answers and takes no records, since its creation was cut off, is created again, too', async () => {
  await using box = await tree();
  const { state, given } = memoryCluster();
  const { cluster } = given();
  const find = async (): ReturnType<NonNullable<typeof cluster>['find']> => {
    const now = await readFile(box.at('state'), 'utf8').catch(() => 'none');
    const found = now === 'none' ? undefined : await cluster?.find();
    if (found === undefined || now === 'whole\n') return found;
    const writeRecords = async (): Promise<never> =>
      Promise.reject(new CurlewError('CLUSTER_FAILED', 'cannot write the records: no response'));
    return { ...found, writeRecords };
  };
  const env = { PATH: process.env['PATH'], TRACE: box.at('trace'), STATE: box.at('state') };
  const cut: Given = { cluster: cluster && { ...cluster, find }, env };
  const init =
    'kubernetes() { if [ -e "$STATE" ]; then echo whole >"$STATE"; else echo half >"$STATE"; kill -9 $$; fi; }';
  const packages = await packagesOf(bundleOf([tracer('kubernetes', init), tracer('aaa')]));
  await fails(box, packages, cut, /kubernetes failed|was ended|SIGKILL/);

  // Nothing creates the cluster again.
  await fails(box, await packagesOf(bundleOf([tracer('aaa')])), cut, /no response/);
  const events: ProgressEvent[] = [];
  await run(box, packages, { ...cut, events });
  assert.match(JSON.stringify(events), /no response; the install of kubernetes has not finished/);
  assert.equal(Object.keys(state.applied).toSorted(), ['aaa', 'kubernetes']);
});

test.run();
