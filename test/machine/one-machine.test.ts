import { isSettled } from '../../src/machine/cluster.ts';
import type { HostFacts } from '../../src/machine/facts.ts';
import type { WrittenCluster } from '../../src/machine/run/cluster-file.ts';
import type { BundleFacts, ClusterLook, HostLook } from '../../src/machine/run/look.ts';
import {
  planLeaving,
  planMachine,
  planRepair,
  planUpgraded,
  type PlannedMachine,
} from '../../src/machine/run/one-machine.ts';
import { planLines } from '../../src/cli/commands/cluster.ts';
import { planOf } from '../../src/machine/run/planned-cluster.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { bundle, given, look, VERSION, type More } from './looked.ts';

const test = suite('plans of one machine');

function phases({ steps }: PlannedMachine): readonly string[] {
  return steps.map(({ host, phase }) => `${host} ${phase}`);
}

function reasons({ refused }: PlannedMachine): string {
  return refused.map(({ host = '', reason }) => `${host}: ${reason}`).join('\n');
}

const ONE = given(['cp1', 'w1', 'w2', 'w3']);
const THREE = given(['cp1', 'cp2', 'cp3', 'w1']);

test('a machine that was left behind needs the bundle of its cluster before the next one', () => {
  const cluster = given(['cp1', 'w1', 'w2']);
  const late = { kubelet: 'v1.34.0' };
  const now = { kubelet: 'v1.34.1' };
  const { steps, refused } = planOf(
    cluster,
    look(cluster, { cp1: { ...now, apiServer: 'v1.34.1' }, w1: late, w2: now }),
    bundle,
  );
  assert.equal(steps, []);
  assert.equal(refused, [
    {
      host: 'w1',
      reason:
        'it must go to v1.34.1 before its cluster goes to v1.34.4: apply the file with v1.34.1 and its bundle first',
    },
  ]);
});

test('a worker is upgraded before its equals, and waits for its control plane', () => {
  const old: More = { kubelet: 'v1.34.3' };
  const workers = look(ONE, { w1: old, w2: old, w3: old });
  const plan = planUpgraded({ cluster: ONE, name: 'w3', bundle }, workers);
  assert.equal(phases(plan), ['w3 drain', 'w3 upgrade', 'w3 uncordon']);
  assert.equal(plan.steps[0]?.waits, []);
  const all = look(ONE, { cp1: { ...old, apiServer: 'v1.34.3' }, w1: old, w2: old, w3: old });
  assert.match(planUpgraded({ cluster: ONE, name: 'w3', bundle }, all).steps[0]?.waits.join() ?? '', 'cp1');
  const bare = look(ONE, { w3: { joined: false, cluster: undefined } });
  assert.match(reasons(planUpgraded({ cluster: ONE, name: 'w3', bundle }, bare)), 'w3: it is not in the cluster');
});

test('a machine that cannot begin for another shows what waits there, and one that is as it should be does not', () => {
  const away: More = { ready: false };
  const waits = [{ host: 'cp2', reason: 'the control plane is not healthy: repair it' }];
  const bare = look(THREE, { cp2: away, w1: { joined: false, cluster: undefined } });
  const joining = planMachine({ cluster: THREE, name: 'w1', bundle }, bare);
  assert.equal([phases(joining), joining.held], [[], waits]);
  const old = look(THREE, { cp2: away, w1: { kubelet: 'v1.34.3' } });
  assert.equal(planUpgraded({ cluster: THREE, name: 'w1', bundle }, old).held, waits);
  const broken = look(THREE, { cp2: away, w1: away });
  assert.equal(planRepair({ cluster: THREE, name: 'w1', bundle, maxUnhealthy: '2' }, broken, []).held, waits);
  assert.ok(isSettled(planUpgraded({ cluster: THREE, name: 'w1', bundle }, look(THREE, { cp2: away }))));
});

test('a control plane gets the bundle by which it can be asked before another machine is planned', () => {
  const mute = { ...look(ONE), speaker: undefined, silent: ONE.machines[0] };
  const unknown = { ...mute, seen: { complete: true, machines: [] } };
  assert.equal(phases(planMachine({ cluster: ONE, name: 'w1', bundle }, unknown)), ['cp1 images']);
});

