import { parseRange } from '../../src/cluster/channel/range.ts';
import type { DesiredCluster, Policy, SeenCluster, SeenMachine } from '../../src/machine/cluster.ts';
import { planCluster, type ClusterPlan } from '../../src/machine/plan.ts';
import { desired, machine, NEW, OLD, plan, reasons, seen, THREE, titles } from './seen-cluster.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('plans of clusters');

/** A machine that its provider does not have, as it is seen by the rest of the cluster. */
function absent(name: string, more: Partial<SeenMachine> = {}): SeenMachine {
  return { name, answers: false, joined: false, toCreate: 'the provider lab does not have it', ...more };
}

test('a machine that its provider does not have is created before it joins, control planes one by one', () => {
  const names = 'cp0 cp1 cp2 w0';
  const bare = names.split(' ').map((name) => absent(name));
  const steps = titles(plan(names, bare));
  const join = (name: string): readonly string[] => [`create ${name}`, `images ${name} ${NEW}`, `join ${name} ${NEW}`];
  assert.equal(steps, ['create cp0', `images cp0 ${NEW}`, `init cp0 ${NEW}`, ...['cp1', 'cp2', 'w0'].flatMap(join)]);
  // Whether a host that only does not answer is part of the cluster is unknown.
  const silent = [{ ...absent('cp0'), toCreate: undefined }, ...bare.slice(1)];
  assert.equal(titles(plan(names, silent)), []);
});

test('a machine that the cluster has is not created again, whatever its provider lists', () => {
  const now = { kubelet: NEW, apiServer: NEW };
  const [cp0, cp1, cp2] = ['cp0', 'cp1', 'cp2'].map((name) => machine(name, now));
  if (cp0 === undefined || cp1 === undefined || cp2 === undefined) throw new Error('three');
  const lost =
    'the provider lab does not have it, and the cluster does: curlew machine repair creates it again, curlew machine remove forgets it';
  const held = (
    names: string,
    machines: readonly SeenMachine[],
    more: Partial<SeenCluster> = {},
  ): readonly string[] => {
    const found = planCluster(desired(names.split(' ')), seen(machines, more));
    assert.equal(titles(found), []);
    return reasons(found.held);
  };
  const node = { joined: true, role: 'worker', kubelet: NEW } as const;
  // Ready or not, and with a join that has not ended.
  assert.equal(held('cp0 w0', [cp0, absent('w0', { ...node, ready: true })]), [`w0: ${lost}`]);
  assert.equal(held('cp0 w0', [cp0, absent('w0', node)]), [`w0: ${lost}`]);
  assert.equal(held('cp0 w0', [cp0, absent('w0', { ...node, begun: 'join' })]), [`w0: ${lost}`]);
  const off = absent('w0', { ...node, exists: true, toCreate: 'no address' });
  assert.match(held('cp0 w0', [cp0, off])[0] ?? '', /: start it, or .* repair deletes it .* remove deletes it$/);
  const gone = absent('cp2', { joined: true, role: 'control-plane', ...now });
  assert.equal(held('cp0 cp1 cp2', [cp0, cp1, gone]), [`cp2: ${lost}`]);
  // Its node is gone, and etcd still has it.
  const members = ['cp0', 'cp1', 'cp2'].map((name) => ({ name, healthy: name !== 'cp2' }));
  assert.equal(held('cp0 cp1 cp2', [cp0, cp1, absent('cp2')], { members }), [`cp2: ${lost}`]);
});

/** How the one machine of a file that is about to be replaced gets a new one in its place. */
function renewed(name: string): readonly string[] {
  return [`delete ${name}`, `create ${name}`, `images ${name} ${NEW}`, `join ${name} ${NEW}`];
}

