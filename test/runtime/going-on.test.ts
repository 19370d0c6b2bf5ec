import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { listRunLogs } from '../../src/runtime/history/hook-logs.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import { whyAddon } from '../../src/runtime/history/why.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { packagesOf, run, trace, tracer, type Given } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('runs that go on');

test('a hook is told of its tries, also when another one failed before it was reached again', async () => {
  await using box = await tree();
  const packages = await packagesOf(
    bundleOf([
      tracer('aaa', 'aaa_pre_init() { [ ! -e "$DIR/stop" ]; }'),
      tracer('bbb', 'bbb() { echo "bbb $CURLEW_ATTEMPT" >>"$TRACE"; [ -e "$DIR/go" ]; }'),
    ]),
  );
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED', /^bbb: bbb failed/);
  await writeFile(box.at('node/stop'), '');
  // Another setting: everything starts over.
  const given: Given = { variables: [['AAA_X', '1']] };
  await assert.rejectsWith(run(box, packages, given), 'HOOK_FAILED', /^aaa: aaa_pre_init failed/);
  await rm(box.at('node/stop'));
  await writeFile(box.at('node/go'), '');
  await trace(box);
  await run(box, packages, given);
  assert.ok((await trace(box)).includes('bbb 2'));
});

const COUNTS = `aaa_pre_init() { COUNT=one; echo pre >>"$TRACE"; }
  aaa() { COUNT=$COUNT-two; echo install >>"$TRACE"; }
  aaa_post_init() { echo "post $COUNT $CURLEW_ATTEMPT" >>"$TRACE"; COUNT=$COUNT-lost; [ -e "$DIR/go" ]; }
  aaa_outro() { echo "said $COUNT"; }`;

test('a run resumes at the first hook that is not done, with the variables that those before it made', async () => {
  await using box = await tree();
  const packages = await packagesOf(bundleOf([tracer('aaa', COUNTS)]));
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED');
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED');
  await writeFile(box.at('node/go'), '');
  const { messages, addons } = await run(box, packages);
  assert.equal(await trace(box), ['pre', 'install', 'post one-two 1', 'post one-two 2', 'post one-two 3']);
  assert.equal(messages, [{ addon: 'aaa', text: 'said one-two-lost' }]);
  assert.is(addons[0]?.outcome, 'installed');
  assert.is((await run(box, packages)).addons[0]?.outcome, 'already applied');
});

const PATCHES = `aaa_pre_init() { echo mine >"$DIR/kustomize/kubeadm/init-patches/aaa.yaml"; }
  aaa_post_init() { cat "$DIR/kustomize/kubeadm/init-patches/"*; [ -e "$DIR/go" ]; }`;

test('folders for patches are made by a run that goes on before hooks, and kept by one that goes on after some', async () => {
  await using box = await tree({ 'node/kustomize/kubeadm/init-patches/stale.yaml': '' });
  const packages = await packagesOf(bundleOf([tracer('aaa', PATCHES)]));
  const extract = async (): Promise<never> => Promise.reject(new Error('the power went'));
  const dying = packages.map((one) => ({ ...one, extract }));
  await assert.rejectsWith(run(box, dying), 'FILE_UNUSABLE', /the power went/);
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED', /aaa_post_init failed/);
  await writeFile(box.at('node/go'), '');
  await run(box, packages);
  assert.equal(await readdir(box.at('node/kustomize/kubeadm/init-patches')), ['aaa.yaml']);
});

test('other settings, another package, another kind or changed carried variables begin anew', async () => {
  await using box = await tree();
  const packages = await packagesOf(bundleOf([tracer('aaa', COUNTS)]));
  const fails = async (given: Given = {}, from = packages): Promise<readonly string[]> => {
    await assert.rejectsWith(run(box, from, given), 'HOOK_FAILED');
    return (await trace(box)).map((line) => line.split(' ')[0] ?? '');
  };
  await fails();
  assert.equal(await fails(), ['post']);
  assert.equal(await fails({ variables: [['AAA_X', '1']] }), ['pre', 'install', 'post']);
  assert.equal(await fails({ settings: { aaa: { x: 1 } } }), ['pre', 'install', 'post']);
  assert.equal(await fails({ reapply: true }), ['pre', 'install', 'post']);
  assert.equal(await fails({ reapply: true }), ['post']);
  assert.equal(await fails({}, await packagesOf(bundleOf([tracer('aaa', `${COUNTS} #`)]))), ['pre', 'install', 'post']);
  await fails();
  const { lastRun = '' } = await readRecords(box.at('node'));
  await writeFile(box.at('node/runs', lastRun, 'carried.sh'), 'COUNT=forged');
  assert.equal(await fails(), ['pre', 'install', 'post']);
});

test('an install that a failed check has led to is gone on with, not checked again', async () => {
  await using box = await tree();
  const script = `aaa_already_applied() { echo check >>"$TRACE"; [ -e "$DIR/half" ]; }
    aaa() { echo "install $CURLEW_ATTEMPT" >>"$TRACE"; if [ -e "$DIR/fail" ]; then touch "$DIR/half"; false; fi; }`;
  const packages = await packagesOf(bundleOf([tracer('aaa', script)]));
  await run(box, packages);
  await writeFile(box.at('node/fail'), '');
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED');
  await rm(box.at('node/fail'));
  await trace(box);
  const { addons } = await run(box, packages);
  assert.equal(addons[0]?.outcome, 'installed');
  assert.match(addons[0]?.because ?? '', /aaa_already_applied failed/);
  assert.equal(
    (await trace(box)).filter((line) => /check|install/.test(line)),
    ['install 2'],
  );
});

test('a clock that jumps, in either direction, changes nothing', async () => {
  await using box = await tree();
  const packages = await packagesOf(bundleOf([tracer('aaa', COUNTS)]));
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED');
  // The last run seems to come from the future, and others from long ago.
  const { lastRun = '' } = await readRecords(box.at('node'));
  const future = `29991231T235959Z-${lastRun.slice(-4)}`;
  await rename(box.at('node/runs', lastRun), box.at('node/runs', future));
  const records = await readFile(box.at('node/records.json'), 'utf8');
  await writeFile(box.at('node/records.json'), records.replaceAll(lastRun, future));
  await trace(box);
  await writeFile(box.at('node/go'), '');
  assert.is((await run(box, packages)).addons[0]?.outcome, 'installed');
  assert.equal(await trace(box), ['post one-two 2'], 'it was gone on with');
  const last = await run(box, packages);
  assert.is(last.addons[0]?.outcome, 'already applied');
  // What is asked later finds the latest run first, whatever the clock said.
  assert.ok(last.run > future, `${last.run} after ${future}`);
  assert.is((await whyAddon(box.at('node'), 'aaa', { signal: never })).last?.run, last.run);
  assert.is((await listRunLogs(box.at('node')))[0]?.run, last.run);
});

test.run();
