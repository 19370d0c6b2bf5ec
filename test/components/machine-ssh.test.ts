/** `curlew machine …` over SSH: real servers on hosts with files of their own; what kubeadm would do there is written by hand. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';
import { inspect } from '../../src/app/inspect.ts';
import { addMachine } from '../../src/app/machine-add.ts';
import { drainMachine, repairMachine, upgradeMachine } from '../../src/app/machine.ts';
import { removeMachine } from '../../src/app/machine-remove.ts';
import { REMOTE } from '../../src/machine/run/look.ts';
import type { MachineResult } from '../../src/machine/run/follow-plan.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene, type HostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';

const test = suite('components/machine-ssh', { timeoutMs: 240_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

const P1 = { p1: { role: 'control-plane' } };
/** Another name of the address of this machine, which all hosts share. */
const [P2, P3] = [{ address: 'localhost' }, { address: '127.1' }];
const FILE = { file: 'paris.yaml', bundle: 'b.tar.gz', yes: true } as const;

/** The same file as a person would write it, with a comment at each machine. */
async function writeYaml(at: HostScene): Promise<string> {
  const [path, json] = [at.at('paris.yaml'), await readFile(at.at('paris.yaml'), 'utf8')];
  const text = stringify(JSON.parse(json)).replaceAll(/^( *)- name: (\w+)$/gm, '$1# the host $2\n$1- name: $2 # here');
  await writeFile(path, text);
  return text;
}

/** The hosts as they are after `cluster apply`, which has its own tests. */
async function joined(at: HostScene, ...names: readonly string[]): Promise<void> {
  const { digest } = await inspect({ path: 'b.tar.gz' }, at.context);
  const version = 'v1.34.4';
  const state = { joined: true, answers: true, ready: true, kubelet: version };
  const one = async (name: string): Promise<void> => {
    const isControl = name === 'p1';
    const node = {
      name,
      ...state,
      role: isControl ? 'control-plane' : 'worker',
      ...(isControl && { apiServer: version }),
    };
    await writeFile(`${at.api}/node-${name}`, JSON.stringify(node));
    await at.on(
      name,
      `umask 077; mkdir -p ${REMOTE}/bundle /etc/kubernetes/pki && cd ${REMOTE} && echo paris >cluster
tar -xzf '${at.at('b.tar.gz')}' -C bundle && echo ${digest} >bundle/.digest
cd /etc/kubernetes && echo 'authority of the cluster' >pki/ca.crt && touch kubelet.conf ${isControl ? 'admin.conf' : ''}`,
    );
  };
  await Promise.all(names.map(one));
}

async function broken(at: HostScene, name: string): Promise<void> {
  const path = `${at.api}/node-${name}`;
  await writeFile(path, (await readFile(path, 'utf8')).replace('"ready":true', '"ready":false'));
}

async function old(at: HostScene, name: string): Promise<void> {
  const path = `${at.api}/node-${name}`;
  await writeFile(path, (await readFile(path, 'utf8')).replaceAll('v1.34.4', 'v1.34.3'));
}

function steps({ steps: left }: MachineResult): readonly string[] {
  return left.map(({ host, phase }) => `${host} ${phase}`);
}

function reasons({ refused }: MachineResult): string {
  return refused.map(({ host = '', reason }) => `${host}: ${reason}`).join('\n');
}

async function callsAfter(at: HostScene, work: () => Promise<unknown>): Promise<readonly string[]> {
  const before = (await at.calls()).filter((line) => line !== '').length;
  await work();
  return (await at.calls()).filter((line) => line !== '').slice(before);
}