test('workers with update: Replace get a version by new machines, one after the other, and none in place', () => {
  const [cp0, w0, w1] = ['cp0', 'w0', 'w1'].map((name) => machine(name, { exists: true, images: [NEW] }));
  if (cp0 === undefined || w0 === undefined || w1 === undefined) throw new Error('three');
  const now = { kubelet: NEW, apiServer: NEW };
  const names = ['cp0', 'w0', 'w1'];
  const machines = desired(names).machines.map((one) => ({
    ...one,
    ...(one.role === 'worker' && { update: 'Replace' as const }),
  }));
  const replace = (found: readonly SeenMachine[]): ClusterPlan =>
    planCluster(desired(names, { machines }), seen(found));
  const leaves = (name: string): readonly string[] => [`mark ${name}`, `drain ${name}`, `delete-node ${name}`];
  const whole = replace([{ ...cp0, ...now }, w0, w1]);
  assert.equal(
    titles(whole),
    ['w0', 'w1'].flatMap((name) => [...leaves(name), ...renewed(name)]),
  );
  // Each waits for the one before it.
  assert.equal(whole.steps.find(({ host, phase }) => host === 'w1' && phase === 'mark')?.waits, [`join w0 ${NEW}`]);
  assert.equal(titles(replace([cp0, w0, w1])).slice(0, 4), [
    `snapshot cp0 ${NEW}`,
    `drain cp0 ${NEW}`,
    `upgrade cp0 ${NEW}`,
    'uncordon cp0',
  ]);
  // Killed once its node was deleted: it is not reset to join again.
  const left = { ...w0, joined: false };
  assert.equal(titles(replace([{ ...cp0, ...now }, left, w1])).slice(0, 5), [...renewed('w0'), 'mark w1']);
  // Killed while its node was leaving.
  const going = { ...w0, leaving: true, drained: true, cordon: 'curlew' } as const;
  assert.equal(titles(replace([{ ...cp0, ...now }, going, w1])).slice(0, 5), ['delete-node w0', ...renewed('w0')]);
  // Cordoned in the middle of a batch that was to go up in place.
  const cordoned = [w0, w1].map((one) => ({ ...one, cordon: 'curlew', cordonFor: NEW }) as const);
  const batch = replace([{ ...cp0, ...now }, ...cordoned]);
  assert.equal(batch.steps.filter(({ waits }) => waits.length === 0).length, 1);
  const more = { machines: [...machines, { name: 'w2', role: 'worker' as const }] };
  const bad = machine('w2', { ready: false, kubelet: NEW });
  const broken = planCluster(desired(names, more), seen([{ ...cp0, ...now }, w0, w1, bad]));
  assert.equal(titles(broken), []);
  assert.ok(reasons(broken.held).includes('w0: it is replaced once w2 is ready'));
});

test('what only its provider can change makes a new machine, unless update: InPlaceOnly keeps it', () => {
  const now = { kubelet: NEW, apiServer: NEW, exists: true };
  const old = { outdated: 'its image is debian-11' };
  const at = (found: readonly SeenMachine[], update?: 'Auto' | 'InPlaceOnly', version = NEW): ClusterPlan => {
    const machines = found.map(({ name, role = 'worker' }) => ({ name, role, update }));
    return planCluster({ name: 'shop', version, machines }, seen(found));
  };
  const [cp0, cp1, cp2] = ['cp0', 'cp1', 'cp2'].map((name) => machine(name, now));
  if (cp0 === undefined || cp1 === undefined || cp2 === undefined) throw new Error('three');
  const w0 = { ...machine('w0', { kubelet: NEW, exists: true }), ...old };
  assert.equal(titles(at([cp0, w0])), ['mark w0', 'drain w0', 'delete-node w0', ...renewed('w0')]);
  const kept = at([cp0, w0], 'InPlaceOnly');
  assert.equal(titles(kept), []);
  assert.equal(reasons(kept.held), ['w0: its image is debian-11, and update: InPlaceOnly never replaces a machine']);
  const leaves = ['mark cp1', 'drain cp1', 'remove-member cp1', 'delete-node cp1'];
  assert.equal(titles(at([cp0, { ...cp1, ...old }, cp2])), [...leaves, ...renewed('cp1')]);
  const only = at([
    { ...cp0, ...old },
    { ...w0, outdated: undefined },
  ]);
  assert.equal(titles(only), []);
  const alone = 'cp0: its image is debian-11, but no other control plane is healthy, so it cannot be removed';
  assert.equal(reasons(only.held), [alone]);
  // Neither keeps workers from what they need, nor the cluster from its version.
  const fresh = { name: 'w1', answers: true, joined: false, images: [NEW] };
  for (const update of ['Auto', 'InPlaceOnly'] as const) {
    assert.equal(
      titles(
        at(
          [
            { ...cp0, ...old },
            { ...fresh, role: 'worker' },
          ],
          update,
        ),
      ),
      [`join w1 ${NEW}`],
    );
    const before = machine('cp0', { exists: true, images: [NEW], ...old });
    assert.equal(titles(at([before], update))[1], `upgrade cp0 ${NEW}`);
  }
  const broken = at([cp0, { ...cp1, ...old }, cp2, { ...w0, outdated: undefined, ready: false }]);
  assert.equal(titles(broken), []);
  assert.equal(reasons(broken.held), ['cp1: it is replaced once w0 is ready', 'w0: it is not ready']);
  // A machine that does not answer is for a repair, and one whose cluster goes up first has the version of the file then.
  assert.equal(titles(at([cp0, { ...w0, answers: false }])), []);
  const behind = machine('cp0', { exists: true, images: [NEW] });
  assert.equal(titles(at([behind, { ...w0, kubelet: OLD, images: [NEW] }])).slice(4), [
    'mark w0',
    'drain w0',
    'delete-node w0',
    ...renewed('w0'),
  ]);
});

