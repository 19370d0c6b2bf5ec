/** What happens to `curlew cluster apply` over SSH when a connection, a host, a run or an operator goes away, or a host refuses: real servers. */
import { rmSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { applyCluster } from '../../src/app/cluster-apply.ts';
import { failureCode } from '../../src/machine/cluster.ts';
import { readHosts } from '../../src/machine/run/cluster-file.ts';
import { REMOTE, type ClusterLook } from '../../src/machine/run/look.ts';
import { planOf, type PlannedCluster } from '../../src/machine/run/planned-cluster.ts';
import type { Report } from '../../src/core/events.ts';
import { followPlan, type AppliedCluster } from '../../src/machine/run/follow-plan.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';

const test = suite('components/cluster-ssh-faults', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

const P1 = { p1: { role: 'control-plane' } };

function done({ done: steps }: AppliedCluster): readonly string[] {
  return steps.map(({ host, phase }) => `${host} ${phase}`);
}

tests('an operator whose connection is cut connects again, and sees the end of the run that went on', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await writeFile(`${at.api}/hold-p1`, '');
  const applied = at.apply();
  await appears(`${at.api}/began-p1`);
  at.cut('p1');
  await rm(`${at.api}/hold-p1`);
  const result = await applied;
  assert.equal([result.failed, done(result)], [[], ['p1 images', 'p1 init']]);
  assert.is((await at.calls()).length, 1);
});

tests('a run that a restart of its host has ended is named as cut, and the same command does it again', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await writeFile(`${at.api}/hold-p1`, '');
  const applied = at.apply();
  await appears(`${at.api}/began-p1`);
  await at.on('p1', `/bin/kill -9 -- "-$(cat ${REMOTE}/pid)"`);
  at.cut('p1');
  const reason = 'it failed with status 70: it was cut, as by a restart of the host: run the same command again';
  assert.equal((await applied).failed, [{ host: 'p1', phase: 'init', reason, code: 'PROGRAM_FAILED' }]);
  // The settings of the run, which may have a token, are gone with it.
  assert.is(await at.on('p1', `ls ${REMOTE} | grep -c '^input$' || true`), '0\n');
  await rm(`${at.api}/hold-p1`);
  assert.equal(done(await at.apply()), ['p1 init']);
});

tests('a colleague continues from an empty disk, with the file and the bundle alone', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: { address: 'localhost' } });
  await writeFile(`${at.api}/hold-p2`, '');
  const operator = new AbortController();
  const first = at.apply({ signal: operator.signal });
  await appears(`${at.api}/began-p2`);
  operator.abort(new Error('gone'));
  assert.match(String(await first.catch((error: unknown) => error)), 'gone');
  const cwd = at.at('colleague');
  await mkdir(cwd);
  for (const name of ['paris.yaml', 'b.tar.gz']) await copyFile(at.at(name), `${cwd}/${name}`);
  await rm(`${at.api}/hold-p2`);
  const context = { ...at.context, cwd, env: { ...at.context.env, HOME: cwd } };
  const request = { files: ['paris.yaml'], bundle: 'b.tar.gz' };
  const result = await applyCluster(request, context);
  assert.equal([result.failed, result.steps, result.refused], [[], [], []]);
  // Each script ran once, whoever saw its end.
  assert.equal(
    (await at.calls()).map((line) => line.split(' ').slice(0, 2).join(' ')),
    ['install.sh p1', 'join.sh p2'],
  );
  assert.is((await stat(`${cwd}/paris.conf`)).mode & 0o777, 0o600);
  // Also where nothing is left to do.
  await rm(`${cwd}/paris.conf`);
  assert.equal(done(await applyCluster(request, context)), []);
  assert.is((await stat(`${cwd}/paris.conf`)).mode & 0o777, 0o600);
});