tests('one worker is upgraded before its equals, and not before its control plane', async () => {
  await using at = await hostScene('p1', 'p2', 'p3');
  await at.write({ ...P1, p2: P2, p3: P3 });
  await joined(at, 'p1', 'p2', 'p3');
  await old(at, 'p2');
  await old(at, 'p3');
  const shown = await upgradeMachine({ ...FILE, name: 'p3', yes: false }, at.context);
  assert.equal(steps(shown), ['p3 images', 'p3 drain', 'p3 upgrade', 'p3 uncordon']);
  const calls = await callsAfter(at, async () => {
    assert.equal(steps(await upgradeMachine({ ...FILE, name: 'p3' }, at.context)), []);
  });
  assert.equal(calls, ['load-images p3', 'upgrade.sh p3 airgap installer-spec-file=../input']);
  await old(at, 'p1');
  await old(at, 'p3');
  const waiting = await upgradeMachine({ ...FILE, name: 'p2' }, at.context);
  assert.equal([waiting.done, waiting.failed], [[{ host: 'p2', phase: 'images' }], []]);
  assert.match(waiting.steps[0]?.waits.join() ?? '', 'p1');
  await assert.rejectsWith(upgradeMachine({ ...FILE, name: 'p4' }, at.context), 'NOT_FOUND', /has no such machine/);
  const slip = drainMachine({ file: 'paris.yaml', name: 'p22', yes: true }, at.context);
  const said = /cannot drain p22: neither \S+ nor the cluster has such a machine/;
  assert.is((await assert.rejectsWith(slip, 'NOT_FOUND', said)).hint, 'did you mean p2?');
});

tests('the first control plane is upgraded once all nodes have the images', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: P2 });
  await joined(at, 'p1', 'p2');
  await old(at, 'p1');
  await old(at, 'p2');
  const calls = await callsAfter(at, async () => {
    assert.equal(steps(await upgradeMachine({ ...FILE, name: 'p1' }, at.context)), []);
  });
  assert.equal(calls.slice(0, 2).toSorted(), ['load-images p1', 'load-images p2']);
  assert.equal(calls.slice(2), ['upgrade.sh p1 airgap installer-spec-file=../input']);
  const rest = await callsAfter(at, async () => at.apply());
  assert.equal(rest, ['upgrade.sh p2 airgap installer-spec-file=../input']);
});

tests('a broken worker leaves, is reset and joins again, also after a join that has failed', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: P2 });
  await joined(at, 'p1', 'p2');
  assert.equal(steps(await repairMachine({ ...FILE, name: 'p2', yes: false }, at.context)), []);
  await broken(at, 'p2');
  const shown = await repairMachine({ ...FILE, name: 'p2', yes: false }, at.context);
  assert.equal(steps(shown), ['p2 repair']);
  await writeFile(`${at.api}/fail-p2`, '');
  const calls = await callsAfter(at, async () => {
    const failed = await repairMachine({ ...FILE, name: 'p2' }, at.context);
    assert.equal(
      failed.failed?.map(({ phase }) => phase),
      ['join'],
    );
    await rm(`${at.api}/fail-p2`);
    assert.equal(steps(await repairMachine({ ...FILE, name: 'p2' }, at.context)), []);
  });
  assert.equal(
    calls.map((line) => line.split(' ').slice(0, 3).join(' ')),
    ['node repair p2', 'node remove p2', 'reset p2 reset', 'join.sh p2 airgap', 'join.sh p2 airgap'],
  );
});

tests('a worker that its repair in place has healed stays in the cluster', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: P2 });
  await joined(at, 'p1', 'p2');
  await broken(at, 'p2');
  await writeFile(`${at.api}/heals-p2`, '');
  const calls = await callsAfter(at, async () => {
    const healed = await repairMachine({ ...FILE, name: 'p2' }, at.context);
    assert.equal([steps(healed), healed.failed, healed.refused], [[], [], []]);
  });
  assert.equal(calls, ['node repair p2']);
});