test('a host whose node was deleted is reset before it joins again, and a member of etcd leaves first', () => {
  const left = (name: string, more: Partial<SeenMachine> = {}): SeenMachine => {
    return { name, answers: true, joined: false, cluster: 'shop', images: [NEW], ...more };
  };
  const [cp0, cp1, cp2] = ['cp0', 'cp1', 'cp2'].map((name) => machine(name, { kubelet: NEW, apiServer: NEW }));
  if (cp0 === undefined || cp1 === undefined || cp2 === undefined) throw new Error('three');
  const again = ['reset w0', `images w0 ${NEW}`, `join w0 ${NEW}`];
  assert.equal(titles(plan('cp0 w0', [cp0, left('w0')])), again);
  // A join that was cut continues.
  assert.equal(titles(plan('cp0 w0', [cp0, left('w0', { attempted: true })])), [`join w0 ${NEW}`]);
  const gone = [cp0, cp1, left('cp2')];
  const members = gone.map(({ name }) => ({ name, healthy: true }));
  const wanted = desired(['cp0', 'cp1', 'cp2']);
  assert.equal(titles(planCluster(wanted, seen(gone, { members }))), [
    'remove-member cp2',
    'reset cp2',
    `images cp2 ${NEW}`,
    `join cp2 ${NEW}`,
  ]);
  // The only control plane is never reset for its file.
  const only = seen([left('cp0')], { members: [{ name: 'cp0', healthy: true }] });
  assert.equal(titles(planCluster(desired(['cp0']), only)), [`init cp0 ${NEW}`]);
});

test('what has made a machine a node, but not ended, is done there again before anything needs it', () => {
  const half = { kubelet: NEW, ready: false } as const;
  const control = machine('cp0', { ...half, apiServer: NEW, begun: 'init', images: [NEW] });
  const bare = { name: 'w0', answers: true, joined: false, images: [NEW] };
  assert.equal(titles(plan('cp0 w0', [control, bare])), [`init cp0 ${NEW}`, `join w0 ${NEW}`]);
  const worker = machine('w0', { ...half, begun: 'join', images: [NEW] });
  const well = machine('cp0', { kubelet: NEW, apiServer: NEW });
  assert.equal(titles(plan('cp0 w0', [well, worker])), [`join w0 ${NEW}`]);
  // An upgrade has all of it, and a machine that leaves needs none.
  assert.ok(!titles(plan('cp0 w0', [machine('cp0'), machine('w0', { begun: 'join' })]))[0]?.startsWith('join'));
  assert.equal(titles(plan('cp0', [well, worker]))[0], 'mark w0');
});

