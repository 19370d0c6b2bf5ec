/** `curlew cluster plan` and `cluster apply` over SSH: real servers on hosts with files of their own; what kubeadm would do there is written by hand. */
import { writeFileSync } from 'node:fs';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { AppliedCluster } from '../../src/machine/run/follow-plan.ts';
import type { Report } from '../../src/core/events.ts';
import type { PlannedCluster } from '../../src/machine/run/planned-cluster.ts';
import { REMOTE } from '../../src/machine/run/look.ts';
import { inspect } from '../../src/app/inspect.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';

const test = suite('components/cluster-ssh', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

const P1 = { p1: { role: 'control-plane' } };

function reasons({ refused }: PlannedCluster): string {
  return refused.map(({ host = '', reason }) => `${host}: ${reason}`).join('\n');
}

tests('a plan of bare hosts is the first control plane, then the workers, and says what a host is', async () => {
  await using at = await hostScene('p1', 'p2');
  // Hosts share the address of this machine.
  await at.write({ ...P1, p2: { address: 'localhost' } });
  const { steps, held, refused, hosts } = await at.plan();
  assert.equal(refused, []);
  assert.equal(held, []);
  assert.equal(
    steps.map(({ host, phase, waits }) => `${host} ${phase} after ${waits.join()}`),
    [
      'p1 images after ',
      'p1 init after images p1 v1.34.4',
      'p2 images after init p1 v1.34.4',
      'p2 join after images p2 v1.34.4',
    ],
  );
  assert.match(hosts[0]?.text ?? '', /^\S+ \S+, \S+, \d+ MiB$/);
});

tests('a host that is down holds what needs it, and one with another key, name or cluster is refused', async () => {
  await using at = await hostScene('p1', 'p2', 'p3');
  await at.write({ ...P1, p4: {} });
  const down = await at.plan();
  assert.equal(down.refused, []);
  assert.equal(down.held, [{ host: 'p4', reason: 'it does not answer' }]);
  const ssh = { ...at.host('p2'), hostKey: `SHA256:${'A'.repeat(43)}` };
  const { user, port, hostKey } = ssh;
  await at.write({ ...P1, p2: { address: 'localhost', ssh: { user, port, hostKey } } });
  assert.match(
    reasons(await at.plan()),
    /p2: localhost:\d+ has another host key than SHA256:A+: if it was installed again, .*: ssh-keyscan -t ed25519 -p \d+ localhost /,
  );
  await at.on('p3', 'hostname p2; mkdir -p /etc/kubernetes/pki; echo other >/etc/kubernetes/pki/ca.crt');
  const { user: owner, port: door, hostKey: own } = at.host('p3');
  await at.write({ ...P1, p2: { address: 'localhost', ssh: { user: owner, port: door, hostKey: own } } });
  const other = await at.plan();
  assert.match(reasons(other), 'p2: it belongs to the cluster with the authority');
  assert.equal(
    other.steps.map(({ host, phase }) => `${host} ${phase}`),
    ['p1 images', 'p1 init'],
  );
});

tests(
  'nodes are those that a control plane lists, and a cluster that is as its file says has nothing to do',
  async () => {
    await using at = await hostScene('p1', 'p2');
    await at.write(P1);
    const node = {
      name: 'p1',
      joined: true,
      answers: true,
      ready: true,
      role: 'control-plane',
      kubelet: 'v1.34.4',
      apiServer: 'v1.34.4',
    };
    const listed = JSON.stringify({ machines: [node], members: [{ name: 'p1', healthy: true }] });
    await at.on(
      'p1',
      `mkdir -p /etc/kubernetes/pki ${REMOTE}/bundle && cd ${REMOTE}
    echo ca >/etc/kubernetes/pki/ca.crt; touch /etc/kubernetes/admin.conf; echo paris >cluster`,
    );
    // curlew is not there to be asked.
    assert.equal(
      (await at.plan()).steps.map(({ host, phase }) => `${host} ${phase}`),
      ['p1 images'],
    );
    // A cluster that is adopted has kubectl there.
    const meta = { name: 'p1', labels: { 'node-role.kubernetes.io/control-plane': '' } };
    const conditions = [{ type: 'Ready', status: 'True' }];
    const status = { conditions, nodeInfo: { kubeletVersion: 'v1.34.4' } };
    await writeFile(`${at.api}/nodes`, JSON.stringify({ items: [{ metadata: meta, status }] }, null, 2));
    const etcd = { spec: { nodeName: 'p1' }, status: { conditions } };
    await writeFile(`${at.api}/pods`, JSON.stringify({ items: [etcd] }, null, 2));
    await at.on(
      'p1',
      `printf '#!/bin/sh\ncase "$KUBECONFIG $*" in "/etc/kubernetes/admin.conf get nodes -o json") cat "${at.api}/nodes";; *" get pods "*) cat "${at.api}/pods";; *) exit 1;; esac\n' >/usr/local/bin/kubectl && chmod +x /usr/local/bin/kubectl`,
    );
    const adopted = await at.plan();
    assert.equal([adopted.steps, adopted.held, adopted.refused], [[], [], []]);
    assert.is(adopted.hosts[0]?.kubelet, 'v1.34.4');
    // Whoever wants to change something brings curlew there first.
    assert.equal(
      (await at.plan({ bundle: 'b.tar.gz' })).steps.map(({ host, phase }) => `${host} ${phase}`),
      ['p1 images'],
    );
    await at.on(
      'p1',
      `cd ${REMOTE}/bundle && echo sha256:x >.digest && printf '#!/bin/sh\necho %s\n' "'${listed.replaceAll('"', String.raw`\"`)}'" >tasks.sh && chmod +x tasks.sh`,
    );
    const { steps, held, refused, hosts } = await at.plan();
    assert.equal({ steps, held, refused }, { steps: [], held: [], refused: [] });
    assert.is(hosts[0]?.kubelet, 'v1.34.4');
    await at.write(P1, { kubernetes: { version: 'v1.33.0' } });
    assert.match(reasons(await at.plan()), 'downgrade: the cluster has v1.34.4');
    await at.write({ ...P1, p2: { address: 'localhost' } }, { kubernetes: { version: 'v1.35.0' } });
    assert.match(reasons(await at.plan()), 'p2: it would join with v1.34.4, and the bundle has v1.35.0: let it join');
    await at.write(P1, { kubernetes: { version: 'v1.37.0' } });
    assert.not.equal((await at.plan()).refused, []);
  },
);

tests('a second control plane needs an address of all, and three of them one host each', async () => {
  await using at = await hostScene('p1');
  const control = { role: 'control-plane' };
  await at.write({ p1: control, p2: control, p3: control });
  const text = reasons(await at.plan());
  assert.match(text, ': 3 control planes need an address that reaches all of them: add spec.installer.kubernetes');
  assert.match(text, 'p3: p2 has the same address 127.0.0.9');
});

function done({ done: steps }: AppliedCluster): readonly string[] {
  return steps.map(({ host, phase }) => `${host} ${phase}`);
}

tests('bare hosts become a cluster by one command, and a second one changes nothing', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write(
    {
      ...P1,
      p2: {
        address: 'localhost',
        labels: { disk: 'ssd' },
        taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }],
      },
    },
    { installer: { kubernetes: { maxPodsPerNode: 50, joinConfiguration: 'x: 2' }, containerd: { x: 1 } } },
  );
  const applied = await at.apply();
  assert.equal(applied.failed, []);
  assert.equal(done(applied), ['p1 images', 'p1 init', 'p2 images', 'p2 join']);
  assert.equal(applied.steps, []);
  assert.equal(await at.calls(), [
    'install.sh p1 airgap installer-spec-file=../input',
    'join.sh p2 airgap installer-spec-file=../input labels=disk=ssd',
  ]);
  assert.match(await readFile(`${at.api}/input-p1`, 'utf8'), '"maxPodsPerNode":50');
  const joined = JSON.parse(await readFile(`${at.api}/input-p2`, 'utf8')).spec;
  assert.is(joined.kubernetes.nodeTaints, 'gpu=yes:NoSchedule');
  // The rest is what its cluster has: kubeadm reads it there.
  assert.equal([joined.kubernetes.joinConfiguration, joined.kubernetes.maxPodsPerNode], ['x: 2', undefined]);
  assert.is(joined.containerd.x, 1);
  assert.is(await readFile(at.at('paris.conf'), 'utf8'), 'secret-conf\n');
  assert.is((await stat(at.at('paris.conf'))).mode & 0o777, 0o600);
  // No token, no settings and no lock is left on a host.
  for (const name of ['p1', 'p2']) {
    assert.is(await at.on(name, `cd ${REMOTE} && stat -c %a . && ls`), '700\nbundle\ncluster\nid\n' + LEFT[name]);
  }
  const again = await at.apply();
  assert.equal([again.done, again.steps, again.held, again.refused], [[], [], [], []]);
  assert.is((await at.calls()).length, 2);
});

const LEFT: Readonly<Record<string, string>> = {
  p1: 'lock.guard\nlog\nname\npid\nrequest\nrun.lock\nsettings\nstatus\nunpack.lock\n',
  p2: 'log\nname\npid\nrequest\nrun.lock\nsettings\nstatus\nunpack.lock\n',
};

tests('a run continues when the connection is cut, and when its operator is gone another one follows it', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await writeFile(`${at.api}/hold-p1`, '');
  const operator = new AbortController();
  const first = at.apply({ signal: operator.signal });
  await appears(`${at.api}/began-p1`);
  at.cut('p1');
  operator.abort(new Error('gone'));
  assert.match(String(await first.catch((error: unknown) => error)), 'gone');
  const plan = await at.plan({ bundle: 'b.tar.gz' });
  assert.equal(
    plan.steps.map(({ phase }) => phase),
    ['init'],
  );
  const started = at.at('started');
  const report: Report = (event) => {
    if (event.type === 'step-log') writeFileSync(started, event.text);
  };
  const second = at.apply({ report });
  await appears(started);
  await rm(`${at.api}/hold-p1`);
  assert.equal(done(await second), ['p1 init']);
  assert.is((await at.calls()).length, 1);
});

tests(
  'a script that fails ends the command with its last line, and the same command begins with it again',
  async () => {
    await using at = await hostScene('p1');
    await at.write(P1);
    await writeFile(`${at.api}/fail-p1`, '');
    const failed = await at.apply();
    assert.equal(failed.failed, [
      { host: 'p1', phase: 'init', reason: 'it failed with status 3: no such luck', code: 'PROGRAM_FAILED' },
    ]);
    await rm(`${at.api}/fail-p1`);
    // The next run does not even begin at once: the end of this one is not taken for its end.
    const ssh = at.at('ssh');
    const refuse = `case "$*" in *'setsid flock'*) if mkdir '${at.at('refused')}'; then exit 255; fi;; esac`;
    await writeFile(ssh, (await readFile(ssh, 'utf8')).replace('\n', `\n${refuse}\n`));
    // kubeadm has written this before it failed.
    await at.on(
      'p1',
      'cd /etc && mkdir -p kubernetes/pki kubernetes/curlew && cd kubernetes && touch admin.conf curlew/attempt && echo authority >pki/ca.crt',
    );
    assert.equal(
      (await at.plan({ bundle: 'b.tar.gz' })).steps.map(({ phase }) => phase),
      ['init'],
    );
    await rm(`${at.api}/calls`);
    assert.equal(done(await at.apply()), ['p1 init']);
    assert.is((await at.calls()).length, 1);
  },
);

tests('what fails once its node is there is done again by the same command', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: { address: 'localhost' } });
  for (const [name, phase] of [
    ['p1', 'init'],
    ['p2', 'join'],
  ] as const) {
    await writeFile(`${at.api}/fail-late-${name}`, '');
    assert.equal((await at.apply()).failed, [
      { host: name, phase, reason: 'it failed with status 4: an add-on has failed', code: 'PROGRAM_FAILED' },
    ]);
    const { steps } = await at.plan({ bundle: 'b.tar.gz' });
    assert.equal(
      [steps[0]?.host, steps[0]?.phase, steps.some((step) => step.host === name && step.phase === 'images')],
      [name, phase, false],
    );
    await rm(`${at.api}/fail-late-${name}`);
  }
  assert.equal(done(await at.apply()), ['p2 join']);
  assert.equal((await at.plan({ bundle: 'b.tar.gz' })).steps, []);
  assert.equal(
    (await at.calls()).map((line) => line.split(' ').slice(0, 2).join(' ')),
    ['install.sh p1', 'install.sh p1', 'join.sh p2', 'join.sh p2'],
  );
});

tests('a removal is followed also at its next phase, and one control plane removes nodes one by one', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.apply();
  const node = async (name: string, leaving: boolean): Promise<void> => {
    const versions = { role: 'worker', kubelet: 'v1.34.4' };
    const text = JSON.stringify({ name, joined: true, answers: false, ready: true, leaving, ...versions });
    await writeFile(`${at.api}/node-${name}`, text);
  };
  await node('p2', false);
  await writeFile(`${at.api}/hold-p2`, '');
  const operator = new AbortController();
  const first = at.apply({ signal: operator.signal });
  await appears(`${at.api}/began-p2`);
  operator.abort(new Error('gone'));
  assert.match(String(await first.catch((error: unknown) => error)), 'gone');
  await node('p2', true);
  await node('p3', true);
  await node('p4', false);
  const started = at.at('started');
  await rm(`${at.api}/began-p2`);
  const report: Report = (event) => {
    if (event.type === 'step-log') writeFileSync(started, event.text);
  };
  const second = at.apply({ report });
  await appears(started);
  await rm(`${at.api}/hold-p2`);
  const { failed, steps } = await second;
  assert.equal([failed, steps], [[], []]);
  assert.equal((await at.calls()).slice(1), ['node remove p2', 'node remove p3', 'node remove p4']);
});

tests('a bundle whose packages went with a reset by hand is sent again', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  const { digest } = await inspect({ path: 'b.tar.gz' }, { signal: never, report: noReport, env: {}, cwd: at.at() });
  await at.on('p1', `mkdir -p ${REMOTE}/bundle/addons && echo ${digest} >${REMOTE}/bundle/.digest`);
  const { steps } = await at.plan({ bundle: 'b.tar.gz' });
  assert.equal(
    steps.map(({ phase }) => phase),
    ['images', 'init'],
  );
});

tests('what was done is in the result although the kubeconfig cannot be kept', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  const ssh = at.at('ssh');
  const refuse = `case "$*" in *'cat /etc/kubernetes/admin.conf'*) exit 1;; esac`;
  await writeFile(ssh, (await readFile(ssh, 'utf8')).replace('\n', `\n${refuse}\n`));
  const notes: string[] = [];
  const report: Report = (event) => {
    if (event.type === 'note') notes.push(event.text);
  };
  assert.equal(done(await at.apply({ report })), ['p1 images', 'p1 init']);
  assert.match(notes.join('\n'), /^the kubeconfig is not in .*paris\.conf: cannot run a program on p1: /m);
});

tests('a host without room for the bundle is refused', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.on('p1', 'mount -t tmpfs -o size=8m none /var/lib');
  assert.match(
    reasons(await at.plan({ bundle: 'b.tar.gz' })),
    /^p1: it has [78] MiB free in \/var\/lib, and the bundle needs 1025: make room/,
  );
});

tests('an operator who is there keeps others out, and one who is gone does not', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  const lock = (until: string): Promise<string> =>
    at.on('p1', `mkdir -p ${REMOTE} && echo "$(($(date +%s) + ${until})) eve@laptop-1" >${REMOTE}/lock`);
  await lock('60');
  await assert.rejectsWith(at.apply(), 'BUSY', /cannot apply paris: eve@laptop-1 is doing it now, by its lock on p1/);
  await lock('-1');
  assert.equal(done(await at.apply()), ['p1 images', 'p1 init']);
});

tests('a bundle that has arrived in part is completed, and one that was damaged is sent again', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  const { digest } = await inspect({ path: 'b.tar.gz' }, { signal: never, report: noReport, env: {}, cwd: at.at() });
  const partial = `${REMOTE}/${digest.slice(7)}.partial`;
  const size = (await stat(at.at('b.tar.gz'))).size;
  await at.on('p1', `mkdir -p ${REMOTE} && head -c ${size} /dev/zero >${partial}`);
  const damaged = await at.apply();
  assert.match(damaged.failed[0]?.reason ?? '', 'the bundle was damaged on its way');
  await at.on('p1', `head -c 100 ${at.at('b.tar.gz')} >${partial}`);
  assert.equal(done(await at.apply()), ['p1 images', 'p1 init']);
});

tests('a worker with the files of a control plane does not speak for the cluster', async () => {
  await using at = await hostScene('p1', 'p2');
  const worker = { p2: { address: 'localhost' } };
  await at.write({ ...worker, ...P1 });
  assert.equal((await at.apply()).failed, []);
  await at.on(
    'p2',
    `touch /etc/kubernetes/admin.conf; cd ${REMOTE}/bundle && printf '#!/bin/sh\necho "{\\"machines\\":[]}"\n' >tasks.sh`,
  );
  const { steps, held, refused } = await at.plan({ bundle: 'b.tar.gz' });
  assert.equal({ steps, held, refused }, { steps: [], held: [], refused: [] });
  await at.on('p2', `echo eve >/etc/kubernetes/pki/ca.crt`);
  assert.match(reasons(await at.plan()), /^p2: it belongs to the cluster with the authority/);
});

test.run();
