/** Clusters whose machines are a provider's; what SSH says of them has its own tests. */
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { deleteCluster } from '../../src/app/cluster-delete.ts';
import { clusterPlan } from '../../src/app/cluster-plan.ts';
import { clusterStatus } from '../../src/app/cluster-status.ts';
import type { PlannedCluster } from '../../src/machine/run/planned-cluster.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/cluster-provider');

const LAB = { provider: { exec: 'lab', config: { size: 'small' } } };
const P1 = { name: 'p1', role: 'control-plane', ...LAB };
const P2 = { name: 'p2', role: 'worker', ...LAB };
/** Nothing answers there. */
const AWAY = { address: '127.0.0.1', ssh: { port: 1, hostKey: `SHA256:${'A'.repeat(43)}` } };

interface Scene extends Tree {
  readonly plan: (...machines: readonly object[]) => Promise<PlannedCluster>;
  readonly lists: (...machines: readonly object[]) => Promise<void>;
}

async function scene(providers: object = { lab: 'lab' }): Promise<Scene> {
  const box = await tree({
    '.config/curlew/config.json': JSON.stringify({ providers }),
    '.config/curlew/lab': '#!/bin/sh\ncat >"$HOME/asked"; cat "$HOME/list"\n',
  });
  const context = {
    signal: never,
    report: noReport,
    env: { HOME: box.path, PATH: `${box.path}:${process.env['PATH']}` },
    cwd: box.path,
  };
  const lists = async (...machines: readonly object[]): Promise<void> =>
    writeFile(box.at('list'), JSON.stringify({ apiVersion: 'provider.curlew.dev/v1', machines }));
  await lists();
  return {
    ...box,
    lists,
    plan: async (...machines) => {
      const spec = { kubernetes: { version: 'v1.34.4' }, machines };
      await writeFile(box.at('paris.yaml'), documents(cluster('paris', {}, spec)));
      return clusterPlan({ files: ['paris.yaml'] }, context);
    },
  };
}

function steps({ steps: left }: PlannedCluster): readonly string[] {
  return left.map(({ host, phase }) => `${host} ${phase}`);
}

function reasons({ held, refused }: PlannedCluster): readonly string[] {
  return [...held, ...refused].map(({ host, reason }) => (host === undefined ? reason : `${host}: ${reason}`));
}

test('machines of a new cluster are created in its order, and the provider gets what the file has for it', async () => {
  await using at = await scene();
  const plan = await at.plan(P1, P2);
  assert.equal(steps(plan), ['p1 create', 'p1 images', 'p1 init', 'p2 create', 'p2 images', 'p2 join']);
  assert.equal(reasons(plan), []);
  const machine = (name: string, role: string): object => ({
    uid: `paris/${name}`,
    name,
    role,
    config: { size: 'small' },
  });
  assert.equal(JSON.parse(await readFile(at.at('asked'), 'utf8')), {
    apiVersion: 'provider.curlew.dev/v1',
    command: 'list',
    cluster: 'paris',
    machines: [machine('p1', 'control-plane'), machine('p2', 'worker')],
  });
});

test('a creation that has begun is continued, and a machine that is there and silent is not created again', async () => {
  await using at = await scene();
  await at.lists({ uid: 'paris/p1' });
  assert.equal(steps(await at.plan(P1)), ['p1 create', 'p1 images', 'p1 init']);
  await at.lists({ uid: 'paris/p1', ...AWAY });
  const plan = await at.plan(P1, P2);
  assert.equal(steps(plan), []);
  assert.equal(reasons(plan), ['p1: it does not answer, and could be part of the cluster already']);
});

test('nothing is created while a control plane of a cluster that was made is missing', async () => {
  await using at = await scene();
  await writeFile(at.at('paris.conf'), 'apiVersion: v1\nkind: Config\n');
  const plan = await at.plan(P1, P2);
  assert.equal(steps(plan), []);
  assert.match(
    reasons(plan).join('\n'),
    /^its providers do not have all control planes, and by \S+paris\.conf the cluster was made before: /,
  );
});

