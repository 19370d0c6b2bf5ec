/** What people order about add-ons of a fleet, over API servers of the tests. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import {
  approveAddon,
  pauseAddon,
  resumeAddon,
  retryAddon,
  rollBackAddon,
  type FleetOrder,
} from '../../src/app/fleet-order.ts';
import { planFleets } from '../../src/app/fleet-plan.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/fleet-files.ts';
import {
  BAD,
  canaryAddon,
  doneIn,
  installedScene,
  openFleetScene,
  statesIn,
  type FleetScene,
} from '../support/fleet-scene.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/fleet-order');
const THREE = ['lyon', 'nice', 'paris'];
const CANARY = { nice: { canary: 'true' } };

type Verb = (
  request: { readonly addon: string; readonly files: readonly string[] },
  context: FleetScene['context'],
) => Promise<FleetOrder>;

async function order(scene: FleetScene, verb: Verb, more: object = {}): Promise<FleetOrder> {
  return verb({ addon: 'web', files: ['fleet.yaml'], ...more }, scene.context);
}

test('a paused add-on writes nothing to any cluster in later passes, and goes on when it is resumed', async () => {
  await using scene = await openFleetScene(THREE);
  await scene.fleet([canaryAddon()], CANARY);
  await scene.manifest('1');
  await scene.apply();
  await order(scene, pauseAddon);
  const before = THREE.map((name) => scene.requests(name).length);
  const held = await scene.apply();
  assert.equal(statesIn(held), ['lyon ToApply wait Paused', 'nice Succeeded none', 'paris ToApply wait Paused']);
  const written = THREE.flatMap((name, at) => scene.requests(name).slice(before[at]));
  assert.equal(
    written.filter((one) => !one.startsWith('GET ')),
    [],
  );
  assert.is(held.addons[0]?.paused, true);
  await order(scene, resumeAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web install done', 'paris web install done']);
});

test('a pause during a pass holds the clusters that it has not come to, and needs no sound files', async () => {
  await using scene = await openFleetScene(['lyon']);
  await scene.fleet([addon('web')]);
  await scene.manifest('1');
  let paused: Promise<FleetOrder> | undefined;
  // The request is answered once the pause is there.
  scene.before((_name, request) =>
    request.startsWith('POST ') && request.includes('leases') ? (paused ??= order(scene, pauseAddon)) : undefined,
  );
  const pass = await scene.apply();
  await paused;
  assert.equal(doneIn(pass), ['lyon web install later']);
  await writeFile(scene.box.at('more.yaml'), 'apiVersion: fleet.curlew.dev/v1alpha1\nkind: Clusters\n');
  await order(scene, resumeAddon, { files: ['fleet.yaml', 'more.yaml'] });
  await assert.rejectsWith(order(scene, pauseAddon, { addon: 'wbe' }), 'NOT_FOUND', /no add-on wbe/);
});

test('a pause while a cluster gets one add-on holds the next one there', async () => {
  await using scene = await openFleetScene(['lyon']);
  await scene.fleet([addon('base'), addon('web')]);
  await scene.manifest('1');
  const base = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'base', namespace: 'default' } };
  await writeFile(scene.box.at('base.yaml'), JSON.stringify(base));
  let paused: Promise<FleetOrder> | undefined;
  // The request is answered once the pause is there.
  scene.before((_name, request) =>
    /PATCH .*configmaps\/base/.test(request) ? (paused ??= order(scene, pauseAddon)) : undefined,
  );
  assert.equal(doneIn(await scene.apply()), ['lyon base install done', 'lyon web install later']);
  await paused;
});

test('a removal that was held after its beginning was written removes the objects, not only their record', async () => {
  await using scene = await installedScene(['lyon']);
  await scene.fleet([addon('web')], { lyon: { env: 'test' } });
  let paused: Promise<FleetOrder> | undefined;
  // The request is answered once the pause is there.
  scene.before((_name, request) =>
    /^(?:POST|PATCH|PUT) .*leases/.test(request) ? (paused ??= order(scene, pauseAddon)) : undefined,
  );
  assert.equal(doneIn(await scene.apply()), ['lyon web remove later']);
  await paused;
  assert.equal(doneIn(await scene.apply()), []);
  assert.is(await scene.versions(), '1');
  await order(scene, resumeAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web remove done']);
  assert.is(await scene.versions(), '-');
});

test('a group waits for an approval, which is void for another content', async () => {
  await using scene = await openFleetScene(THREE);
  const groups = [
    { name: 'canary', selector: { matchLabels: { canary: 'true' } } },
    { name: 'prod', selector: { matchLabels: { env: 'prod' } } },
  ];
  await scene.fleet([canaryAddon({ groups, approval: ['prod'] })], CANARY);
  await scene.manifest('1');
  await scene.apply();
  assert.equal(statesIn(await scene.apply())[0], 'lyon ToApply wait Approval');
  await assert.rejectsWith(order(scene, approveAddon, { group: ['test'] }), 'USAGE', /it has no group test/);
  await order(scene, approveAddon, { group: ['canary'] });
  const { revision = '' } = await order(scene, approveAddon, { group: ['prod'] });
  assert.is(revision.length, 64);
  await scene.manifest('2');
  assert.equal(doneIn(await scene.apply()), ['nice web update done']);
  const { targets } = await scene.apply();
  const [lyon] = targets.filter((one) => one.cluster === 'lyon');
  assert.match(
    `${lyon?.reason}: ${lyon?.message}`,
    /^Approval: group prod waits for a person's approval; the approval of \S+Z was for another content: approve again$/,
  );
  await order(scene, approveAddon, { group: ['prod'] });
  assert.equal(doneIn(await scene.apply()), ['lyon web install done', 'paris web install done']);
});

test('a group that needs no approval cannot get one, nor can an add-on go back that has only one content', async () => {
  await using scene = await openFleetScene(['lyon']);
  const groups = [{ name: 'prod', selector: { matchLabels: { env: 'prod' } } }];
  await scene.fleet([addon('web', { rollout: { groups } })]);
  await scene.manifest('1');
  await assert.rejectsWith(
    order(scene, approveAddon, { group: ['prod'] }),
    'USAGE',
    /its group prod needs no approval/,
  );
  await scene.fleet([addon('web', { rollout: { mandatoryDecisionGroups: [{ groupIndex: 0 }] } })]);
  assert.equal((await order(scene, approveAddon, { group: ['0'] })).groups, ['0']);
  const { unproven } = await order(scene, approveAddon, { unproven: ['0'] });
  assert.equal(unproven, ['0']);
  await assert.rejectsWith(order(scene, approveAddon, { unproven: ['prod'] }), 'USAGE', /it has no group prod/);
  await assert.rejectsWith(order(scene, approveAddon, { group: ['1'] }), 'USAGE', /it has no group 1/);
  await scene.fleet([addon('web', { rollout: { groups } })]);
  assert.is((await order(scene, approveAddon, { downgrade: true })).downgrade, true);
  await scene.apply();
  await assert.rejectsWith(order(scene, rollBackAddon), 'USAGE', /no cluster has had another content of it/);
  await scene.manifest('2');
  await scene.apply();
  assert.is((await order(scene, rollBackAddon)).rollback, true);
});

test('exactly the approved number of removals passes the brake', async () => {
  await using scene = await installedScene(THREE);
  await scene.fleet([addon('web')], { lyon: { env: 'test' }, nice: { env: 'test' } });
  assert.equal(doneIn(await scene.apply()), []);
  await order(scene, approveAddon, { removals: 1 });
  assert.equal(doneIn(await scene.apply()), []);
  await order(scene, approveAddon, { removals: 2 });
  assert.equal(doneIn(await scene.apply()), ['lyon web remove done', 'nice web remove done']);
  assert.is(await scene.versions(), '- - 1');
});

test('approvals of the same second are several: removals of one are not those of another', async () => {
  await using scene = await installedScene(THREE);
  const held = addon('web', { rollout: { maxRemovals: 0 } });
  const { now } = Date;
  const then = now();
  /** Does something at so many seconds. */
  const at = async <Done>(seconds: number, run: () => Promise<Done>): Promise<Done> => {
    Date.now = () => then + seconds * 1000;
    return run().finally(() => (Date.now = now));
  };
  const approve = async () => at(0, async () => order(scene, approveAddon, { removals: 1 }));
  await scene.fleet([held], { lyon: { env: 'test' } });
  await approve();
  assert.equal(doneIn(await scene.apply()), ['lyon web remove done']);
  await scene.fleet([held], { lyon: { env: 'test' }, nice: { env: 'test' } });
  await approve();
  assert.equal(doneIn(await scene.apply()), ['nice web remove done']);
  // The order is gone, and what has begun under it is known.
  await rm(scene.box.at('.curlew/fleet/orders.json'));
  await scene.fleet([held], { lyon: { env: 'test' }, nice: { env: 'test' }, paris: { env: 'test' } });
  await approve();
  // The third approval in a second has the time of the second after the next.
  assert.equal(doneIn(await at(2, scene.apply)), ['paris web remove done']);
});