test('what a person must settle on another worker holds neither this one nor one that leaves', () => {
  const all = look(ONE, { w1: { kubelet: 'v1.34.3' }, w3: { cluster: 'bank' } });
  const strange: ClusterLook = { ...all, refused: [{ host: 'w2', reason: 'it has another host key' }] };
  const upgraded = planUpgraded({ cluster: ONE, name: 'w1', bundle }, strange);
  assert.equal([phases(upgraded), reasons(upgraded)], [['w1 drain', 'w1 upgrade', 'w1 uncordon'], '']);
  assert.equal(phases(planLeaving({ cluster: ONE, name: 'w1', bundle }, strange)).length, 4);
  assert.match(reasons(planUpgraded({ cluster: ONE, name: 'w2', bundle }, strange)), 'w2: it has another host key');
  const control: ClusterLook = { ...all, refused: [{ host: 'cp1', reason: 'it has another host key' }] };
  assert.match(reasons(planUpgraded({ cluster: ONE, name: 'w1', bundle }, control)), 'cp1: it has another host key');
});

test('room for the bundle, and its architecture, count only on hosts that get it', () => {
  const other: BundleFacts = { ...bundle, digest: 'sha256:c' };
  const plan = (more: Partial<HostFacts>) => {
    const all = look(ONE, { w1: { kubelet: 'v1.34.3', images: [] } });
    const hosts = all.hosts.map((one) => (one.facts ? { ...one, facts: { ...one.facts, ...more } } : one));
    return planOf(ONE, { ...all, hosts }, other).refused;
  };
  assert.equal(plan({ diskMiB: 2000 }), []);
  assert.equal(plan({ diskMiB: 9 }), [
    { host: 'w1', reason: 'it has 9 MiB free in /var/lib, and the bundle needs 1025: make room there' },
  ]);
  assert.equal(plan({ arch: 'aarch64' }), [
    {
      host: 'w1',
      reason: 'it is aarch64, and the bundle is for x86_64: curlew machine add or upgrade can use another for it',
    },
  ]);
});

test('room for images counts on hosts that become nodes, by the rule of their own run, and holds a worker alone', () => {
  const images = [{ addon: 'kubernetes', imageFormat: 'oci', bytes: 100e6 }] as const;
  const refused = (path: string, free: number, more: Partial<HostFacts> = {}) => {
    const all = look(ONE, { w1: { joined: false, cluster: undefined }, w2: { joined: false, cluster: undefined } });
    const imageDisk = { path, total: 1e9, free };
    const hosts = all.hosts.map((one) =>
      one.facts && one.host.name !== 'w2' ? { ...one, facts: { ...one.facts, imageDisk, ...more } } : one,
    );
    const plan = planOf(ONE, { ...all, hosts }, { ...bundle, images });
    assert.ok(plan.steps.some(({ host, phase }) => host === 'w2' && phase === 'join'));
    return plan.refused;
  };
  // 350 MB, kept and unpacked, and 15 % of the disk.
  assert.equal(refused('/images', 500e6), []);
  const reason =
    'the images of the bundle find no room on it: /images: 1 MB more needed: the run needs 350 MB, and 150 MB (15% of 1000 MB) must stay free; 500 MB are free';
  assert.equal(refused('/images', 500e6 - 1), [{ host: 'w1', reason }]);
  // What is there already is not known here.
  assert.equal(refused('/images', 0, { imageDisk: undefined }), []);
  assert.equal(refused('/images', 0, { isPart: true }), []);
});