tests(
  'the only control plane, a host that does not answer, and one of many broken machines are not repaired',
  async () => {
    await using at = await hostScene('p1', 'p2', 'p3');
    await at.write({ ...P1, p2: P2, p3: P3 });
    await joined(at, 'p1', 'p2', 'p3');
    await broken(at, 'p1');
    const only = await repairMachine({ ...FILE, name: 'p1' }, at.context);
    assert.match(reasons(only), 'p1: no other control plane is healthy, so it cannot be removed');
    await broken(at, 'p2');
    const many = await repairMachine({ ...FILE, name: 'p2' }, at.context);
    assert.match(reasons(many), '2 of 3 machines are not healthy, and a repair begins only while at most 40% are');
    const allowed = await repairMachine({ ...FILE, name: 'p2', maxUnhealthy: '2', yes: false }, at.context);
    assert.equal(allowed.refused, []);
    await at.on('p3', 'echo eve >/etc/kubernetes/pki/ca.crt');
    await broken(at, 'p3');
    const other = await repairMachine({ ...FILE, name: 'p3', maxUnhealthy: '3' }, at.context);
    assert.match(reasons(other), 'p3: it belongs to the cluster with the authority');
    // Its Node goes, and the host is left to the other cluster.
    const taken = removeMachine({ file: 'paris.yaml', name: 'p3' }, at.context);
    await assert.rejectsWith(taken, 'UNSUPPORTED', /spec\.machines is not a list with one machine after the other/);
    await writeYaml(at);
    const left = await removeMachine({ file: 'paris.yaml', name: 'p3' }, at.context);
    assert.equal(steps(left), ['p3 mark', 'p3 drain', 'p3 delete-node']);
    const { user, hostKey } = at.host('p2');
    await at.write({ ...P1, p2: { address: 'localhost', ssh: { user, port: 1, hostKey } }, p3: P3 });
    const away = await repairMachine({ ...FILE, name: 'p2', maxUnhealthy: '2' }, at.context);
    assert.match(reasons(away), 'p2: it does not answer');
  },
);

tests('a machine that is removed is reset, and only its lines leave the file', async () => {
  await using at = await hostScene('p1', 'p2', 'p3');
  await at.write({ ...P1, p2: P2, p3: P3 });
  const text = await writeYaml(at);
  await joined(at, 'p1', 'p2', 'p3');
  const loss = 'default/web: loses the data in its emptyDir cache';
  await writeFile(`${at.api}/loses-p2`, JSON.stringify(loss));
  const shown = await removeMachine({ file: 'paris.yaml', name: 'p2' }, at.context);
  assert.equal(steps(shown), ['p2 mark', 'p2 drain', 'p2 delete-node', 'p2 reset']);
  assert.equal(shown.notes, [`will be lost: ${loss}`]);
  const slip = removeMachine({ file: 'paris.yaml', name: 'p22', yes: true }, at.context);
  assert.is((await assert.rejectsWith(slip, 'NOT_FOUND', /p22/)).hint, 'did you mean p2?');
  assert.is(await readFile(at.at('paris.yaml'), 'utf8'), text);
  const calls = await callsAfter(at, async () => {
    const removed = await removeMachine({ file: 'paris.yaml', name: 'p2', yes: true }, at.context);
    assert.equal([removed.failed, removed.change], [[], 'removed p2 from paris.yaml']);
  });
  assert.equal(calls, ['node remove p2', 'reset p2 reset --yes']);
  const lines = text.split('\n');
  const [first, next] = ['p2', 'p3'].map((name) => lines.findIndex((line) => line.includes(`name: ${name}`)));
  const left = lines.filter((_, at_) => at_ < (first ?? 0) || at_ >= (next ?? 0) - 1);
  assert.is(await readFile(at.at('paris.yaml'), 'utf8'), left.join('\n'));
  const again = removeMachine({ file: 'paris.yaml', name: 'p2', yes: true }, at.context);
  await assert.rejectsWith(again, 'NOT_FOUND', /neither \S+paris\.yaml nor the cluster has such a machine/);
  const last = await removeMachine({ file: 'paris.yaml', name: 'p1', yes: true }, at.context);
  assert.match(reasons(last), 'the last control plane cannot be removed');
  assert.is(await readFile(at.at('paris.yaml'), 'utf8'), left.join('\n'));
});