test('all nodes get their images, and etcd is saved before the first control plane, then the others and the workers follow', () => {
  const found = plan('cp0 cp1 cp2 w0', [...THREE, machine('w0')]);
  const names = ['cp0', 'cp1', 'cp2', 'w0'];
  const upgrade = (host: string): readonly string[] => [
    `drain ${host} ${NEW}`,
    `upgrade ${host} ${NEW}`,
    `uncordon ${host}`,
  ];
  const images = names.map((host) => `images ${host} ${NEW}`);
  assert.equal(titles(found), [...images, `snapshot cp0 ${NEW}`, ...names.flatMap(upgrade)]);
  assert.equal(found.held, []);
  assert.equal(found.steps.filter(({ waits }) => waits.length === 0).length, 4);
  assert.equal(found.steps[4]?.waits, images);
  assert.equal(found.steps[8]?.waits, ['uncordon cp0']);
});

test('a node that is away gets its images later, with its own upgrade', () => {
  const away = machine('w0', { answers: false, ready: false });
  const found = titles(plan('cp0 w0 w1 w2', [...THREE.slice(0, 1), away, machine('w1'), machine('w2')]));
  const before = found.slice(0, found.indexOf(`snapshot cp0 ${NEW}`));
  assert.equal(before, [`images cp0 ${NEW}`, `images w1 ${NEW}`, `images w2 ${NEW}`]);
});

test('each minor is passed by all machines before the next, and add-ons move where they must', () => {
  const entry = (version: string, text: string) => ({ name: 'net', version, range: parseRange(text, 'native').range });
  const state = { ...seen([machine('cp0'), machine('w0')]), addons: new Map([['net', { version: '1.0.0' }]]) };
  const entries = [entry('1.0.0', '<1.32.0'), entry('1.5.0', '>=1.31.0 <1.33.0'), entry('2.0.0', '>=1.32.0')];
  const available = ['v1.31.4', 'v1.32.1'];
  const found = planCluster(desired(['cp0', 'w0'], { version: 'v1.33.0' }), state, { entries, available });
  assert.equal(
    titles(found).filter((title) => /^(?:upgrade|addon)/.test(title)),
    [
      'upgrade cp0 v1.31.4',
      'upgrade w0 v1.31.4',
      'addon net 1.5.0',
      'upgrade cp0 v1.32.1',
      'upgrade w0 v1.32.1',
      'addon net 2.0.0',
      'upgrade cp0 v1.33.0',
      'upgrade w0 v1.33.0',
    ],
  );
  const stuck = planCluster(
    desired(['cp0', 'w0']),
    { ...state, addons: new Map([['net', { version: '0.1.0' }]]) },
    {
      entries: [entry('0.1.0', '<1.31.0')],
    },
  );
  assert.equal(stuck.steps, []);
  assert.match(reasons(stuck.held).join('; '), /^gap at v1\.31\.4/);
});

test('what must not be is refused with its reason, and nothing is planned', () => {
  const cases: readonly [reason: RegExp, ClusterPlan][] = [
    [/last control plane/, plan('w0', [machine('cp0'), machine('w0')])],
    [/^2 control planes survive no failure, like 1/, plan('cp0 cp1', THREE)],
    [/^unknown version: next/, planCluster(desired(['cp0'], { version: 'next' }), seen([machine('cp0')]))],
    [/^cp0: unknown version: its kubelet/, plan('cp0', [machine('cp0', { kubelet: '' })])],
    [/^w0: the name is there twice/, plan('cp0 w0 w0', [machine('cp0')])],
    [
      /^w0: it is a worker and cannot become a control-plane/,
      planCluster(
        {
          ...desired(['cp0']),
          machines: ['cp0', 'w0', 'cp2'].map((name) => ({ name, role: 'control-plane' }) as const),
        },
        seen([machine('cp0'), machine('w0')]),
      ),
    ],
    [/^w0: skew: its kubelet v1\.32\.0/, plan('cp0 w0', [machine('cp0'), machine('w0', { kubelet: 'v1.32.0' })])],
    [/^w0: skew: its kubelet v1\.26\.0/, plan('cp0 w0', [machine('cp0'), machine('w0', { kubelet: 'v1.26.0' })])],
    [
      /^skew: control planes have v1\.28\.0 and v1\.30\.2/,
      plan('cp0 cp1 cp2', [machine('cp0', { apiServer: 'v1.28.0', kubelet: 'v1.28.0' }), ...THREE.slice(1)]),
    ],
    [
      /^downgrade: the cluster has v1\.30\.2/,
      planCluster(desired(['cp0'], { version: 'v1.29.9' }), seen([machine('cp0')])),
    ],
    [
      /^v1\.32\.0 skips a minor version: v1\.30\.2 goes to 1\.31 first$/,
      planCluster(desired(['cp0'], { version: 'v1.32.0' }), seen([machine('cp0')])),
    ],
  ];
  for (const [reason, { steps, refused }] of cases) {
    assert.equal(steps, []);
    assert.match(reasons(refused).join('; '), reason);
  }
});

