import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { CurlewError } from '../../src/core/errors.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { readJournal } from '../../src/runtime/journal/journal.ts';
import { isRunPlan } from '../../src/runtime/plan/run-plan.ts';
import { membersOf } from '../../src/platform/process/process-tree.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import { nodeStatus } from '../../src/runtime/history/status.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { curlewOk } from '../support/curlew.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { packagesOf, run, trace, tracer, type Given } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('install');

test('a first run installs, in phases; a second one finds everything applied', async () => {
  await using box = await tree();
  const packages = await packagesOf(
    bundleOf([tracer('bbb'), tracer('containerd', 'containerd_install() { echo runtime >>"$TRACE"; }')]),
  );
  const first = await run(box, packages);
  assert.equal(
    first.addons.map(({ name, outcome }) => `${name} ${outcome}`),
    ['containerd installed', 'bbb installed'],
  );
  assert.equal(await trace(box), [
    'containerd_pre_init 1',
    'bbb_pre_init 1',
    'runtime',
    'bbb 1',
    'containerd_post_init 1',
    'bbb_post_init 1',
    'containerd_outro 1',
    'bbb_outro 1',
  ]);
  const second = await run(box, packages);
  assert.equal(
    second.addons.map(({ outcome }) => outcome),
    ['already applied', 'already applied'],
  );
  assert.ok((await trace(box)).includes('bbb_already_applied 1'));
  assert.is(await readFile(box.at('node/addons/bbb/1.0.0/data/x.yaml'), 'utf8'), 'x: 1\n');
  assert.equal((await readdir(box.at('node'))).toSorted(), [
    'addons',
    'assets',
    'kustomize',
    'packages',
    'placed',
    'records.json',
    'runs',
  ]);
});

test('when a run has ended, secrets are in one file that is for its owner alone', async () => {
  await using box = await tree();
  const given: Given = { variables: [['AAA_PASSWORD', 'sesame']] };
  const packages = await packagesOf(bundleOf([tracer('aaa')]));
  const { run: id } = await run(box, packages, given);
  const files = await readdir(box.at('node/runs', id));
  assert.not(files.some((name) => name.endsWith('.sh') || name === 'scripts' || name.endsWith('.control')));
  for (const name of files) {
    const text = await readFile(box.at('node/runs', id, name), 'utf8');
    if (text.includes('sesame')) assert.is(name, 'request.json');
  }
  assert.is((await stat(box.at('node/runs'))).mode & 0o777, 0o700);
  assert.is((await stat(box.at('node/runs', id, 'request.json'))).mode & 0o777, 0o600);
  for (const _ of [1, 2]) await run(box, packages, given);
  assert.not((await readdir(box.at('node/runs', id))).includes('request.json'), 'no record names that run any more');
});

for (const [kind, hook] of [
  ['install', 'aaa_pre_init'],
  ['join', 'aaa_join'],
] as const) {
  test(`the first hook of an ${kind} finds folders for patches of kubeadm, without those of the last run`, async () => {
    await using box = await tree({ 'node/kustomize/kubeadm/init-patches/stale.yaml': '' });
    const script = `${hook}() { cp "$DIR/addons/aaa/1.0.0/data/x.yaml" "$DIR/kustomize/kubeadm/init-patches/x.yaml"
      cp "$DIR/addons/aaa/1.0.0/data/x.yaml" "$DIR/kustomize/kubeadm/join-patches/x.yaml"
      echo "$KUBEADM_CONF_FILE $KUBECTL_PLUGINS_PATH $PV_BASE_PATH" >"$DIR/names"; }`;
    await run(box, await packagesOf(bundleOf([tracer('aaa', script)])), { kind });
    for (const name of ['init-patches', 'join-patches'])
      assert.equal(await readdir(box.at('node/kustomize/kubeadm', name)), ['x.yaml']);
    const names = '/opt/replicated/kubeadm.conf /usr/local/bin /opt/replicated/rook\n';
    assert.is(await readFile(box.at('node/names'), 'utf8'), names);
  });
}