test('without the state in which they were followed, orders but a pause are void, and that is said', async () => {
  await using scene = await openFleetScene(THREE);
  const all = [...THREE, 'nancy', 'nantes'];
  await using many = await installedScene(all);
  const moved = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, { env: 'test' }]));
  await many.fleet([addon('web')], moved('lyon', 'nice'));
  await order(many, approveAddon, { removals: 2 });
  assert.equal(doneIn(await many.apply()), ['lyon web remove done', 'nice web remove done']);
  await rm(many.box.at('.curlew/fleet/state.json'));
  await many.fleet([addon('web')], moved(...THREE, 'nancy'));
  const held = await many.apply();
  assert.equal(doneIn(held), []);
  assert.match(held.warnings.join(), /approvals, retries and rollbacks must be given again/);
  assert.equal((await many.plan()).warnings, []);
  await order(many, approveAddon, { removals: 2 });
  assert.equal(doneIn(await many.apply()), ['paris web remove done', 'nancy web remove done']);

  await scene.fleet([canaryAddon()], CANARY);
  await scene.manifest('1');
  await scene.apply();
  await order(scene, pauseAddon);
  await scene.apply();
  await rm(scene.box.at('.curlew/fleet/state.json'));
  assert.equal(doneIn(await scene.apply()), []);
  await order(scene, resumeAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web install done', 'paris web install done']);
});