tests('a machine that is added is at the end of the list, and joins', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write(P1);
  const text = await writeYaml(at);
  await joined(at, 'p1');
  const { user, port, hostKey } = at.host('p2');
  const p2 = { ...FILE, name: 'p2', address: 'localhost', user, port, hostKey, label: ['disk=ssd'] };
  const second = await addMachine({ ...p2, role: 'control-plane' }, at.context);
  assert.match(reasons(second), '2 control planes survive no failure, like 1');
  assert.is(await readFile(at.at('paris.yaml'), 'utf8'), text);
  const added = await addMachine(p2, at.context);
  assert.equal([added.failed, steps(added), added.change], [[], [], 'added p2 to paris.yaml']);
  const now = await readFile(at.at('paris.yaml'), 'utf8');
  assert.ok(now.startsWith(text));
  assert.match(now.slice(text.length), /^ {4}- name: p2\n {6}role: worker\n {6}address: localhost\n/);
  assert.equal((await addMachine(p2, at.context)).done, []);
  const other = addMachine({ ...p2, address: '127.1' }, at.context);
  await assert.rejectsWith(other, 'USAGE', /has it already, with other fields/);
});

tests('of two that add a machine at once, the second finds the lock, and no line of the first is lost', async () => {
  await using at = await hostScene('p1', 'p2', 'p3');
  await at.write(P1);
  const text = await writeYaml(at);
  await joined(at, 'p1');
  const add = async (name: string, address: string) => {
    const { user, port, hostKey } = at.host(name);
    return addMachine({ ...FILE, name, address, user, port, hostKey }, at.context);
  };
  await writeFile(`${at.api}/hold-p2`, '');
  const first = add('p2', 'localhost');
  await appears(`${at.api}/began-p2`);
  await assert.rejectsWith(add('p3', '127.1'), 'BUSY', /cannot add p3: .* is doing it now/);
  const held = await readFile(at.at('paris.yaml'), 'utf8');
  assert.equal(held.slice(text.length).match(/name: \w+/g), ['name: p2']);
  await rm(`${at.api}/hold-p2`);
  assert.equal((await first).failed, []);
  assert.equal((await add('p3', '127.1')).failed, []);
  const both = await readFile(at.at('paris.yaml'), 'utf8');
  assert.equal(both.slice(text.length).match(/name: \w+/g), ['name: p2', 'name: p3']);
});

tests('a file that a person changes before the lock is taken stays as that person has left it', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write(P1);
  await writeYaml(at);
  await joined(at, 'p1');
  const [ssh, file] = [at.at('ssh'), at.at('paris.yaml')];
  const change = `case "$*" in *lock.guard*) echo '# changed' >>'${file}';; esac`;
  await writeFile(ssh, (await readFile(ssh, 'utf8')).replace('\n', `\n${change}\n`));
  const { user, port, hostKey } = at.host('p2');
  const add = addMachine({ ...FILE, name: 'p2', address: 'localhost', user, port, hostKey }, at.context);
  await assert.rejectsWith(add, 'PLAN_CHANGED', /paris\.yaml: someone else has changed it meanwhile/);
  assert.match(await readFile(file, 'utf8'), /# changed\n/);
  assert.equal(await at.calls(), ['']);
});

tests('the pods of a machine move by a control plane, once', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: { ...P2, drain: { timeout: '9m' } } });
  await joined(at, 'p1', 'p2');
  const request = { file: 'paris.yaml', name: 'p2' };
  assert.equal((await drainMachine(request, at.context)).pods, ['default/web']);
  const calls = await callsAfter(at, async () => {
    const drained = await drainMachine({ ...request, yes: true }, at.context);
    assert.equal([drained.isCordoned, drained.pods], [true, []]);
    await drainMachine({ ...request, yes: true }, at.context);
  });
  assert.equal(calls, ['node drain p2 --drain-timeout 9m --yes']);
  await rm(`${at.api}/drained-p2`);
  await at.write({ ...P1, p2: P2 }, { paused: true });
  const paused = await drainMachine({ ...request, yes: true }, at.context);
  assert.equal([paused.pods, paused.held], [['default/web'], 'the cluster is paused']);
});

test.run();