test('a join hook finds an empty kustomize folder of its own, too', async () => {
  await using box = await tree({ 'node/kustomize/aaa/stale.yaml': '' });
  const hook = 'aaa_join() { [ -z "$(ls -A $DIR/kustomize/aaa)" ] && touch $DIR/kustomize/aaa/mine; }';
  await run(box, await packagesOf(bundleOf([tracer('aaa', hook)])), { kind: 'join' });
  assert.equal(await readdir(box.at('node/kustomize/aaa')), ['mine']);
});

test('the kustomize folder is empty before install, and left alone when applied already', async () => {
  await using box = await tree({ 'node/kustomize/aaa/stale.yaml': '' });
  const packages = await packagesOf(
    bundleOf([tracer('aaa', 'aaa() { [ -z "$(ls -A $DIR/kustomize/aaa)" ]; touch $DIR/kustomize/aaa/mine; }')]),
  );
  await run(box, packages);
  assert.equal(await readdir(box.at('node/kustomize/aaa')), ['mine']);
  await run(box, packages);
  assert.equal(await readdir(box.at('node/kustomize/aaa')), ['mine']);
});

test('changed settings, another package and reapply install again', async () => {
  await using box = await tree();
  const packages = await packagesOf(bundleOf([tracer('aaa')]));
  const because = async (given: Given, from = packages): Promise<string | undefined> =>
    (await run(box, from, given)).addons[0]?.because;
  assert.is(await because({}), 'it was not installed');
  assert.is(await because({ settings: { aaa: { x: 1 } } }), 'its settings have changed');
  assert.is(await because({ settings: { aaa: { x: 1 } }, reapply: true }), 'requested by --reapply');
  const other = await packagesOf(bundleOf([tracer('aaa', '# changed')]));
  assert.is(await because({ settings: { aaa: { x: 1 } } }, other), 'another package of this version was installed');
  assert.match(await readFile(box.at('node/addons/aaa/1.0.0/install.sh'), 'utf8'), '# changed');
});

test('an add-on whose check fails is installed, and that is the reason', async () => {
  await using box = await tree();
  const packages = await packagesOf(bundleOf([tracer('aaa', 'aaa_already_applied() { [ -e "$DIR/ok" ]; }')]));
  await run(box, packages);
  const [addon] = (await run(box, packages)).addons;
  assert.is(addon?.outcome, 'installed');
  assert.match(addon?.because ?? '', /aaa_already_applied failed/);
});

test('a failed hook says everything; the same command goes on from there', async () => {
  await using box = await tree();
  const packages = await packagesOf(
    bundleOf([tracer('aaa'), tracer('bbb', 'bbb() {\n  echo "$CURLEW_ATTEMPT" >>"$TRACE"\n  [ -e "$DIR/go" ]\n}')]),
  );
  const error = await assert.rejectsWith(run(box, packages), 'HOOK_FAILED', /^bbb: bbb failed with status 1 at /);
  assert.match(error.hint ?? '', 'run the same command again');
  const { lastRun = '', applied } = await readRecords(box.at('node'));
  assert.equal([applied['aaa']?.finished, applied['bbb']?.finished], [false, false]);
  assert.is((await readJournal(box.at('node/runs', lastRun, 'journal.jsonl'), isRunPlan)).at(-1)?.type, 'ended');
  await trace(box);
  await writeFile(box.at('node/go'), '');
  const { addons } = await run(box, packages);
  assert.equal(
    addons.map(({ because }) => because),
    ['it was not installed', 'it was not installed'],
  );
  const seen = await trace(box);
  assert.ok(seen.includes('2'), 'the second attempt is told so');
  assert.not(seen.includes('aaa 1'), 'what is done is not done again');
  assert.is((await readRecords(box.at('node'))).applied['bbb']?.finished, true);
});