test('a machine that leaves is drained and reset, and its control planes keep an odd number', () => {
  assert.equal(phases(planLeaving({ cluster: ONE, name: 'w2', bundle: undefined }, look(ONE))), [
    'w2 mark',
    'w2 drain',
    'w2 delete-node',
    'w2 reset',
  ]);
  const gone = look(ONE, { w2: { joined: false } });
  assert.equal(phases(planLeaving({ cluster: ONE, name: 'w2', bundle: undefined }, gone)), ['w2 reset']);
  const last = planLeaving({ cluster: ONE, name: 'cp1', bundle: undefined }, look(ONE));
  assert.match(reasons(last), 'the last control plane cannot be removed');
  const even = planLeaving({ cluster: THREE, name: 'cp3', bundle: undefined }, look(THREE));
  assert.match(reasons(even), '2 control planes survive no failure, like 1');
  assert.equal([phases(last), phases(even)], [[], []]);
});

test('machines leave together with approval, and one that a person names does without', () => {
  const file = given(['cp1', 'w1']);
  const all = look(given(['cp1', 'w1', 'w2', 'w3']));
  const { steps, held } = planOf(file, all, bundle);
  assert.equal(steps, []);
  assert.match(held[0]?.reason ?? '', /^2 machines would be removed, .* --approve-removals 2 gives it$/);
  const approved = planOf(file, all, bundle, { approveRemovals: 2 });
  assert.equal(approved.held, []);
  assert.equal(approved.steps.filter(({ phase }) => phase === 'delete-node').length, 2);
  const named = planLeaving({ cluster: file, name: 'w1', bundle: undefined }, all);
  assert.equal([phases(named).length, named.held], [4, []]);
});

test('a plan differs with everything that a machine gets, and with the preflights that it passes', () => {
  const { digest } = planOf(ONE, look(ONE), bundle);
  const machines = ONE.machines.map((one) => {
    return one.name === 'w1' ? { ...one, machine: { ...one.machine, labels: { disk: 'ssd' } } } : one;
  });
  assert.not.equal(planOf({ ...ONE, machines }, look(ONE), bundle).digest, digest);
  assert.not.equal(planOf(ONE, look(ONE), bundle, { ignore: ['Memory'] }).digest, digest);
  assert.equal(planOf(ONE, look(ONE), bundle, { ignore: [] }).digest, digest);
});

test('a plan differs with the host key that a provider says', () => {
  const all = look(ONE);
  const hosts = all.hosts.map((one): HostLook => {
    return one.host.name === 'w1' ? { ...one, host: { ...one.host, ssh: { ...one.host.ssh, hostKey: 'y' } } } : one;
  });
  assert.not.equal(planOf(ONE, { ...all, hosts }, bundle).digest, planOf(ONE, all, bundle).digest);
});

test('an outdated worker that stays behind its cluster is shown, and not replaced', () => {
  const late = 'v1.33.9';
  const machines = ONE.machines.map((one) => (one.name === 'w1' ? { ...one, kubeletVersion: late } : one));
  const seen = look(ONE, { w1: { kubelet: late, exists: true, outdated: 'its image is debian-11' } });
  const plan = planOf({ ...ONE, machines }, seen, bundle);
  assert.equal([plan.steps, plan.refused], [[], []]);
  assert.equal(plan.held, [
    {
      host: 'w1',
      reason: `its image is debian-11, and a new machine would have ${VERSION}, not its kubeletVersion ${late}: remove that, and it is replaced`,
    },
  ]);
});

test('nothing leaves while no control plane says what the cluster has', () => {
  const unknown = { ...look(ONE), speaker: undefined };
  const plan = planLeaving({ cluster: ONE, name: 'w2', bundle: undefined }, unknown);
  const reason = 'no control plane could be asked for its nodes: curlew cluster plan says why';
  assert.equal([phases(plan), plan.held], [[], [{ reason }]]);
});

test('the only control plane of an adopted cluster gets curlew before a machine leaves', () => {
  const mute = { ...look(ONE), speaker: undefined, silent: ONE.machines[0] };
  const plan = planLeaving({ cluster: ONE, name: 'w2', bundle }, mute);
  assert.equal([phases(plan), plan.held], [['cp1 images'], []]);
  const bare = planLeaving({ cluster: ONE, name: 'w2', bundle: undefined }, mute);
  const reason = 'it has no curlew to ask for the nodes of the cluster: add --bundle';
  assert.equal([phases(bare), bare.held], [[], [{ host: 'cp1', reason }]]);
});