tests('a colleague with another file does not take the success of a step that runs for the older one', async () => {
  await using at = await hostScene('p1', 'p2');
  const p2 = { address: 'localhost' };
  await at.write({ ...P1, p2 });
  await writeFile(`${at.api}/hold-p2`, '');
  const operator = new AbortController();
  const first = at.apply({ signal: operator.signal });
  await appears(`${at.api}/began-p2`);
  operator.abort(new Error('gone'));
  await first.catch(() => undefined);
  await at.write({ ...P1, p2: { ...p2, taints: [{ key: 'gpu', effect: 'NoSchedule' }] } });
  const { failed, done: did } = await at.apply();
  const reason =
    'it failed with status 75: join p2 v1.34.4 runs there for a file with other settings: wait until it ends, then run the same command again';
  assert.equal([failed, did], [[{ host: 'p2', phase: 'join', reason, code: 'PROGRAM_FAILED' }], []]);
  await rm(`${at.api}/hold-p2`);
  await appears(`${at.api}/node-p2`);
  assert.not.match(await readFile(`${at.api}/input-p2`, 'utf8'), 'gpu');
});

tests('a step that outlives its operator is followed before the cluster is asked, and nothing is refused', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.apply();
  await at.on('p1', `sed -i 's/v1.34.4/v1.34.3/g' ${at.api}/node-p1`);
  await writeFile(`${at.api}/hold-p1`, '');
  await rm(`${at.api}/began-p1`);
  const operator = new AbortController();
  const first = at.apply({ signal: operator.signal });
  await appears(`${at.api}/began-p1`);
  operator.abort(new Error('gone'));
  await first.catch(() => undefined);
  const shown = await at.plan();
  const reason =
    'upgrade p1 v1.34.4 still runs there, and the cluster cannot be asked before it ends: curlew cluster apply follows it';
  assert.equal([shown.refused, shown.held], [[], [{ host: 'p1', reason }]]);
  const lines: string[] = [];
  const second = await at.apply({
    report: (event) => {
      if (event.type !== 'step-log') return;
      lines.push(event.text);
      rmSync(`${at.api}/hold-p1`, { force: true });
    },
  });
  assert.equal([second.refused, second.failed, second.held, done(second)], [[], [], [], []]);
  assert.equal(lines, ['kubeadm replaces etcd']);
  assert.is((await at.calls()).filter((line) => line.startsWith('upgrade.sh')).length, 1);
});

tests(
  'a control plane that does not answer yet, as after a restart, is asked again for a while, and refuses nothing',
  async () => {
    await using at = await hostScene('p1');
    await at.write(P1);
    await at.apply();
    await writeFile(`${at.api}/no-etcd`, '');
    const shown = await at.plan();
    const reason =
      'its cluster cannot be asked yet: p1 says: etcd does not answer: connect ECONNREFUSED 127.0.0.1:2379';
    assert.equal([shown.refused, shown.steps, shown.held], [[], [], [{ host: 'p1', reason }]]);
    const notes: string[] = [];
    const result = await at.apply({
      report: (event) => {
        if (event.type !== 'note') return;
        notes.push(event.text);
        rmSync(`${at.api}/no-etcd`, { force: true });
      },
    });
    assert.equal(notes, [`p1: ${reason}`]);
    assert.equal([result.refused, result.failed, result.held, done(result)], [[], [], [], []]);
    // A failure that lasts is what the result says, and nothing was done.
    await writeFile(`${at.api}/no-etcd`, '');
    const cluster = await readHosts({ files: ['paris.yaml'] }, 'apply', at.context);
    const next = (look: ClusterLook): PlannedCluster => planOf(cluster, look, undefined);
    const left = await followPlan({ cluster, doing: 'apply paris', next, patienceMs: 100 }, at.context);
    assert.equal([left.refused, left.done, left.held], [[], [], [{ host: 'p1', reason }]]);
  },
);