test('a check that fails is no unfinished try of the next one', async () => {
  await using box = await tree();
  const check = 'aaa_already_applied() { echo "check $CURLEW_ATTEMPT" >>"$TRACE"; return 1; }';
  const packages = await packagesOf(bundleOf([tracer('aaa', check)]));
  for (const _ of [1, 2, 3]) await run(box, packages);
  assert.equal(
    (await trace(box)).filter((line) => line.startsWith('check')),
    ['check 1', 'check 1'],
  );
});

test('a mistake in any install.sh is met before the first hook', async () => {
  await using box = await tree();
  const broken = { name: 'bbb', version: '1.0.0', files: { 'install.sh': 'bbb() {\n  if\n}\n' } };
  const packages = await packagesOf(bundleOf([tracer('aaa'), broken]));
  await assert.rejectsWith(run(box, packages), 'HOOK_FAILED', /addons\/bbb\/1\.0\.0\/install\.sh:3: syntax error/);
  assert.equal(await trace(box), []);
});

test('an add-on without its main function is warned of', async () => {
  await using box = await tree();
  const events: ProgressEvent[] = [];
  const packages = await packagesOf(
    bundleOf([{ name: 'aaa', version: '1.0.0', files: { 'install.sh': 'aaa_outro() { :; }' } }]),
  );
  await run(box, packages, { events });
  assert.ok(events.some((event) => event.type === 'note' && /defines no function aaa/.test(event.text)));
});

test('what an outro prints is told once, at the end', async () => {
  await using box = await tree();
  const events: ProgressEvent[] = [];
  const packages = await packagesOf(
    bundleOf([
      tracer('bbb', 'bbb_outro() { logSuccess done; echo "open http://u:p@n:80/?a=1"; echo "join it" >&2; }'),
      tracer('aaa', 'aaa_outro() { logWarn careful; }; aaa() { logStep working; echo hidden; }'),
      tracer('ccc'),
    ]),
  );
  const { messages } = await run(box, packages, { events });
  assert.equal(messages, [
    { addon: 'bbb', text: '✔ done\nopen http://u:p@n:80/?a=1\njoin it' },
    { addon: 'aaa', text: 'careful' },
  ]);
  const notes = events.flatMap((event) => (event.type === 'note' ? [event.text] : []));
  assert.ok(notes.includes('aaa: working'));
  assert.not(
    notes.some((text) => /careful|done|hidden/.test(text)),
    notes.join('\n'),
  );
});

test('a second run at once is refused', async () => {
  await using box = await tree();
  const packages = await packagesOf(
    bundleOf([tracer('aaa', 'aaa() { touch "$DIR/ready"; until [ -e "$DIR/go" ]; do sleep 0.01; done; }')]),
  );
  const first = run(box, packages);
  await appears(box.at('node/ready'));
  await assert.rejectsWith(run(box, packages), 'BUSY');
  await writeFile(box.at('node/go'), '');
  await first;
});

test('an abort ends hooks and leaves the folder free for the next run', async () => {
  await using box = await tree();
  const packages = await packagesOf(
    bundleOf([tracer('aaa', 'aaa() { touch "$DIR/ready"; until [ -e "$DIR/go" ]; do sleep 0.01; done; }')]),
  );
  const controller = new AbortController();
  const running = run(box, packages, { signal: controller.signal });
  await appears(box.at('node/ready'));
  controller.abort(new CurlewError('CANCELLED', 'cancelled'));
  await assert.rejectsWith(running, 'CANCELLED');
  const { lastRun = '' } = await readRecords(box.at('node'));
  const { inSession, outside } = membersOf({ session: -1, marker: `CURLEW_HOOK=${lastRun}/aaa` });
  assert.equal([inSession, outside], [[], []]);
  assert.equal((await readJournal(box.at('node/runs', lastRun, 'journal.jsonl'), isRunPlan)).at(-1)?.type, 'ended');
  await writeFile(box.at('node/go'), '');
  assert.is((await run(box, packages)).addons[0]?.outcome, 'installed');
});

