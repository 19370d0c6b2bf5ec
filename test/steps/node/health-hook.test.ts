/** The health hook of an add-on on a node. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { healthByHook, type HookHealth } from '../../../src/steps/node/health-hook.ts';
import type { Context } from '../../../src/core/context.ts';
import { isProcessRunning } from '../../../src/platform/process/process-tree.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { eventually } from '../../support/hub-scene.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('health hooks', { timeoutMs: 60_000 });

interface Node extends AsyncDisposable {
  readonly box: Tree;
  readonly health: (limitMs?: number, signal?: AbortSignal) => Promise<HookHealth | undefined>;
}

/** A node with an add-on whose hook has this body. */
async function node(
  body: string,
  { hooks = ['page_health'] }: { readonly hooks?: readonly string[] } = {},
): Promise<Node> {
  const box = await tree();
  const files = { Manifest: '', 'install.sh': `page() { :; }\npage_health() {\n${body}\n}\n` };
  const packages = await packagesOf(
    bundleOf([{ name: 'page', version: '1.0.0', files, extra: { hooks: [...hooks] } }]),
  );
  await run(box, packages, { variables: [['PAGE_TOKEN', 'only-for-owners']] });
  const env = { PATH: process.env['PATH'], OUT: box.at('out') };
  const context: Context = { signal: never, report: noReport, env, cwd: box.path };
  return {
    box,
    health: async (limitMs = 30_000, signal = never) =>
      healthByHook('page', { installDir: box.at('node') }, { ...context, signal }, { limitMs }),
    [Symbol.asyncDispose]: async () => box[Symbol.asyncDispose](),
  };
}

test('a hook that succeeds finds its settings and its folder, and leaves no file', async () => {
  await using here = await node('echo "$PAGE_TOKEN $DIR $PWD" >"$OUT"');
  assert.equal(await here.health(), { is: 'True', why: '' });
  assert.is(await readFile(here.box.at('out'), 'utf8'), `only-for-owners . ${here.box.at('node')}\n`);
  assert.equal(
    (await readdir(here.box.at('node/runs'))).filter((name) => name.startsWith('health')),
    [],
  );
});

test('a hook that fails says where, or what it gave as the reason, and nothing that it printed', async () => {
  await using here = await node('echo "$PAGE_TOKEN"; [[ "$PAGE_TOKEN" == other ]]');
  const { is, why = '' } = (await here.health()) ?? {};
  assert.is(is, 'False');
  assert.match(why, /^page: page_health failed with status 1 at .*install\.sh:3/);
  assert.not.match(why, /only-for-owners/);
  await using second = await node('echo "$PAGE_TOKEN"; bail "no replica answers"');
  const said = (await second.health())?.why ?? '';
  assert.match(said, /gave up at .*: no replica answers$/);
});

test('a hook that hangs is ended at its limit, with all that it has started', async () => {
  await using here = await node('sleep 300 & echo $! >"$OUT"; sleep 300');
  const { is, why = '' } = (await here.health(700)) ?? {};
  assert.is(is, 'False');
  assert.match(why, /took longer than its limit of 0\.7 s/);
  const pid = (await readFile(here.box.at('out'), 'utf8')).trim();
  assert.is(isProcessRunning(Number(pid), undefined), false);
});

test('a hook that prints without an end is cut, and the reason stays short', async () => {
  await using here = await node('head -c 5000000 /dev/zero | tr "\\0" x; return 1');
  const { is, why = '' } = (await here.health()) ?? {};
  assert.is(is, 'False');
  assert.ok(why.length < 300, String(why.length));
});

test('an add-on without the hook, and one that is not installed, have no health by it', async () => {
  await using here = await node('return 1', { hooks: [] });
  assert.is(await here.health(), undefined);
  const context: Context = { signal: never, report: noReport, env: {}, cwd: here.box.path };
  assert.is(await healthByHook('other', { installDir: here.box.at('node') }, context), undefined);
});

test('a hook whose file was changed is not called, and nothing is said about the add-on', async () => {
  await using here = await node('return 0');
  await writeFile(here.box.at('node/addons/page/1.0.0/install.sh'), 'page_health() { touch "$OUT"; }\n');
  assert.equal(await here.health(), {
    is: 'Unknown',
    why: 'page: its files were changed, so page_health is not called',
  });
  assert.equal(await readdir(here.box.path).then((names) => names.includes('out')), false);
});

test('an end of the agent ends the hook', async () => {
  await using here = await node('echo $$ >"$OUT.part"; mv "$OUT.part" "$OUT"; sleep 300');
  const stop = new AbortController();
  const asked = here.health(30_000, stop.signal).catch(String);
  await eventually(async () => (await readdir(here.box.path)).includes('out'));
  stop.abort(new Error('stopped'));
  assert.is(await asked, 'Error: stopped');
  assert.is(isProcessRunning(Number(await readFile(here.box.at('out'), 'utf8')), undefined), false);
});

test.run();