test('what refuses the connection leaves once the control plane has curlew, and a refused one is named instead', () => {
  const mute = { ...look(ONE, { w2: { answers: false } }), speaker: undefined, silent: ONE.machines[0] };
  const denied = (host: string) => ({ ...mute, refused: [{ host, reason: 'it refuses the user' }] });
  const plan = planLeaving({ cluster: ONE, name: 'w2', bundle }, denied('w2'));
  assert.equal([phases(plan), plan.held, plan.refused], [['cp1 images'], [], []]);
  const kept = planLeaving({ cluster: ONE, name: 'w2', bundle }, denied('cp1'));
  assert.equal([phases(kept), kept.held, reasons(kept)], [[], [], 'cp1: it refuses the user']);
});

test('the host of another machine, by an entry that was copied, is not reset', () => {
  const all = look(ONE, { w2: { joined: false } });
  const hosts = all.hosts.map((one): HostLook => {
    return one.host.name === 'w2' && one.facts ? { ...one, facts: { ...one.facts, hostname: 'w3' } } : one;
  });
  const plan = planLeaving({ cluster: ONE, name: 'w2', bundle }, { ...all, hosts });
  assert.equal(phases(plan), []);
  assert.is(
    reasons(plan),
    'w2: its hostname is w3: it may be another machine, so correct its address, or take it out of the file',
  );
});

test('a host that another cluster uses is not reset', () => {
  const taken = look(ONE, { w2: { ready: false, cluster: 'rome' } });
  const plan = planLeaving({ cluster: ONE, name: 'w2', bundle: undefined }, taken);
  assert.equal(phases(plan), ['w2 mark', 'w2 drain', 'w2 delete-node']);
  const repair = planRepair({ cluster: ONE, name: 'w2', bundle }, taken, []);
  assert.match(reasons(repair), 'w2: it belongs to the cluster rome');
  assert.equal(phases(repair), []);
});

test('a broken machine leaves, is reset and joins again, and a healthy one is left alone', () => {
  assert.equal(phases(planRepair({ cluster: ONE, name: 'w2', bundle }, look(ONE), [])), []);
  const chain = ['w2 mark', 'w2 drain', 'w2 delete-node', 'w2 reset', 'w2 images', 'w2 join'];
  const broken = look(ONE, { w2: { ready: false } });
  assert.equal(phases(planRepair({ cluster: ONE, name: 'w2', bundle }, broken, [])), chain);
  const clean = look(ONE, { w2: { joined: false, cluster: undefined, images: [] } });
  assert.equal(phases(planRepair({ cluster: ONE, name: 'w2', bundle }, clean, [])), ['w2 images', 'w2 join']);
  const back = planRepair({ cluster: ONE, name: 'w2', bundle }, broken, [{ host: 'w2', phase: 'join' }]);
  assert.equal(phases(back), []);
  const control = planRepair({ cluster: THREE, name: 'cp3', bundle }, look(THREE, { cp3: { ready: false } }), []);
  assert.equal(phases(control)[2], 'cp3 remove-member');
});

test('a machine on which something does not run is repaired in place first, also without an API server', () => {
  const hosts = (at: ClusterLook, broken: readonly string[]): ClusterLook => ({
    ...at,
    hosts: at.hosts.map((one) =>
      one.facts === undefined ? one : { ...one, facts: { ...one.facts, isPart: true, broken } },
    ),
  });
  const seen = hosts(look(ONE, { w2: { ready: false } }), ['containerd does not run']);
  const wanted = { cluster: ONE, name: 'w2', bundle };
  const [first] = planRepair(wanted, seen, []).steps;
  assert.match(`${first?.phase}: ${first?.reason}`, 'repair: containerd does not run: what has stopped is started');
  assert.equal(phases(planRepair(wanted, seen, [{ host: 'w2', phase: 'repair' }]))[3], 'w2 reset');
  // A Node counts as ready for a while after something has stopped.
  assert.equal(phases(planRepair(wanted, hosts(look(ONE), ['etcd has no manifest']), [])), ['w2 repair']);
  const silent: ClusterLook = { ...hosts(look(ONE), ['etcd has no manifest']), speaker: undefined, isListed: false };
  assert.equal(phases(planRepair({ ...wanted, name: 'cp1' }, silent, [])), ['cp1 repair']);
});