test('what interrupted runs left is cleared away', async () => {
  await using box = await tree({ 'node/.new-20261121T101500Z-0000/addons/aaa/1.0.0/part': '', 'node/.old-x/y': '' });
  await run(box, await packagesOf(bundleOf([tracer('aaa')])));
  assert.equal(
    (await readdir(box.at('node'))).filter((name) => name.startsWith('.')),
    [],
  );
});

test('a package without hooks has only files and images, and status says so', async () => {
  await using box = await tree();
  const images = { name: 'images', version: '1.0.0', files: { Manifest: '' } };
  const [source, ...none] = await packagesOf(bundleOf([images]));
  assert.ok(source !== undefined && none.length === 0);
  await run(box, await packagesOf(bundleOf([tracer('aaa')])), { offered: [{ source, role: 'machine' }] });
  const { extracted } = await nodeStatus(box.at('node'), { signal: never });
  assert.equal(
    extracted.map(({ name, hasInstallScript }) => [name, hasInstallScript]),
    [['images', false]],
  );
  const shown = await curlewOk(['status', '--install-dir', 'node'], { cwd: box.path });
  assert.match(shown, 'images 1.0.0 has no hooks: its files and images are in place');
});

test('files that somebody removed are extracted again', async () => {
  await using box = await tree();
  const packages = await packagesOf(bundleOf([tracer('aaa')]));
  await run(box, packages);
  await rm(box.at('node/addons/aaa'), { recursive: true });
  const { addons } = await run(box, packages);
  assert.is(addons[0]?.outcome, 'already applied');
  await stat(box.at('node/addons/aaa/1.0.0/install.sh'));
  // One of them is enough, and so is one that was cut short; what a hook has added does not matter.
  await rm(box.at('node/addons/aaa/1.0.0/data/x.yaml'));
  await run(box, packages);
  assert.is(await readFile(box.at('node/addons/aaa/1.0.0/data/x.yaml'), 'utf8'), 'x: 1\n');
  await writeFile(box.at('node/addons/aaa/1.0.0/data/x.yaml'), 'x');
  assert.is((await nodeStatus(box.at('node'), { signal: never })).addons[0]?.inPlace, false);
  await run(box, packages);
  assert.is(await readFile(box.at('node/addons/aaa/1.0.0/data/x.yaml'), 'utf8'), 'x: 1\n');
  await writeFile(box.at('node/addons/aaa/1.0.0/rendered'), 'x');
  await run(box, packages);
  assert.is(await readFile(box.at('node/addons/aaa/1.0.0/rendered'), 'utf8'), 'x');
});

test('an install folder that is a file, and records damaged by hand, are told plainly', async () => {
  await using box = await tree({ node: '' });
  const packages = await packagesOf(bundleOf([tracer('aaa')]));
  await assert.rejectsWith(run(box, packages), 'FILE_UNUSABLE', /create .*node/);
  await rm(box.at('node'));
  await mkdir(box.at('node'));
  await writeFile(box.at('node/records.json'), '{');
  await assert.rejectsWith(run(box, packages), 'FILE_UNUSABLE', /damaged/);
  assert.equal(await trace(box), []);
});

test('a run that is canceled before its first hook says so, and continues', async () => {
  await using box = await tree();
  const stop = new AbortController();
  const packages = await packagesOf(bundleOf([tracer('aaa')]));
  const stopping = packages.map((one) => {
    const extract = async (): Promise<void> => {
      stop.abort(new CurlewError('CANCELLED', 'canceled'));
      return Promise.reject(new CurlewError('FILE_UNUSABLE', 'cannot write', { hint: 'use another disk' }));
    };
    return { ...one, extract };
  });
  const error = await assert.rejectsWith(run(box, stopping, { signal: stop.signal }), 'CANCELLED');
  assert.match(error.hint ?? '', /^no hook has run yet; .* or curlew resume, to continue$/);
  assert.equal(await trace(box), []);
  await run(box, packages);
  assert.ok((await trace(box)).includes('aaa 1'));
});

test.run();