tests('labels and taints that the file has got are set on a node in place', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.apply();
  const own = (labels: object): string =>
    `sed -i 's/}$/,"labels":${JSON.stringify(labels)},"taints":[]}/' ${at.api}/node-p1`;
  await at.on('p1', own({}));
  const sets = `echo "kubectl $KUBECONFIG $*" >>${at.api}/calls; sed -i 's/"labels":{}/"labels":{"disk":"ssd"}/; s/"taints":\\[\\]/"taints":["db=:NoSchedule"]/' ${at.api}/node-p1`;
  await at.on('p1', `cat >/usr/local/bin/kubectl <<'END'\n#!/bin/sh\n${sets}\nEND\nchmod +x /usr/local/bin/kubectl`);
  await at.write({
    p1: { role: 'control-plane', labels: { disk: 'ssd' }, taints: [{ key: 'db', effect: 'NoSchedule' }] },
  });
  const result = await at.apply();
  assert.equal([done(result), result.failed, result.steps], [['p1 label'], [], []]);
  const conf = '/etc/kubernetes/admin.conf';
  assert.equal((await at.calls()).slice(-2), [
    `kubectl ${conf} label node p1 disk=ssd --overwrite`,
    `kubectl ${conf} taint node p1 db=:NoSchedule --overwrite`,
  ]);
});

tests('a title that --ignore passes is unknown only if no machine has a check of that title', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: { address: 'localhost' } });
  const [one, other] = ['"Swap"', '"Sawp"'].map((title) => `--ignore: no check has the title ${title}; in results`);
  await writeFile(`${at.api}/warn-p1`, `warning: ${one}\nwarning: ${other}\n`);
  await writeFile(`${at.api}/warn-p2`, `warning: ${other}\n`);
  const warnings: string[] = [];
  const report: Report = (event) => {
    if (event.type === 'note' && event.level === 'warning') warnings.push(event.text);
  };
  const request = { files: ['paris.yaml'], bundle: 'b.tar.gz', ignore: ['Swap', 'Sawp'] };
  assert.equal((await applyCluster(request, { ...at.context, report })).failed, []);
  assert.equal(warnings, [other]);
});

tests('workers with another host key, user, hostname or machine id hold only themselves', async () => {
  await using at = await hostScene('p1', 'p2', 'p3', 'p4', 'p5', 'p6');
  const { user, port } = at.host('p2');
  const ssh = { user, port, hostKey: `SHA256:${'A'.repeat(43)}` };
  await at.on('p3', ': >/etc/machine-id');
  await at.on('p4', 'echo p1-id >/etc/machine-id');
  await at.on('p6', 'hostname web6');
  // More hosts have more keys than sshd lets one try.
  const eve = { port: at.host('p5').port, hostKey: at.host('p5').hostKey, user: 'eve' };
  const others = { p2: { address: 'localhost', ssh }, p3: { address: '127.1' }, p4: { address: '127.0.1' } };
  const more = { p6: { address: '0x7f000001' }, p7: { address: '0x7f.1', ssh: eve } };
  await at.write({ ...P1, ...others, p5: { address: '2130706433' }, ...more });
  const result = await at.apply();
  const { failed, held, refused } = result;
  assert.equal([failed, held, done(result)], [[], [], ['p1 images', 'p1 init', 'p5 images', 'p5 join']]);
  const text = refused.map(({ host, reason }) => `${host}: ${reason}`).join('\n');
  assert.match(text, /^p2: localhost:\d+ has another host key than SHA256:A+:/m);
  assert.match(text, /^p3: its \/etc\/machine-id is empty: systemd-machine-id-setup on it sets it up$/m);
  assert.match(text, /^p4: it has the machine-id of p1, p1-id, and another hostname and host key, as a clone/m);
  assert.match(text, /^p6: its hostname is web6, so its Node would have that name: hostnamectl set-hostname p6$/m);
  assert.match(text, /^p7: 0x7f\.1:\d+ refuses the user eve: .* authorized_keys/m);
  assert.is(refused.length, 5);
});

tests('a host with too little memory and with swap is refused for both before anything is sent to it', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.on('p1', `echo 'MemTotal: 1024000 kB' >/run/meminfo && mount --bind /run/meminfo /proc/meminfo`);
  await at.on(
    'p1',
    `printf 'Filename\n/dev/sda2 partition 1 0 -2\n' >/run/swaps && mount --bind /run/swaps /proc/swaps`,
  );
  const { refused, failed } = await at.apply();
  const reason = 'it has 1000 MiB of memory, and a control-plane needs 1700';
  const swap = 'its swap is on: swapoff -a, and remove it from /etc/fstab; --ignore Swap passes this';
  const both = [reason, swap].map((one) => ({ host: 'p1', reason: one }));
  assert.equal([refused, failed], [both, []]);
  assert.is(await at.on('p1', `ls ${REMOTE}/*.partial ${REMOTE}/bundle 2>/dev/null | wc -l`), '0\n');
});

