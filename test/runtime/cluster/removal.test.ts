/** Add-ons that leave a cluster, and nodes that do. */
import * as assert from '../../support/assert.ts';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { ClusterNode } from '../../../src/runtime/cluster/cluster.ts';
import { readRecords } from '../../../src/runtime/node/records.ts';
import { memoryCluster } from '../../support/memory-cluster.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { type Given, packagesOf, run, trace, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('add-ons that leave a cluster');

/** An add-on whose removal can be followed. */
function leaver(name: string, more = '') {
  const hooks = ['_join', '_pre_remove', '_leave', '_uninstall'];
  return tracer(
    name,
    `${hooks.map((hook) => `${name}${hook}() { echo ${name}${hook} >>"$TRACE"; }`).join('\n')}${more}`,
  );
}

function nodeOf(name: string, controlPlane: boolean): ClusterNode {
  return { name, ready: 'True', controlPlane };
}

const THIS = nodeOf(hostname().toLowerCase(), true);
/** Asks for the cluster like commands over what a node has. */
function kept({ cluster }: Given): Given {
  return cluster === undefined ? {} : { cluster: { ...cluster, adopt: undefined, whole: false } };
}

const UNINSTALL = { kind: 'uninstall', reapply: true } as const;
const RESET = { kind: 'reset', reapply: true } as const;

test('uninstall removes the part of the cluster before that of the node, and what the cluster says of it', async () => {
  await using box = await tree();
  const { state, given } = memoryCluster();
  const packages = await packagesOf(bundleOf([leaver('aaa'), leaver('bbb')]));
  await run(box, packages, given());
  await trace(box);
  const { addons } = await run(box, packages.slice(1), { ...kept(given()), ...UNINSTALL });
  assert.equal(
    addons.map(({ name, outcome }) => [name, outcome]),
    [['bbb', 'removed']],
  );
  assert.equal(await trace(box), ['bbb_pre_remove', 'bbb_uninstall']);
  assert.equal(Object.keys(state.applied), ['aaa']);
  assert.is(state.applied['aaa']?.finished, true);
  assert.equal(Object.keys(state.current ?? {}).toSorted(), ['addons-aaa', 'kurl-version']);
  const { applied, extracted } = await readRecords(box.at('node'));
  assert.equal([Object.keys(applied), extracted.map(({ name }) => name)], [['aaa'], ['aaa']]);
});

test('another control plane removes the part of the cluster only as long as the cluster has it', async () => {
  await using first = await tree();
  await using second = await tree();
  const { state, given } = memoryCluster();
  const packages = await packagesOf(bundleOf([leaver('aaa')]));
  await run(first, packages, given());
  await run(second, packages, { kind: 'join' });
  await trace(second);
  await run(second, packages, { ...kept(given()), ...UNINSTALL });
  assert.equal(await trace(second), ['aaa_pre_remove', 'aaa_uninstall']);
  assert.equal(state.applied, {});
  await trace(first);
  await run(first, packages, { ...kept(given()), ...UNINSTALL });
  assert.equal(await trace(first), ['aaa_uninstall']);
});

test('a node that joined removes only its own part, and the cluster keeps its word', async () => {
  await using first = await tree();
  await using worker = await tree();
  const { state, given } = memoryCluster();
  const packages = await packagesOf(bundleOf([leaver('aaa')]));
  await run(first, packages, given());
  const before = state.applied;
  await run(worker, packages, { kind: 'join' });
  await trace(worker);
  await run(worker, packages, UNINSTALL);
  assert.equal(await trace(worker), ['aaa_uninstall']);
  await run(worker, packages, { kind: 'join' });
  await trace(worker);
  await run(worker, packages, RESET);
  assert.equal(await trace(worker), ['aaa_leave', 'aaa_uninstall']);
  assert.equal(state.applied, before);
});

for (const [title, nodes, hook] of [
  ['another control plane stays', [THIS, nodeOf('other', true)], 'aaa_leave'],
  ['only workers stay', [THIS, nodeOf('worker', false)], 'aaa_pre_remove'],
] as const) {
  test(`a reset of the first node where ${title} runs ${hook}`, async () => {
    await using box = await tree();
    const { state, given } = memoryCluster(nodes);
    const packages = await packagesOf(bundleOf([leaver('kubernetes'), leaver('aaa')]));
    await run(box, packages, given());
    const before = state.applied;
    await trace(box);
    await run(box, packages, { ...kept(given()), ...RESET });
    const [cluster = '', , node = ''] = await trace(box);
    assert.equal([cluster, node], [hook, 'aaa_uninstall']);
    if (hook === 'aaa_leave') assert.equal(state.applied, before);
    else assert.equal(Object.keys(state.applied), ['kubernetes']);
  });
}

const AWAY: Given = {
  cluster: {
    find: async () => Promise.resolve(undefined),
    adopt: false,
    whole: false,
    release: undefined,
    entries: new Map(),
  },
};

test('without an answer of the API server an add-on stays, unless its part in the cluster may', async () => {
  await using box = await tree();
  const { given } = memoryCluster();
  const packages = await packagesOf(bundleOf([leaver('aaa')]));
  await run(box, packages, given());
  await trace(box);
  await assert.rejectsWith(
    run(box, packages, { ...AWAY, ...UNINSTALL }),
    'CLUSTER_FAILED',
    /^cannot remove aaa: the API server does not respond$/,
  );
  assert.equal(await trace(box), []);
  const kept = packages.map((source) => ({ source, settings: {} }));
  const removal = { packages: kept, forgotten: [], keepGoing: true, keepData: false, pruneImages: false };
  await run(box, packages, { ...AWAY, ...UNINSTALL, removal });
  assert.equal(await trace(box), ['aaa_uninstall']);
});

