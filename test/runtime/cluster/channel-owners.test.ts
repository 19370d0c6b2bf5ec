/** Add-ons that a channel keeps in a cluster, and runs on its nodes. */
import { channelOwners } from '../../../src/runtime/cluster/channel-owners.ts';
import * as assert from '../../support/assert.ts';
import { memoryCluster } from '../../support/memory-cluster.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run, trace, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('runtime/channel-owners');

const named = (name: string) => tracer(name, `${name}_uninstall() { echo ${name}_uninstall >>"$TRACE"; }`);

test('a run on a node neither installs, replaces nor removes an add-on that a channel keeps', async () => {
  await using box = await tree();
  const { state, given } = memoryCluster();
  const packages = await packagesOf(bundleOf([named('aaa'), named('bbb')]));
  state.channels.set('aaa', 'channel:prod');
  const install = await assert.rejectsWith(
    run(box, packages, given()),
    'UNSUPPORTED',
    /^cannot install aaa: channel:prod keeps it in this cluster$/,
  );
  assert.match(
    install.hint ?? '',
    'omit aaa from the spec; or delete it from the channel and run curlew channel remove aaa',
  );
  state.channels.clear();
  await run(box, packages, given());
  await trace(box);
  state.channels.set('aaa', 'channel:prod');
  // What is applied already is not touched.
  const { addons } = await run(box, packages, given());
  assert.equal([...new Set(addons.map(({ outcome }) => outcome))], ['already applied']);
  await trace(box);
  await assert.rejectsWith(run(box, packages, { ...given(), reapply: true }), 'UNSUPPORTED', /^cannot install aaa/);
  const uninstall = { kind: 'uninstall', reapply: true, ...given() } as const;
  await assert.rejectsWith(run(box, packages, uninstall), 'UNSUPPORTED', /^cannot remove aaa: channel:prod keeps it/);
  assert.equal(await trace(box), []);
  await run(box, packages.slice(1), uninstall);
  assert.equal(await trace(box), ['bbb_uninstall']);
});

test('a node that is reset or joins, and one without a cluster, is not held up', async () => {
  await using box = await tree();
  const { state, given } = memoryCluster();
  const packages = await packagesOf(bundleOf([named('aaa')]));
  await run(box, packages, given());
  state.channels.set('aaa', 'channel:prod');
  await run(box, packages, { kind: 'reset', reapply: true, ...given() });
  assert.equal(Object.keys(state.applied), ['aaa']);
  await using other = await tree();
  await run(other, packages, { kind: 'join', ...given() });
  await using alone = await tree();
  await run(alone, packages);
});

test('only channels and fleets are owners, and records that cannot be read are ignored', () => {
  const data = { a: '{"addon":"a","owner":"channel:x"}', b: '{"addon":"b","owner":"installer"}', c: '{', d: '[]' };
  assert.equal([...channelOwners(data)], [['a', 'channel:x']]);
});

test.run();
