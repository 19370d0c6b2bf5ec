/** `curlew cluster plan` over SSH: real servers on hosts with files of their own; what kubeadm would do there is written by hand. */
import { writeFile } from 'node:fs/promises';
import { clusterPlan, type PlannedCluster } from '../../src/app/cluster-plan.ts';
import { REMOTE } from '../../src/app/machines/look.ts';
import { openSsh, type Ssh, type SshHost } from '../../src/ssh/ssh.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { missing, unless } from '../support/needs.ts';
import { SSHD, startSshd, type Sshd } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('components/cluster-ssh', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

interface Scene extends AsyncDisposable {
  readonly host: (name: string) => SshHost;
  /** Runs a script as root on a host. */
  readonly on: (name: string, script: string) => Promise<string>;
  /** Writes the file of the cluster: machines by name with what differs from a host that is as it should be. */
  readonly write: (machines: Readonly<Record<string, object>>, spec?: object) => Promise<void>;
  readonly plan: () => Promise<PlannedCluster>;
}

async function scene(...names: readonly string[]): Promise<Scene> {
  const box = await tree();
  const hosts = new Map<string, Sshd>();
  const clients = new Map<string, Ssh>();
  for (const name of names) {
    const server = await startSshd(box.at(name), { hostname: name });
    hosts.set(name, server);
    clients.set(name, openSsh({ PATH: process.env['PATH'], HOME: box.path }, { config: server.config }));
  }
  // The user's own configuration: a key for each port.
  const keys = [...hosts.keys()].map((name) => `IdentityFile "${box.at(name, 'client')}"`);
  await writeFile(box.at('config'), `${keys.join('\n')}\nIdentitiesOnly yes\n`);
  await writeFile(box.at('ssh'), `#!/bin/sh\nexec /usr/bin/ssh -F '${box.at('config')}' "$@"\n`, { mode: 0o755 });
  const server = (name: string): Sshd => {
    const found = hosts.get(name);
    if (found === undefined) throw new Error(`no host ${name}`);
    return found;
  };
  const context = {
    signal: never,
    report: noReport,
    env: { PATH: `${box.path}:${process.env['PATH']}`, HOME: box.path },
    cwd: box.path,
  };
  return {
    host: (name) => server(name).host,
    on: async (name, script) => {
      const run = clients.get(name)?.run(server(name).host, { script, limitMs: 20_000, signal: never });
      return (await run) ?? '';
    },
    write: async (machines, spec = {}) => {
      const list = Object.entries(machines).map(([name, more]) => {
        const { address, user, port, hostKey } = hosts.get(name)?.host ?? {
          address: '127.0.0.9',
          hostKey: `SHA256:${'A'.repeat(43)}`,
        };
        return { name, role: 'worker', address, ssh: { user, port, hostKey }, ...more };
      });
      await writeFile(
        box.at('paris.yaml'),
        documents(cluster('paris', {}, { kubernetes: { version: 'v1.34.4' }, machines: list, ...spec })),
      );
    },
    plan: async () => clusterPlan({ files: ['paris.yaml'] }, context),
    [Symbol.asyncDispose]: async () => {
      for (const one of clients.values()) await one[Symbol.asyncDispose]();
      for (const one of hosts.values()) await one[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

const P1 = { p1: { role: 'control-plane' } };

function reasons({ refused }: PlannedCluster): string {
  return refused.map(({ host = '', reason }) => `${host}: ${reason}`).join('\n');
}

tests('a plan of bare hosts is the first control plane, then the workers, and says what a host is', async () => {
  await using at = await scene('p1', 'p2');
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
  await using at = await scene('p1', 'p2', 'p3');
  await at.write({ ...P1, p4: {} });
  const down = await at.plan();
  assert.equal(down.refused, []);
  assert.equal(down.held, [{ host: 'p4', reason: 'it does not answer' }]);
  const ssh = { ...at.host('p2'), hostKey: `SHA256:${'A'.repeat(43)}` };
  const { user, port, hostKey } = ssh;
  await at.write({ ...P1, p2: { address: 'localhost', ssh: { user, port, hostKey } } });
  assert.match(
    reasons(await at.plan()),
    /p2: localhost:\d+ has another host key than SHA256:A+: if it was installed again/,
  );
  await at.on('p3', 'hostname p2; mkdir -p /etc/kubernetes/pki; echo other >/etc/kubernetes/pki/ca.crt');
  const { user: owner, port: door, hostKey: own } = at.host('p3');
  await at.write({ ...P1, p2: { address: 'localhost', ssh: { user: owner, port: door, hostKey: own } } });
  const other = await at.plan();
  assert.match(reasons(other), 'p2: it belongs to the cluster with the authority');
  assert.equal(other.steps, []);
});

tests(
  'nodes are those that a control plane lists, and a cluster that is as its file says has nothing to do',
  async () => {
    await using at = await scene('p1');
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
    await at.on(
      'p1',
      `cd ${REMOTE}/bundle && echo sha256:x >.digest && printf '#!/bin/sh\necho %s\n' "'${listed.replaceAll('"', String.raw`\"`)}'" >tasks.sh && chmod +x tasks.sh`,
    );
    const { steps, held, refused, hosts } = await at.plan();
    assert.equal({ steps, held, refused }, { steps: [], held: [], refused: [] });
    assert.is(hosts[0]?.kubelet, 'v1.34.4');
    await at.write(P1, { kubernetes: { version: 'v1.33.0' } });
    assert.match(reasons(await at.plan()), 'downgrade: the cluster has v1.34.4');
    await at.write(P1, { kubernetes: { version: 'v1.37.0' } });
    assert.not.equal((await at.plan()).refused, []);
  },
);

tests('a second control plane needs an address of all, and three of them one host each', async () => {
  await using at = await scene('p1');
  const control = { role: 'control-plane' };
  await at.write({ p1: control, p2: control, p3: control });
  const text = reasons(await at.plan());
  assert.match(text, ': 3 control planes need an address that reaches all of them: add spec.installer.kubernetes');
  assert.match(text, 'p3: p2 has the same address 127.0.0.9');
});

test.run();