test('a reset without an answer of the API server says what stays in the cluster', async () => {
  await using box = await tree();
  const { given } = memoryCluster();
  const packages = await packagesOf(bundleOf([leaver('aaa')]));
  await run(box, packages, given());
  await trace(box);
  const events: NonNullable<Given['events']> = [];
  await run(box, packages, { ...AWAY, ...RESET, events });
  assert.equal(await trace(box), ['aaa_leave', 'aaa_uninstall']);
  assert.ok(events.some((event) => event.type === 'note' && /the API server does not respond/.test(event.text)));
});

test('a run that died anywhere between node and cluster is finished by the same one', async () => {
  for (const [write, times] of [
    ['writeRecords', 1],
    ['writeRecords', 2],
    ['removeKurl', 1],
  ] as const) {
    await using box = await tree();
    const { state, given } = memoryCluster();
    const packages = await packagesOf(bundleOf([leaver('aaa')]));
    await run(box, packages, given());
    await trace(box);
    const died = await run(box, packages, { ...kept(given(write, times)), ...UNINSTALL }).then(String, String);
    assert.match(died, `no ${write}`);
    await run(box, packages, { ...kept(given()), ...UNINSTALL });
    assert.equal(await trace(box), ['aaa_pre_remove', 'aaa_uninstall'], 'each hook once');
    assert.equal([state.applied, (await readRecords(box.at('node'))).applied], [{}, {}]);
  }
});

test('a reset asks nothing of the cluster once its part is removed: kubernetes itself goes', async () => {
  for (const [write, times] of [
    ['writeRecords', 3],
    ['removeKurl', 2],
  ] as const) {
    await using box = await tree();
    const { given } = memoryCluster([THIS]);
    const packages = await packagesOf(bundleOf([leaver('containerd'), leaver('kubernetes'), leaver('aaa')]));
    await run(box, packages, given());
    await trace(box);
    await run(box, packages, { ...kept(given(write, times)), ...RESET });
    assert.equal((await trace(box)).slice(-3), ['aaa_uninstall', 'kubernetes_uninstall', 'containerd_uninstall']);
  }
});

function going(packages: Awaited<ReturnType<typeof packagesOf>>, keepGoing: boolean): Given {
  const own = packages.map((source) => ({ source, settings: {} }));
  return { removal: { packages: own, forgotten: [], keepGoing, keepData: false, pruneImages: false } };
}

test("a node keeps the record of an add-on that has left the cluster, until the node's part is removed", async () => {
  await using box = await tree();
  const { state, given } = memoryCluster();
  const stuck = leaver('bbb', '\nbbb_uninstall() { echo bbb_uninstall >>"$TRACE"; [ ! -e "$DIR/stuck" ]; }');
  const packages = await packagesOf(bundleOf([leaver('aaa'), stuck]));
  const [first, second] = [packages.slice(0, 1), packages.slice(1)];
  await run(box, packages, given());
  await writeFile(box.at('node/stuck'), '');
  await assert.rejectsWith(run(box, first, { ...given(), ...going(second, false) }), 'HOOK_FAILED');
  assert.equal(Object.keys(state.applied), ['aaa']);
  await run(box, first, given());
  assert.is((await readRecords(box.at('node'))).applied['bbb']?.finished, false);
  assert.ok((await readdir(box.at('node/addons/bbb/1.0.0'))).includes('install.sh'));
  await rm(box.at('node/stuck'));
  await trace(box);
  await run(box, second, { ...kept(given()), ...UNINSTALL });
  assert.is((await trace(box)).at(-1), 'bbb_uninstall');
  assert.equal(Object.keys((await readRecords(box.at('node'))).applied), ['aaa']);
});

test('a hook that failed in a run that kept going is tried again by the one that continues it', async () => {
  await using box = await tree();
  const { given } = memoryCluster();
  const packages = await packagesOf(bundleOf([leaver('aaa', '\naaa_pre_remove() { false; }')]));
  await run(box, packages, given());
  const again = { ...UNINSTALL, ...going(packages, true) };
  const died = await run(box, packages, { ...kept(given('removeKurl')), ...again }).then(String, String);
  assert.match(died, 'no removeKurl');
  await assert.rejectsWith(run(box, packages, { ...kept(given()), ...UNINSTALL }), 'HOOK_FAILED', /aaa_pre_remove/);
  const { failed } = await run(box, packages, { ...kept(given()), ...again });
  assert.equal(
    failed?.map((one) => one.function),
    ['aaa_pre_remove'],
  );
});

test('an install that finds everything applied still knows what this node has installed', async () => {
  await using box = await tree();
  const { given } = memoryCluster();
  const packages = await packagesOf(bundleOf([tracer('aaa')]));
  await run(box, packages, given());
  const { addons } = await run(box, packages, given());
  assert.is(addons[0]?.outcome, 'already applied');
  assert.is((await readRecords(box.at('node'))).applied['aaa']?.by, 'install');
});

test.run();