test('the only control plane, a silent host, and one of many broken machines are not repaired', () => {
  const away: More = { ready: false };
  const repair = (cluster: WrittenCluster, name: string, more: Readonly<Record<string, More>>, maxUnhealthy?: string) =>
    planRepair({ cluster, name, bundle, maxUnhealthy }, look(cluster, more), []);
  assert.match(reasons(repair(ONE, 'cp1', { cp1: away })), 'cp1: no other control plane is healthy');
  assert.match(reasons(repair(THREE, 'cp3', { cp2: away, cp3: away })), 'etcd would lose its quorum');
  assert.match(reasons(repair(ONE, 'w1', { w1: { ...away, answers: false } })), 'w1: it does not answer');
  const many = { w1: away, w2: away };
  assert.match(reasons(repair(ONE, 'w1', many)), '2 of 4 machines are not healthy');
  assert.equal(repair(ONE, 'w1', many, '50%').refused, []);
  assert.equal(repair(ONE, 'w1', many, '2').refused, []);
  assert.not.equal(repair(ONE, 'w1', many, '1').refused, []);
});

/** The same look, in which a provider has these machines, or not. */
function provided(at: ClusterLook, exists: Readonly<Record<string, boolean | undefined>>): ClusterLook {
  const by = { name: 'lab', program: '/lab', env: {} };
  const reason = 'its provider does not say';
  const toCreate = 'the provider lab does not have it';
  return {
    ...at,
    seen: {
      ...at.seen,
      machines: at.seen.machines.map((one) =>
        exists[one.name] === false ? { ...one, toCreate, answers: false } : one,
      ),
    },
    hosts: at.hosts.map((one): HostLook => {
      const { name, role } = one.host;
      if (!(name in exists)) return one;
      const host = { ...one.host, provided: { by, wanted: { uid: `paris/${name}`, name, role } } };
      const has = exists[name];
      if (has === undefined) return { host, problem: { problem: 'unreachable', reason, hint: '' } };
      return { ...one, host, exists: has, ...(!has && { facts: undefined as never }) };
    }),
  };
}

test('a machine of a provider is deleted instead of reset when it leaves, and never by a list that has failed', () => {
  const leave = (more: Readonly<Record<string, More>>, exists: boolean | undefined): PlannedMachine =>
    planLeaving({ cluster: ONE, name: 'w1', bundle }, provided(look(ONE, more), { w1: exists }));
  assert.equal(phases(leave({}, true)), ['w1 mark', 'w1 drain', 'w1 delete-node', 'w1 delete']);
  assert.equal(phases(leave({ w1: { answers: false } }, true)), ['w1 mark', 'w1 delete-node', 'w1 delete']);
  assert.equal(phases(leave({ w1: { ready: false } }, false)), ['w1 mark', 'w1 delete-node']);
  // It runs: its provider looks elsewhere.
  const runs = leave({}, false);
  assert.equal(phases(runs), []);
  assert.match(reasons(runs), /^w1: its node is ready, and the provider lab does not have it: /);
  const unknown = leave({ w1: { answers: false } }, undefined);
  assert.equal([phases(unknown), reasons(unknown)], [[], 'w1: its provider does not say']);
  // All of the cluster is gone, apart from this one.
  const alone = provided(look(ONE, { w1: { joined: false, answers: false } }), { cp1: false, w1: true });
  const last = planLeaving({ cluster: ONE, name: 'w1', bundle }, { ...alone, speaker: undefined });
  assert.equal([phases(last), last.held], [['w1 delete'], []]);
  const other = leave({ w1: { cluster: 'berlin' } }, true);
  assert.equal([phases(other), reasons(other)], [[], 'w1: it belongs to the cluster berlin']);
});

