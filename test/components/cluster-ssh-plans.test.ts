/** Plans of a cluster over SSH: saved ones are applied only while file, bundle and machines are as they were; and what a host says of itself. */
import { readFile, writeFile } from 'node:fs/promises';
import { previewApply } from '../../src/app/cluster-apply.ts';
import { CONTAINERD_SOCKET } from '../../src/core/layout.ts';
import { FACTS_SCRIPT, readFacts, type HostFacts } from '../../src/machine/facts.ts';
import { REMOTE } from '../../src/machine/run/look.ts';
import type { AppliedCluster } from '../../src/machine/run/follow-plan.ts';
import * as assert from '../support/assert.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';

const test = suite('components/cluster-ssh-plans', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

const P1 = { p1: { role: 'control-plane' } };

function done({ done: steps }: AppliedCluster): readonly string[] {
  return steps.map(({ host, phase }) => `${host} ${phase}`);
}

tests('a saved plan is applied only while nothing has changed', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.plan({ bundle: 'b.tar.gz', out: 'paris.plan' });
  await at.write(P1, { installer: { kubernetes: { maxPodsPerNode: 9 } } });
  await assert.rejectsWith(at.apply({ plan: 'paris.plan' }), 'PLAN_CHANGED', /have changed since/);
  const shown = previewApply({ files: ['paris.yaml'], bundle: 'b.tar.gz', plan: 'paris.plan' }, at.context);
  await assert.rejectsWith(shown, 'PLAN_CHANGED', /have changed since/);
  await at.write(P1);
  assert.equal(done(await at.apply({ plan: 'paris.plan' })), ['p1 images', 'p1 init']);
});

tests('a saved plan ends where something comes up that it could not know', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write(P1);
  await at.apply();
  await at.on('p1', `rm -r ${REMOTE}/bundle`);
  await at.write({ ...P1, p2: { address: 'localhost' } });
  await at.plan({ bundle: 'b.tar.gz', out: 'paris.plan' });
  const applied = await at.apply({ plan: 'paris.plan' });
  assert.equal([done(applied), applied.steps], [['p1 images'], []]);
  assert.match(
    applied.held.map(({ host, reason }) => `${host}: ${reason}`).join(),
    'p2: paris.plan does not have its step',
  );
  assert.equal(done(await at.apply()), ['p2 images', 'p2 join']);
});

tests('a saved plan is not applied if a host goes away before its lock is taken', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: { address: 'localhost' } });
  await at.plan({ bundle: 'b.tar.gz', out: 'paris.plan' });
  const [ssh, locked] = [at.at('ssh'), at.at('locked')];
  const away = `case "$*" in *lock.guard*) touch '${locked}';; esac
if [ -e '${locked}' ]; then case "$*" in *localhost*) exit 255;; esac; fi`;
  await writeFile(ssh, (await readFile(ssh, 'utf8')).replace('\n', `\n${away}\n`));
  await assert.rejectsWith(at.apply({ plan: 'paris.plan' }), 'PLAN_CHANGED', /have changed since/);
  assert.equal(await at.calls(), ['']);
});

tests('a host says how much room there is for images, where its container runtime will have them', async () => {
  await using at = await hostScene('p1');
  const said = async (): Promise<HostFacts['imageDisk']> =>
    readFacts(await at.on('p1', `set -- ${REMOTE}; ${FACTS_SCRIPT}`))?.imageDisk;
  await at.on('p1', 'mkdir -p /var/lib/containerd && mount -t tmpfs -o size=8m none /var/lib/containerd');
  assert.equal(await said(), { path: '/var/lib/containerd', total: 8 << 20, free: 8 << 20 });
  await at.on('p1', 'mount -t tmpfs -o size=6m none /srv && mkdir -p /etc/containerd');
  await at.on(
    'p1',
    `printf 'version = 3\\nroot = "/srv/not yet" # ours\\n[x]\\nroot = "/other"\\n' >/etc/containerd/config.toml`,
  );
  assert.equal(await said(), { path: '/srv/not yet', total: 6 << 20, free: 6 << 20 });
});

tests('only a host on which containerd listens is asked whether it answers', async () => {
  await using at = await hostScene('p1');
  const ctr = `#!/bin/sh\necho "$*" >>/run/asked\n`;
  await at.on('p1', `printf '%s' '${ctr}' >/usr/local/bin/ctr && chmod 755 /usr/local/bin/ctr`);
  const said = async (): Promise<readonly unknown[]> => {
    const facts = readFacts(await at.on('p1', `set -- ${REMOTE}; ${FACTS_SCRIPT}`));
    return [facts?.imageDisk?.path, await at.on('p1', 'cat /run/asked 2>/dev/null || :')];
  };
  assert.equal(await said(), ['/var/lib/containerd', '']);
  const listen = `mkdir /run/containerd; '${process.execPath}' -e 'const at = process.argv[1];
require("node:net").createServer().listen(at, () => process.kill(process.pid, "SIGKILL"))' ${CONTAINERD_SOCKET} || :`;
  await at.on('p1', listen);
  assert.equal(await said(), [undefined, 'version\n']);
});

test.run();
