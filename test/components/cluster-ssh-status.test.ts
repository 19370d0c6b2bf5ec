/** `curlew cluster status` over SSH: real servers on hosts with files of their own; what a node says of itself is written by hand. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { clusterStatus, type ClusterStatus } from '../../src/app/cluster-status.ts';
import { status as command } from '../../src/cli/commands/cluster-status.ts';
import { REMOTE } from '../../src/machine/run/look.ts';
import * as assert from '../support/assert.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene, type HostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';

const test = suite('components/cluster-ssh-status', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

const P1 = { p1: { role: 'control-plane' } };

async function statusOf({ context }: HostScene): Promise<ClusterStatus> {
  return clusterStatus({ files: ['paris.yaml'] }, context);
}

async function says(at: HostScene, name: string, cluster: object): Promise<void> {
  await writeFile(`${at.api}/health-${name}`, JSON.stringify({ addons: [], cluster }));
}

tests('bare hosts are not in the cluster, and a cluster that was just made is healthy', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: { address: 'localhost' } });
  const bare = await statusOf(at);
  assert.is(bare.healthy, false);
  assert.is(bare.steps, 4);
  assert.equal(
    bare.hosts.map(({ name, answers, joined, ready }) => [name, answers, joined, ready]),
    [
      ['p1', true, false, undefined],
      ['p2', true, false, undefined],
    ],
  );
  assert.equal((await at.apply()).failed, []);
  const well = await statusOf(at);
  assert.equal([well.problems, well.held, well.refused, well.steps], [[], [], [], 0]);
  assert.equal(
    well.hosts.map(({ kubelet, ready, asked }) => [kubelet, ready, asked]),
    [
      ['v1.34.4', true, true],
      ['v1.34.4', true, true],
    ],
  );
  assert.is(well.healthy, true);
  assert.equal(well.certificate, { host: 'p1', name: 'pki/apiserver.crt', expires: '2090-01-01T00:00:00.000Z' });
  assert.is((await at.calls()).length, 2);
  const { user, hostKey } = at.host('p2');
  await at.write({ ...P1, p2: { address: 'localhost', ssh: { user, port: 1, hostKey } } });
  const away = await statusOf(at);
  assert.equal([away.hosts[1]?.ready, away.hosts[1]?.answers, away.healthy], [true, false, false]);
});

tests('machines are asked how they are at the same time as a control plane for the nodes', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.apply();
  await writeFile(`${at.api}/waits-for-status`, '');
  const found = await statusOf(at);
  assert.equal([found.healthy, found.held, found.problems], [true, [], []]);
});

tests('what a node says of add-ons, pods, certificates and disks makes the cluster unhealthy', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, p2: { address: 'localhost' } });
  await at.apply();
  const addon = { name: 'kube-system/bad', reason: 'Failed: its Deployment does not start' };
  const pod = { name: 'default/web', reason: 'ImagePullBackOff' };
  await says(at, 'p1', { addons: [addon], pods: [pod], morePods: 3, problems: ['pki/ca.crt is damaged'] });
  const expires = '2020-01-01T00:00:00.000Z';
  await says(at, 'p2', {
    // Only a control plane speaks for the cluster.
    addons: [{ name: 'eve', reason: 'is here' }],
    certificates: [
      { name: 'pki/kubelet-client-current.pem', expires },
      { name: 'pki/apiserver.crt', expires },
    ],
    images: { folder: '/var/lib/containerd', used: 91, limit: 85 },
  });
  const found = await statusOf(at);
  assert.equal([found.addons, found.pods, found.morePods], [[addon], [pod], 3]);
  assert.equal(found.certificate, { host: 'p2', name: 'pki/kubelet-client-current.pem', expires });
  assert.equal(found.problems, [
    { host: 'p1', reason: 'pki/ca.crt is damaged' },
    {
      host: 'p2',
      reason:
        'the certificate pki/kubelet-client-current.pem expired on 2020-01-01: make /etc/kubernetes/kubelet.conf again (kubernetes.io, Troubleshooting kubeadm, Kubelet client certificate rotation fails)',
    },
    { host: 'p2', reason: 'the certificate pki/apiserver.crt expired on 2020-01-01: curlew certificates renew' },
    { host: 'p2', reason: 'the disk of /var/lib/containerd is 91 % full: the kubelet removes images' },
  ]);
  assert.is(found.healthy, false);
  await rm(`${at.api}/health-p1`);
  await says(at, 'p2', { problems: Array.from({ length: 60 }, () => 'x'.repeat(9000)) });
  const { problems } = await statusOf(at);
  assert.equal([problems.length, problems[0]?.reason.length], [51, 400]);
  assert.equal(problems.at(-1), { host: 'p2', reason: '10 more problems' });
  await writeFile(`${at.api}/health-p2`, '{"cluster":{"certificates":[{"name":1}]}}');
  assert.equal((await statusOf(at)).problems, [{ host: 'p2', reason: 'it does not say how it is' }]);
});

tests(
  'a node that is not ready, a host that is away and an operator at work are shown with their reasons',
  async () => {
    await using at = await hostScene('p1');
    await at.write(P1);
    await at.apply();
    await at.on(
      'p1',
      `cd ${at.api} && sed 's/"ready":true/"ready":false/' node-p1 >node.new && mv node.new node-p1
echo "$(($(date +%s) + 50)) eve@laptop-1 1000000000" >${REMOTE}/lock`,
    );
    await says(at, 'p1', { nodes: [{ name: 'p1', reason: 'KubeletNotReady: no network' }] });
    await at.write({ ...P1, p4: {} });
    const found = await statusOf(at);
    assert.is(found.hosts[0]?.reason, 'KubeletNotReady: no network');
    assert.equal(found.hosts[0]?.lock, { owner: 'eve@laptop-1', since: '2001-09-09T01:46:40.000Z' });
    assert.not.equal(found.held, []);
    assert.is(found.healthy, false);
    const shown = command.render(found, { request: { files: [] }, options: {} } as never, {} as never);
    assert.match(shown, 'p1  control-plane  v1.34.4  not ready: KubeletNotReady: no network');
    assert.match(shown, 'locked: p1: by eve@laptop-1 since 2001-09-09T01:46:40.000Z');
    assert.match(shown, /^p4 +worker +not in the cluster, it does not answer: /m);
    assert.match(shown, /^paris is not as it should be$/m);
    await at.on('p1', `echo "1 eve@laptop-1 1000000000" >${REMOTE}/lock`);
    assert.is((await statusOf(at)).hosts[0]?.lock, undefined);
  },
);

tests('a lost quorum is named, nothing is said of nodes that nobody knows, and the cluster is asked once', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.apply();
  await at.write({ ...P1, p2: P1.p1, p3: P1.p1 });
  const lost = 'etcd has lost its quorum: 1 of 3 members answers, and p2 and p3 do not';
  await writeFile(`${at.api}/no-etcd`, `error CLUSTER_FAILED: ${lost}\n`);
  await rm(`${at.api}/asked`);
  const found = await statusOf(at);
  assert.is(found.healthy, false);
  const shown = [command.render(found, { request: { files: [] }, options: {} } as never, {} as never)]
    .flat()
    .join('\n');
  assert.match(shown, lost);
  for (const name of ['p1', 'p2', 'p3']) {
    assert.match(
      shown,
      new RegExp(`^${name} +control-plane .*not known: the nodes of the cluster could not be listed`, 'm'),
    );
  }
  assert.not.match(shown, 'not in the cluster');
  assert.is(await readFile(`${at.api}/asked`, 'utf8'), 'p1\n');
});

test.run();