test('a list that fails creates nothing, and says why', async () => {
  await using at = await scene();
  await writeFile(at.at('list'), 'Error: login first');
  const plan = await at.plan(P1, P2);
  assert.equal(steps(plan), []);
  const why = 'list by the provider lab: its answer is not one of provider.curlew.dev/v1: not JSON';
  assert.equal(reasons(plan), [
    why,
    'p1: it does not answer, and could be part of the cluster already',
    'p2: it does not answer',
  ]);
  assert.equal(
    plan.hosts.map(({ answers, text }) => [answers, text]),
    [
      [false, why],
      [false, why],
    ],
  );
});

test('a machine that only the provider has waits for a person, also in the status', async () => {
  await using at = await scene();
  await at.lists({ uid: 'paris/p1', ...AWAY }, { uid: 'paris/p9' }, { uid: 'berlin/p7' });
  const extra = 'the provider lab has it, and the file does not: curlew machine remove deletes it';
  assert.equal((await at.plan(P1)).held[0], { host: 'p9', reason: extra });
  const context = { signal: never, report: noReport, env: { HOME: at.path, PATH: process.env['PATH'] }, cwd: at.path };
  const status = await clusterStatus({ files: ['paris.yaml'] }, context);
  assert.equal([status.held[0], status.healthy], [{ host: 'p9', reason: extra }, false]);
  // The file has this name elsewhere: what a removal of it would delete is not this one.
  await at.lists({ uid: 'paris/p2' });
  const plan = await at.plan(
    { ...P1, provider: undefined, ...AWAY },
    { ...P2, provider: undefined, ...AWAY },
    { ...P1, name: 'p3' },
  );
  assert.equal(plan.held[0], { host: 'p2', reason: 'the provider lab has it, and the file does not: delete it there' });
});

test('a deletion names the machines that a provider does not have', async () => {
  await using at = await scene();
  await at.plan(P1, P2);
  const context = { signal: never, report: noReport, env: { HOME: at.path, PATH: process.env['PATH'] }, cwd: at.path };
  const deleted = await deleteCluster({ files: ['paris.yaml'], confirm: 'paris' }, context);
  const reason = 'the provider lab does not have it';
  assert.equal([deleted.left, deleted.absent], [[], ['p1', 'p2'].map((host) => ({ host, reason }))]);
});

test('a machine that refuses the connection is deleted by its provider, and without one it is named as left', async () => {
  await using at = await scene();
  await writeFile(
    at.at('.config/curlew/lab'),
    `#!/bin/sh
input=$(cat)
case $1 in
  delete)
    echo '{"apiVersion":"provider.curlew.dev/v1","machines":[]}' >"$HOME/list"
    echo "$input" | sed 's/.*"uid":"\\([^"]*\\)".*/{"apiVersion":"provider.curlew.dev\\/v1","machine":{"uid":"\\1"}}/';;
  *) cat "$HOME/list";;
esac
`,
  );
  await writeFile(at.at('ssh'), `#!/bin/sh\necho 'ops@127.0.0.1: Permission denied (publickey).' >&2; exit 255\n`);
  await chmod(at.at('ssh'), 0o755);
  const context = {
    signal: never,
    report: noReport,
    env: { HOME: at.path, PATH: `${at.path}:${process.env['PATH']}` },
    cwd: at.path,
  };
  await at.lists({ uid: 'paris/p1', ...AWAY });
  await at.plan(P1, { name: 'p2', role: 'worker', ...AWAY });
  const request = { files: ['paris.yaml'], confirm: 'paris' };
  const kept = await deleteCluster(request, context);
  assert.equal([kept.done, kept.left], [[], ['p1']]);
  assert.match(
    kept.unreached.map(({ host, reason }) => `${host}: ${reason}`).join('\n'),
    /^p2: \S+ refuses the user: .*\np1: \S+ refuses the user: .*, and no control plane can be asked for nodes/,
  );
  const deleted = await deleteCluster({ ...request, skipUnreachable: true }, context);
  assert.equal([deleted.done, deleted.failed, deleted.left], [['p1'], [], []]);
  assert.equal(
    deleted.unreached.map(({ host }) => host),
    ['p2', 'p1'],
  );
  // With no other machine, too: nodes that the file does not have cannot be seen.
  await at.lists({ uid: 'paris/p1', ...AWAY });
  await at.plan(P1);
  const alone = await deleteCluster(request, context);
  assert.equal([alone.done, alone.left], [[], ['p1']]);
  assert.match(
    alone.unreached.map(({ host, reason }) => `${host}: ${reason}`).join('\n'),
    /^p1: \S+ refuses the user: .*, and no control plane can be asked for nodes/,
  );
  assert.equal((await deleteCluster({ ...request, skipUnreachable: true }, context)).done, ['p1']);
});