test('a repair deletes and creates what does not answer, and resets what does', () => {
  const repair = (name: string, more: More, exists: boolean | undefined): PlannedMachine =>
    planRepair(
      { cluster: name.startsWith('cp') ? THREE : ONE, name, bundle },
      provided(look(name.startsWith('cp') ? THREE : ONE, { [name]: { ready: false, ...more } }), { [name]: exists }),
      [],
    );
  const again = (name: string): readonly string[] => [`${name} create`, `${name} images`, `${name} join`];
  const leaves = ['w1 mark', 'w1 delete-node'];
  assert.equal(phases(repair('w1', { answers: false }, true)), [...leaves, 'w1 delete', ...again('w1')]);
  assert.equal(phases(repair('w1', {}, false)), [...leaves, ...again('w1')]);
  assert.equal(phases(repair('w1', {}, true)).slice(-3), ['w1 reset', 'w1 images', 'w1 join']);
  // Killed after its node was deleted.
  const off = { joined: false, cluster: undefined, answers: false } as const;
  assert.equal(phases(repair('w1', off, true)), ['w1 delete', ...again('w1')]);
  assert.equal(phases(repair('w1', { ready: true, answers: false }, true)), []);
  assert.match(reasons(repair('w1', { answers: false }, undefined)), 'w1: it does not answer: turn it on');
  const control = repair('cp2', { answers: false }, true);
  assert.equal(phases(control), ['cp2 mark', 'cp2 remove-member', 'cp2 delete-node', 'cp2 delete', ...again('cp2')]);
});

test('a machine that refuses the connection is deleted and created by its repair, and another one is not', () => {
  const refused = [{ host: 'w1', reason: 'it refuses the user' }];
  const repair = (exists: Readonly<Record<string, boolean>>): PlannedMachine => {
    const all = provided(look(ONE, { w1: { ready: false, answers: false } }), exists);
    return planRepair({ cluster: ONE, name: 'w1', bundle }, { ...all, refused }, []);
  };
  const again = ['w1 create', 'w1 images', 'w1 join'];
  assert.equal(phases(repair({ w1: true })), ['w1 mark', 'w1 delete-node', 'w1 delete', ...again]);
  const kept = repair({});
  assert.equal(phases(kept), []);
  assert.match(reasons(kept), 'w1: it refuses the user');
});

test('a control plane that runs, and that its provider does not have, gets no second machine by a repair', () => {
  const all = provided(look(THREE), { cp2: false });
  const members = all.seen.members?.map((one) => ({ ...one, healthy: one.name !== 'cp2' }));
  const repaired = planRepair({ cluster: THREE, name: 'cp2', bundle }, { ...all, seen: { ...all.seen, members } }, []);
  assert.equal(phases(repaired), []);
  assert.match(reasons(repaired), /^cp2: its node is ready, and the provider lab does not have it: /);
});

test('a repair of a machine that a person must settle first says only that', () => {
  const silence = 'cp2 has another host key';
  const all = look(THREE, { cp2: { answers: false, ready: false, silence } });
  const strange: ClusterLook = { ...all, refused: [{ host: 'cp2', reason: silence }] };
  const { steps, held, refused } = planRepair({ cluster: THREE, name: 'cp2', bundle }, strange, []);
  assert.equal([steps, held, refused], [[], [], [{ host: 'cp2', reason: silence }]]);
});

test('a new machine in place of a node is shown as bare, and its settings are not compared', () => {
  const cluster: WrittenCluster = {
    ...THREE,
    installer: { kubernetes: { ...Object(THREE.installer['kubernetes']), maxPodsPerNode: 9 } },
  };
  const bare = planOf(cluster, look(cluster, { cp2: { ready: false, cluster: undefined } }), bundle);
  assert.equal(
    bare.hosts.filter((one) => one.bare === true).map(({ name }) => name),
    ['cp2'],
  );
  assert.match(bare.uncompared?.join() ?? '', 'settings of cp1, cp3, w1 are not compared');
  const shown = planLines(bare).find((line) => line.startsWith('cp2'));
  assert.match(shown ?? '', /^cp2 +control-plane +bare, in place of a node +debian 12/);
});

test.run();
