/** What a controller says to agents about changes by others, in passes over a hub in memory. */
import * as assert from '../../support/assert.ts';
import { openMemoryHub, type MemoryHub } from '../../support/hub-memory.ts';
import { hubAddon, hubClusterAddon } from '../../support/hub-objects.ts';
import { answering, change, pass } from '../../support/hub-passes.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/changed-by-others');
const DRIFT = 'fleet.curlew.dev/drift';

/** What each ClusterAddon says, and its revision. */
function said({ hub }: MemoryHub): string {
  const all = hub.clusterAddons.values().map((one) => {
    const { annotations = {}, record } = one ?? {};
    return `${record?.cluster}@${record?.spec.revision} ${annotations[DRIFT] ?? '-'}`;
  });
  return all.toSorted().join(', ');
}

test('agents are told the drift of an add-on, with its first content and by each change, without another revision', async () => {
  const access = { access: { kubeconfigSecret: 'rome-kubeconfig' } };
  const rome = { ...answering('rome', 'v1.32.0'), spec: access };
  await using memory = await openMemoryHub([hubAddon('web'), answering('oslo', 'v1.32.0'), rome]);
  await pass(memory, 0);
  const creates = memory.writes.length;
  // The controller itself delivers to rome.
  assert.is(said(memory), 'oslo@1 Warn, rome@1 -');
  await pass(memory, 1, 2);
  assert.is(memory.writes.length, creates);
  let generation = 1;
  for (const [spec, expected] of [
    [{ drift: 'Revert' }, 'Revert'],
    [{ drift: 'Keep' }, 'Keep'],
    [{ drift: 'Keep', mode: 'InstallOnce' }, 'None'],
    [{}, 'Warn'],
  ] as const) {
    generation += 1;
    await change(memory, { ...hubAddon('web', spec), metadata: { name: 'web', generation } });
    await pass(memory, generation * 10);
    assert.is(said(memory), `oslo@1 ${expected}, rome@1 -`);
    const before = memory.writes.length;
    await pass(memory, generation * 10 + 1);
    assert.is(memory.writes.length, before);
  }
});

test('what is paused is left alone until it goes on', async () => {
  await using memory = await openMemoryHub([
    hubAddon('web'),
    answering('oslo', 'v1.32.0'),
    answering('rome', 'v1.32.0'),
  ]);
  await pass(memory, 0);
  const oslo = answering('oslo', 'v1.32.0');
  await change(memory, { ...oslo, spec: { paused: true } });
  await pass(memory, 1);
  assert.is(said(memory), 'oslo@1 None, rome@1 Warn');
  await change(memory, { ...oslo, spec: {} });
  const metadata = { name: 'web', annotations: { 'fleet.curlew.dev/pause': 'true' } };
  await change(memory, { ...hubAddon('web'), metadata });
  await pass(memory, 2);
  assert.is(said(memory), 'oslo@1 None, rome@1 None');
});

test('agents are told the windows of their cluster and of the add-on, and that there are none any more', async () => {
  const [ofCluster, ofAddon] = [
    [{ cron: '0 22 * * *', duration: '4h' }],
    [{ cron: '0 1 * * *', duration: '1h', timeZone: 'Europe/Paris' }],
  ];
  const open = [{ cron: '* * * * *', duration: '1h' }];
  await using memory = await openMemoryHub([hubAddon('web'), answering('oslo', 'v1.32.0')]);
  await pass(memory, 0);
  let generation = 1;
  const told = async (windows: object, ofOslo: object): Promise<unknown> => {
    generation += 1;
    await change(memory, { ...hubAddon('web', { rollout: windows }), metadata: { name: 'web', generation } });
    await change(memory, { ...answering('oslo', 'v1.32.0'), spec: ofOslo });
    await pass(memory, generation * 10);
    const before = memory.writes.length;
    await pass(memory, generation * 10 + 1);
    assert.is(memory.writes.length, before);
    assert.is(said(memory), 'oslo@1 Warn');
    const [one] = memory.hub.clusterAddons.values();
    const { 'fleet.curlew.dev/windows': written } = one?.annotations ?? {};
    return written === undefined ? undefined : JSON.parse(written);
  };
  assert.equal(await told({ windows: ofAddon }, { windows: ofCluster }), [ofCluster, ofAddon]);
  assert.equal(await told({}, { windows: open }), [open]);
  assert.is(await told({}, {}), undefined);
});

test('a ClusterAddon of an earlier controller is told, too, and keeps its other annotations', async () => {
  const old = hubClusterAddon('web', 'oslo', { hub: '' }) as { readonly metadata: object };
  const annotations = { 'example.com/owner': 'ops' };
  await using memory = await openMemoryHub([
    hubAddon('web'),
    answering('oslo', 'v1.32.0'),
    { ...old, metadata: { ...old.metadata, annotations } },
  ]);
  await pass(memory, 0, 1);
  const [one] = memory.hub.clusterAddons.values();
  assert.equal(one?.annotations, { ...annotations, [DRIFT]: 'Warn' });
});

test.run();