tests('a step that a preflight of its host stops has the reason, and what to do', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await writeFile(
    `${at.api}/fail-p1`,
    'warning: before\nerror PREFLIGHT_FAILED: this machine does not meet the requirements:\n  [FAIL] Swap: Swap is on\n  hint: --ignore TITLE ignores one check\n',
  );
  const { failed } = await at.apply();
  assert.is(
    failed[0]?.reason,
    'p1 says: this machine does not meet the requirements: [FAIL] Swap: Swap is on; hint: --ignore TITLE ignores one check',
  );
  assert.is(failureCode(failed), 'PREFLIGHT_FAILED');
});

/** What the result says is still to do. */
function left({ steps }: Pick<PlannedCluster, 'steps'>): readonly string[] {
  return steps.map(({ host, phase }) => `${host} ${phase}`);
}

tests('images that find no room on a worker, and a join that fails, hold only that one', async () => {
  await using at = await hostScene('p1', 'p2', 'p3');
  const workers = { p2: { address: 'localhost' }, p3: { address: '127.1' } };
  await at.write({ ...P1, ...workers });
  await writeFile(`${at.api}/fail-p2`, '');
  const joined = await at.apply();
  assert.equal(
    joined.failed.map(({ host, phase }) => `${host} ${phase}`),
    ['p2 join'],
  );
  assert.equal([left(joined), joined.held, done(joined).at(-1)], [['p2 join'], [], 'p3 join']);
  await rm(`${at.api}/fail-p2`);
  assert.equal(done(await at.apply()), ['p2 join']);

  await at.on('p1', `sed -i 's/v1.34.4/v1.34.3/g' ${at.api}/node-*`);
  await writeFile(`${at.api}/full-p2`, '');
  const upgraded = await at.apply();
  const reason = 'p2 says: /var/lib/containerd has 12 MiB free';
  assert.equal(upgraded.failed, [{ host: 'p2', phase: 'images', reason, code: 'NO_SPACE' }]);
  assert.equal(done(upgraded).toSorted(), ['p1 images', 'p1 upgrade', 'p3 images', 'p3 upgrade']);
  assert.equal(
    [left(upgraded), upgraded.held, upgraded.refused],
    [['p2 images', 'p2 drain', 'p2 upgrade', 'p2 uncordon'], [], []],
  );
  await rm(`${at.api}/full-p2`);
  assert.equal(done(await at.apply()), ['p2 images', 'p2 upgrade']);
});

tests('what curlew warns of on a host is shown to the operator, with the host', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await writeFile(
    `${at.api}/warn-p1`,
    'step\nwarning: v1beta3 flowschemas is in use, and Kubernetes 1.34 no longer has it\n',
  );
  const warnings: string[] = [];
  const report: Report = (event) => {
    if (event.type === 'note' && event.level === 'warning') warnings.push(event.text);
  };
  assert.equal(done(await at.apply({ report })), ['p1 images', 'p1 init']);
  assert.equal(warnings, ['p1: v1beta3 flowschemas is in use, and Kubernetes 1.34 no longer has it']);
});

tests('neither the token nor the kubeconfig is an argument of a program, here or on a host', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: { address: 'localhost' } });
  const ssh = at.at('ssh');
  const note = `printf '%s\\n' "$@" >>'${at.at('arguments')}'`;
  await writeFile(ssh, (await readFile(ssh, 'utf8')).replace('\n', `\n${note}\n`));
  // The scripts of the hosts note theirs.
  assert.equal((await at.apply()).failed, []);
  const all = `${await readFile(at.at('arguments'), 'utf8')}\n${(await at.calls()).join('\n')}`;
  assert.match(all, 'join-token');
  assert.not.match(all, /abcdef\.\d|secret-conf/);
  assert.match(await readFile(`${at.api}/input-p2`, 'utf8'), /abcdef\.\d/);
});

test.run();
