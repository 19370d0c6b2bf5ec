/** The order in which machines of a cluster are reset, and what is said of the others. `ssh` is a script that plays the hosts. */
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { deleteCluster, type ClusterDeletion } from '../../src/app/cluster-delete.ts';
import { command } from '../../src/cli/commands/cluster-delete.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/cluster-delete');

/** A host answers while it has a file of facts. As the hook of Kubernetes, a control plane does not leave others by itself. */
const SSH = `#!/bin/sh
while [ $# -gt 2 ]; do shift; done
facts=$HOME/hosts/$1
if [ ! -e "$facts" ]; then echo "ssh: connect to host $1 port 22: No route to host" >&2; exit 255; fi
case $2 in
  *machineId*) cat "$facts";;
  *'--json'*) cat "$HOME/nodes";;
  *tasks.sh*reset*)
    case $2 in *KUBERNETES_DELETE_CLUSTER=1*) whole=yes;; *) whole=;; esac
    echo "$1" >>"$HOME/resets"
    if [ -e "$HOME/fails-$1" ]; then echo 'a hook has failed' >&2; exit 20; fi
    others=$(grep -c '"control-plane"' "$HOME/nodes")
    case $1 in c*) if [ "$others" -gt 1 ] && [ -z "$whole" ]; then echo 'still part of the cluster' >&2; exit 1; fi;; esac
    printf 'hostname=%s\nmachineId=%s\narch=x86_64\n' "$1" "$1" >"$facts";;
esac
`;

interface Scene extends Tree {
  readonly remove: (skipUnreachable?: boolean) => Promise<ClusterDeletion>;
  /** Machines that were reset, in this order. */
  readonly resets: () => Promise<readonly string[]>;
}

/** Machines of the file, those of them that answer, and the Nodes. Control planes begin with `c`. */
async function scene(
  machines: readonly string[],
  { silent = [], nodes = machines }: { readonly silent?: readonly string[]; readonly nodes?: readonly string[] } = {},
): Promise<Scene> {
  const box = await tree({ ssh: SSH });
  await chmod(box.at('ssh'), 0o755);
  await mkdir(box.at('hosts'));
  const roleOf = (name: string): string => (name.startsWith('c') ? 'control-plane' : 'worker');
  const list = machines.map((name) => {
    return { name, role: roleOf(name), address: name, ssh: { hostKey: `SHA256:${'A'.repeat(43)}` } };
  });
  const installer = { kubernetes: { loadBalancerAddress: '10.0.0.9:6443' } };
  const spec = { kubernetes: { version: 'v1.34.4' }, machines: list, installer };
  await writeFile(box.at('paris.yaml'), documents(cluster('paris', {}, spec)));
  for (const name of machines.filter((one) => !silent.includes(one))) {
    const part = `part=kubelet.conf\nauthority=${'a'.repeat(64)}\ncluster=paris\nbundle=sha256:b\n`;
    const facts = `hostname=${name}\nmachineId=${name}\narch=x86_64\n${part}${name.startsWith('c') ? 'part=admin.conf\n' : ''}`;
    await writeFile(box.at('hosts', name), facts);
  }
  const seen = nodes.map((name) => ({ name, role: roleOf(name), joined: true, answers: true, ready: true }));
  await writeFile(
    box.at('nodes'),
    `{"members":[],"machines":[\n${seen.map((one) => JSON.stringify(one)).join(',\n')}]}`,
  );
  const env = { HOME: box.path, PATH: `${box.path}:${process.env['PATH']}` };
  const context = { signal: never, report: noReport, env, cwd: box.path };
  return {
    ...box,
    remove: async (skipUnreachable = false) =>
      deleteCluster({ files: ['paris.yaml'], confirm: 'paris', skipUnreachable }, context),
    resets: async () => (await readFile(box.at('resets'), 'utf8').catch(() => '')).trim().split('\n'),
  };
}

test('workers go first, then control planes one by one, each without asking the others for their quorum', async () => {
  await using at = await scene(['c1', 'w1', 'c2', 'c3']);
  const deleted = await at.remove();
  assert.equal([deleted.failed, deleted.left], [[], []]);
  assert.equal(await at.resets(), ['w1', 'c1', 'c2', 'c3']);
  assert.is(command.exitCode?.(deleted), 0);
  await using one = await scene(['c1', 'w1']);
  assert.equal(
    [(await one.remove()).done, await one.resets()],
    [
      ['w1', 'c1'],
      ['w1', 'c1'],
    ],
  );
});

test('a hook that fails on one of several control planes is a failure, and keeps the others', async () => {
  await using at = await scene(['c1', 'c2']);
  await writeFile(at.at('fails-c1'), '');
  const kept = await at.remove();
  assert.equal(kept.failed, [
    { host: 'c1', reason: 'it failed with status 20: a hook has failed', code: 'PROGRAM_FAILED' },
  ]);
  assert.equal([kept.done, kept.left, command.exitCode?.(kept)], [[], ['c1', 'c2'], 33]);
  await rm(at.at('fails-c1'));
  assert.equal((await at.remove()).done, ['c1', 'c2']);
  assert.equal(await at.resets(), ['c1', 'c1', 'c2']);
});

test('a control plane that is left out does not keep those that answer from being reset', async () => {
  await using at = await scene(['c1', 'c2', 'c3'], { silent: ['c3'] });
  const kept = await at.remove();
  assert.equal([kept.done, kept.left], [[], ['c1', 'c2']]);
  assert.equal(
    kept.unreached.map(({ host }) => host),
    ['c3'],
  );
  assert.is(command.exitCode?.(kept), 33);
  const deleted = await at.remove(true);
  assert.equal([deleted.done, deleted.failed, deleted.left], [['c1', 'c2'], [], []]);
  assert.match(
    command.render(deleted, undefined as never, undefined as never),
    /^not reached: c3: it does not answer: .*No route/m,
  );
});

test('nodes that the file does not have are named before and after, with what resets them', async () => {
  await using at = await scene(['c1'], { nodes: ['c1', 'w9'] });
  const reason =
    'the file does not have it: add it there, or take it out of the cluster by curlew node remove on a control plane, then run curlew reset on it';
  for (const skip of [false, true]) {
    const found = await at.remove(skip);
    assert.equal([found.done, found.unreached], [skip ? ['c1'] : [], [{ host: 'w9', reason }]]);
    assert.match(command.render(found, undefined as never, undefined as never), `not reached: w9: ${reason}`);
  }
});

test.run();
