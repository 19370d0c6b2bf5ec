/** What `upgrade` and `join` do on the node that add-ons were installed from, and on one that has joined. */
import { mkdir, writeFile } from 'node:fs/promises';
import { readRecords } from '../../src/runtime/node/records.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { boxWith, bundleOf } from '../support/node-bundles.ts';
import { trace, tracer } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';

const test = suite('cli, the first node', { timeoutMs: 120_000 });

/** With the join hook that worker nodes run. */
const JOIN = 'web_join() { echo web_join >>"$TRACE"; }';

/** Bundles of web 1.0.0 and of 1.0.1: b.tar.gz and newer.tar.gz. */
async function boxOfTwo(): Promise<Tree> {
  const box = await boxWith([tracer('web', JOIN)]);
  await writeFile(box.at('newer.tar.gz'), bundleOf([tracer('web', JOIN, '1.0.1')]));
  return box;
}

async function on(box: Tree, command: string, bundle: string, ...more: readonly string[]): Promise<Outcome> {
  const words = ['--bundle', box.at(bundle), '--root', 'root', '--unconfined', ...more];
  return runTraced([command, ...words], box);
}

async function recorded(box: Tree): Promise<readonly (string | undefined)[]> {
  const { applied } = await readRecords(box.at('root/var/lib/curlew'));
  return [applied['web']?.version, applied['web']?.by];
}

test('an upgrade of the node that an add-on was installed from installs the new version, and says so', async () => {
  await using box = await boxOfTwo();
  await on(box, 'install', 'b.tar.gz');
  assert.equal(await recorded(box), ['1.0.0', 'install']);
  await trace(box);
  const told = await on(box, 'upgrade', 'newer.tar.gz', '--dry-run');
  assert.match(told.stdout, 'version 1.0.0 was installed');
  const { exitCode, stdout, stderr } = await on(box, 'upgrade', 'newer.tar.gz');
  assert.is(exitCode, 0, stderr);
  assert.match(
    stderr.replaceAll(/\s+/g, ' '),
    'the add-ons were installed in this trial, so this upgrade runs their install hooks, which apply the new versions',
  );
  assert.match(stdout, /^web {2}1\.0\.0 → 1\.0\.1 {2}installed, /);
  assert.ok((await trace(box)).includes('web 1'));
  assert.equal(await recorded(box), ['1.0.1', 'install']);
  assert.match((await on(box, 'install', 'newer.tar.gz')).stdout, /^web {2}1\.0\.1 {2}already applied/);
});

test('an upgrade where nothing is installed is refused, also in a dry run, and leaves no records', async () => {
  await using box = await boxOfTwo();
  for (const more of [['--dry-run'], []]) {
    const { exitCode, stderr } = await on(box, 'upgrade', 'newer.tar.gz', ...more);
    assert.is(exitCode, 64, stderr);
    assert.match(stderr, 'curlew upgrade: nothing is installed in this trial');
    assert.match(stderr, 'curlew install --root root --unconfined installs the add-ons');
  }
  assert.equal(await trace(box), []);
  assert.equal(await recorded(box), [undefined, undefined]);
});

test('on a node of a cluster that curlew has not made, an upgrade runs, and says what has no hook for it', async () => {
  await using box = await boxWith([tracer('web', JOIN), tracer('db')]);
  await mkdir(box.at('root/etc/kubernetes'), { recursive: true });
  await writeFile(box.at('root/etc/kubernetes/kubelet.conf'), '');
  const { exitCode, stdout, stderr } = await on(box, 'upgrade', 'b.tar.gz');
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^db +1\.0\.0 {2}upgraded \(only files and images: it has no hook for this\)/m);
  assert.match(stdout, /^web +1\.0\.0 {2}upgraded \(every upgrade\)/m);
  assert.equal(await trace(box), ['web_join']);
});

test('the node that an add-on was installed from cannot join', async () => {
  await using box = await boxOfTwo();
  await on(box, 'install', 'b.tar.gz');
  await trace(box);
  for (const more of [[], ['--dry-run']]) {
    const { exitCode, stderr } = await on(box, 'join', 'newer.tar.gz', ...more);
    assert.is(exitCode, 64);
    assert.match(stderr, 'curlew join: web 1.0.0 was installed from this node, so it cannot join');
  }
  assert.equal(await trace(box), []);
  assert.equal(await recorded(box), ['1.0.0', 'install']);
});

test('on a node that has joined, an upgrade runs join hooks, and an add-on does not count as installed', async () => {
  await using box = await boxOfTwo();
  await on(box, 'join', 'b.tar.gz');
  const upgraded = await on(box, 'upgrade', 'newer.tar.gz');
  assert.match(upgraded.stdout, /^web {2}1\.0\.0 → 1\.0\.1 {2}upgraded/);
  assert.equal(await trace(box), ['web_join', 'web_join']);
  assert.equal(await recorded(box), ['1.0.1', 'join']);
  const { stdout } = await on(box, 'install', 'newer.tar.gz');
  assert.match(stdout, /^web {2}1\.0\.1 {2}installed \(this node joined with it and did not install it\)/);
  assert.equal(await recorded(box), ['1.0.1', 'install']);
});

test.run();