test('an order of a clock that is behind what the state has says so', async () => {
  await using scene = await openFleetScene(['lyon']);
  await scene.fleet([addon('web')]);
  await scene.manifest('1', BAD);
  await scene.apply();
  assert.is((await order(scene, retryAddon)).warning, undefined);
  const path = scene.box.at('.curlew/fleet/state.json');
  const text = await readFile(path, 'utf8');
  const ahead = (name: string): string => text.replaceAll(new RegExp(`("${name}":)(\\d+)`, 'g'), '$14000000000');
  // A pass of a machine whose clock is right has recorded it.
  await writeFile(path, ahead('since'));
  const warning =
    /^the clock of this machine says 2\S+Z, and the state has what it is about at 2096-10-02T07:06:40Z: unless .*, and order again$/;
  assert.match((await order(scene, retryAddon)).warning ?? '', warning);
  assert.is((await order(scene, approveAddon, { downgrade: true })).warning, undefined);
  await scene.manifest('2');
  assert.match((await order(scene, approveAddon, { downgrade: true })).warning ?? '', warning);
});

test('what has failed is tried again on order, once', async () => {
  await using scene = await openFleetScene(['lyon']);
  await scene.fleet([addon('web')]);
  await scene.manifest('1', BAD);
  await scene.apply();
  assert.equal(doneIn(await scene.apply()), []);
  await order(scene, retryAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web install failed']);
  let broken = true;
  await scene.manifest('2');
  scene.before((_name, request) => {
    if (broken && /PATCH .*configmaps\/page/.test(request)) throw new StatusError(422, 'Invalid', 'broken');
  });
  assert.equal(doneIn(await scene.apply()), ['lyon web install failed']);
  broken = false;
  await order(scene, retryAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web install done']);
});

test('a rollback brings every cluster back to its last good content, and stays until the add-on changes', async () => {
  await using scene = await installedScene(THREE, '1', '2');
  assert.is(await scene.versions(), '2 2 2');
  await order(scene, rollBackAddon);
  assert.equal(
    statesIn(await planFleets({ files: ['fleet.yaml'] }, scene.context)),
    THREE.map((name) => `${name} ToApply go back`),
  );
  assert.equal(
    doneIn(await scene.apply()),
    THREE.map((name) => `${name} web go back done`),
  );
  assert.is(await scene.versions(), '1 1 1');
  const held = await scene.apply();
  assert.equal(
    statesIn(held),
    THREE.map((name) => `${name} ToApply wait Stopped`),
  );
  assert.match(
    (await order(scene, retryAddon)).warning ?? '',
    /^the order has no effect: the add-on goes back to what/,
  );
  await scene.manifest('3');
  await scene.apply();
  assert.is(await scene.versions(), '3 3 3');
});

test('a rollback that fails says where, why and what to do until it succeeds, and no more after the next edit', async () => {
  await using scene = await installedScene(['lyon', 'nice'], '1', '2');
  let isBroken = true;
  scene.before((name, request) => {
    if (isBroken && name === 'lyon' && /PATCH .*configmaps\/page/.test(request))
      throw new StatusError(422, 'Invalid', 'quota is used up');
  });
  await order(scene, rollBackAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web go back failed', 'nice web go back done']);
  const why =
    /^going back to what was known as good failed on lyon: .*quota is used up.*; remove the cause, then retry/;
  const failed = await scene.plan();
  assert.match(failed.addons[0]?.stopped ?? '', why);
  assert.is(failed.targets[0]?.state, 'Failed');
  await scene.apply();
  assert.match((await scene.plan()).addons[0]?.stopped ?? '', why);
  await scene.manifest('3');
  const edited = await scene.plan();
  assert.is(edited.addons[0]?.stopped, undefined);
  assert.equal(statesIn(edited), ['lyon ToApply update', 'nice ToApply update']);
  assert.equal(
    edited.targets.map(({ message }) => message),
    [undefined, undefined],
  );
  await scene.manifest('2');
  await order(scene, rollBackAddon);
  await scene.apply();
  isBroken = false;
  await order(scene, retryAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web go back done']);
  assert.is((await scene.plan()).addons[0]?.stopped, 'it has gone back to what was known as good');
  assert.is(await scene.versions(), '1 1');
});

test('a rollback that fails while its objects are written is tried again on order', async () => {
  await using scene = await installedScene(['lyon'], '1', '2');
  let isBroken = true;
  scene.before((_name, request) => {
    if (isBroken && /PATCH .*configmaps\/page/.test(request) && !request.includes('dryRun'))
      throw new StatusError(422, 'Invalid', 'quota is used up');
  });
  await order(scene, rollBackAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web go back failed']);
  const failed = await scene.apply();
  assert.equal(statesIn(failed), ['lyon Failed wait Stopped']);
  assert.match(
    failed.targets[0]?.message ?? '',
    /^going back to what was known as good failed on lyon: .*quota is used/,
  );
  isBroken = false;
  await order(scene, retryAddon);
  assert.equal(doneIn(await scene.apply()), ['lyon web go back done']);
  assert.is(await scene.versions(), '1');
});

test('without the state, going back says that the content is not kept, and changes nothing', async () => {
  await using scene = await openFleetScene(['lyon']);
  await scene.fleet([addon('web')]);
  for (const version of ['1', '2']) {
    await scene.manifest(version);
    await scene.apply({ state: version });
  }
  await rollBackAddon({ addon: 'web', files: ['fleet.yaml'], state: '2' }, scene.context);
  const pass = await scene.apply({ state: '2' });
  assert.match(pass.done[0]?.reason ?? '', 'its earlier content is not kept');
  assert.is(await scene.versions(), '2');
});

test.run();