test('an account that a host refuses is named with the host, and with what to do', async () => {
  await using at = await scene();
  const asked = async (user: string | undefined, script: string): Promise<string> => {
    await writeFile(at.at('ssh'), `#!/bin/sh\n${script}\n`);
    await chmod(at.at('ssh'), 0o755);
    const ssh = { ...AWAY.ssh, user };
    const { refused } = await at.plan({ ...P1, provider: undefined, ...AWAY, ssh });
    return refused.map(({ host, reason }) => `${host}: ${reason}`).join('\n');
  };
  const denied = `echo "$2@127.0.0.1: Permission denied (publickey)." >&2; exit 255`;
  assert.is(
    await asked('ops', denied),
    'p1: 127.0.0.1:1 refuses the user ops: ops@127.0.0.1: Permission denied (publickey).: name a user who may log in as ssh.user of the machine, or add your key to its authorized_keys; this shows the keys that are tried: ssh -v -p 1 ops@127.0.0.1',
  );
  assert.match(await asked(undefined, denied), /ssh -v -p 1 127\.0\.0\.1$/);
  assert.is(
    await asked('root', `echo 'Please login as the user "ubuntu" rather than the user "root".'; exit 142`),
    'p1: 127.0.0.1:1 refuses the user root: Please login as the user "ubuntu" rather than the user "root": name that one as ssh.user of the machine',
  );
  assert.match(
    await asked('ops', `echo 'sudo: a password is required' >&2; exit 253`),
    /^p1: 127\.0\.0\.1:1 refuses sudo to the user ops: /,
  );
});

test('a provider is named by the operator, and says alone how its machines are reached', async () => {
  await using at = await scene({ cloud: '/opt/cloud' });
  await assert.rejectsWith(
    at.plan(P1),
    'SPEC_INVALID',
    /^cannot plan paris: the provider lab of the machine p1 is not known here$/,
  );
  await assert.rejectsWith(
    at.plan({ ...P1, ...AWAY }),
    'SPEC_INVALID',
    /^cannot plan paris: the machine p1 has a provider, and an address or ssh$/,
  );
  await assert.rejectsWith(at.plan({ ...P1, provider: { exec: '../lab' } }), 'SPEC_INVALID');
  await assert.rejectsWith(at.plan({ ...P1, provider: { exec: 'lab', program: '/bin/sh' } }), 'SPEC_INVALID');
});

test('a configuration in another file names the providers', async () => {
  await using at = await scene({});
  await assert.rejectsWith(at.plan(P1), 'SPEC_INVALID', /the provider lab of the machine p1 is not known here$/);
  await writeFile(at.at('own.json'), JSON.stringify({ providers: { lab: at.at('.config/curlew/lab') } }));
  const context = { signal: never, report: noReport, env: { HOME: at.path, PATH: process.env['PATH'] }, cwd: at.path };
  assert.equal(steps(await clusterPlan({ files: ['paris.yaml'], config: 'own.json' }, context))[0], 'p1 create');
});

test('update: Replace is for workers of a provider', async () => {
  await using at = await scene();
  const update = 'Replace';
  const bare = { ...P2, provider: undefined, ...AWAY, update };
  await assert.rejectsWith(at.plan(P1, bare), 'SPEC_INVALID', /the machine p2 has update: Replace and no provider$/);
  const control = at.plan({ ...P1, update });
  await assert.rejectsWith(control, 'SPEC_INVALID', /the control plane p1 gets its versions in place$/);
  assert.is((await at.plan(P1, { ...P2, update })).steps.length, 6);
});

test('what a provider says as a host key, and is none, is refused', async () => {
  await using at = await scene();
  await at.lists({ uid: 'paris/p1', ...AWAY, ssh: { hostKey: 'none' } });
  assert.match(reasons(await at.plan(P1)).join('\n'), /machines\[0\]\.ssh\.hostKey: .*SHA256:… or a type with a key/);
});

test.run();