test('what cannot be known holds everything', () => {
  const state = seen([machine('cp0')]);
  const held = (one: SeenCluster, more: Partial<DesiredCluster> = {}) => {
    const found = planCluster(desired(['cp0'], more), one);
    assert.equal(found.steps, []);
    return reasons(found.held);
  };
  assert.equal(held(state, { paused: true }), ['the cluster is paused']);
  assert.equal(held({ ...state, complete: false }), ['the nodes of the cluster could not be listed completely']);
  assert.equal(held({ ...state, members: undefined }), ['the members of etcd could not be listed']);
  assert.equal(held(seen([machine('cp0', { answers: false })])), ['cp0: it does not answer']);
  const silent = { name: 'cp0', answers: false, joined: false };
  assert.equal(held(seen([silent])), ['cp0: it does not answer, and could be part of the cluster already']);
});

test('a broken control plane is replaced before anything is upgraded', () => {
  const [first, second] = THREE.map((one) => one);
  const machines = [
    first,
    second,
    machine('cp2', { ready: false, answers: false }),
    { name: 'cp3', answers: true, joined: false },
  ];
  const members = ['cp0', 'cp1', 'cp2'].map((name) => ({ name, healthy: name !== 'cp2' }));
  const state = seen(
    machines.filter((one) => one !== undefined),
    { members },
  );
  const found = titles(planCluster(desired(['cp0', 'cp1', 'cp3']), state));
  assert.equal(found.slice(0, 9), [
    'mark cp2',
    'remove-member cp2',
    'delete-node cp2',
    `images cp3 ${OLD}`,
    `join cp3 ${OLD}`,
    `images cp0 ${NEW}`,
    `images cp1 ${NEW}`,
    `images cp3 ${NEW}`,
    `snapshot cp0 ${NEW}`,
  ]);
  const worse = planCluster(desired(['cp0', 'cp1', 'cp3']), {
    ...state,
    members: members.map((one) => ({ ...one, healthy: one.name === 'cp0' })),
  });
  assert.match(reasons(worse.held).join('; '), /cp2: etcd would lose its quorum without it/);
});

test('a failure stops the other workers, and more removals than are allowed wait for a person', () => {
  const workers = Array.from({ length: 4 }, (_, at) => machine(`w${at}`));
  const control = machine('cp0', { apiServer: NEW, kubelet: NEW });
  const failed = machine('w0', { failed: { to: NEW, reason: 'its disk is full' } });
  const stopped = plan('cp0 w0 w1 w2 w3', [control, failed, ...workers.slice(1)]);
  assert.equal(stopped.steps, []);
  assert.equal(reasons(stopped.held).slice(0, 2), [
    `w0: its upgrade to ${NEW} has failed: its disk is full`,
    'w1: the rest: 1 failed, and 0 may',
  ]);
  const gone = (policy: Policy): ClusterPlan =>
    planCluster(desired(['cp0'], { version: OLD }), seen([machine('cp0'), ...workers]), policy);
  assert.equal(gone({}).steps, []);
  assert.equal(reasons(gone({}).held), [
    '4 machines would be removed, and 1 may without approval: curlew cluster apply --approve-removals 4 gives it',
  ]);
  assert.equal(gone({ approvedRemovals: 4 }).steps.length, 16);
  const five = [...THREE, machine('cp3'), machine('cp4')];
  assert.equal(titles(plan('cp0 cp1 cp2', five)), []);
  assert.equal(reasons(plan('cp0 cp1 cp2', five).held), [
    '2 machines would be removed, and 1 may without approval: curlew cluster apply --approve-removals 2 gives it',
  ]);
  assert.is(titles(plan('cp0 cp1 cp2', five, { approvedRemovals: 2 }))[0], 'mark cp3');
});

test.run();
