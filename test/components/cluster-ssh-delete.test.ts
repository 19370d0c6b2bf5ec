/** `curlew cluster delete` over SSH: real servers on hosts with files of their own; what a reset does there is written by hand. */
import { rm, writeFile } from 'node:fs/promises';
import { DELETE_CLUSTER, deleteCluster, type ClusterDeletion } from '../../src/app/cluster-delete.ts';
import { command } from '../../src/cli/commands/cluster-delete.ts';
import { INSTALL_DIRECTORY } from '../../src/core/layout.ts';
import { REMOTE } from '../../src/machine/run/look.ts';
import { formatRecords, NO_RECORDS, NO_RUN, settingsDigest } from '../../src/runtime/plan/records.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene, type HostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';

const test = suite('components/cluster-ssh-delete', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

const P1 = { p1: { role: 'control-plane' } };
const P2 = { p2: { address: 'localhost' } };

async function deletion(
  { context }: HostScene,
  request: { readonly confirm?: string; readonly skipUnreachable?: boolean } = {},
  signal = context.signal,
): Promise<ClusterDeletion> {
  return deleteCluster({ files: ['paris.yaml'], ...request }, { ...context, signal });
}

function resets(calls: readonly string[]): readonly string[] {
  return calls.filter((call) => call.startsWith('reset'));
}

/** Packages of kubernetes, of which only the hook of the first knows that all of the cluster goes. */
const CURRENT = `[[ -z "\${${DELETE_CLUSTER}-}" ]] || return 0`;
const EARLIER = 'kubernetes_leave() { bail; }';

async function hooks({ on }: HostScene, version: string, line: string): Promise<void> {
  const folder = `${INSTALL_DIRECTORY}/packages/kubernetes/${version}`;
  await on('p1', `mkdir -p ${folder}; echo '${line}' >${folder}/install.sh`);
}

/** Records that this version is applied. */
async function record({ on }: HostScene, version: string): Promise<void> {
  const row = { version, digest: undefined, settings: settingsDigest({}), run: NO_RUN, finished: true };
  const previous = { ...row, version: '1.32.0', digest: settingsDigest({}) };
  const applied = { containerd: { ...row, version: '2.2.6' }, kubernetes: { ...row, previous }, web: row };
  const text = formatRecords({ ...NO_RECORDS, applied });
  await on('p1', `mkdir -p ${INSTALL_DIRECTORY}; cat >${INSTALL_DIRECTORY}/records.json <<'END'\n${text}END`);
}

tests('workers are reset before control planes, only if confirmed by name, and nothing of curlew is left', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, ...P2 });
  await at.apply();
  const shown = await deletion(at);
  assert.equal([shown.left, shown.done, command.exitCode?.(shown)], [['p2', 'p1'], [], 2]);
  await assert.rejectsWith(deletion(at, { confirm: 'lyon' }), 'USAGE', /cannot delete paris: it was confirmed as lyon/);
  assert.equal(resets(await at.calls()), []);
  const deleted = await deletion(at, { confirm: 'paris' });
  assert.equal([deleted.done, deleted.left, deleted.failed, command.exitCode?.(deleted)], [['p2', 'p1'], [], [], 0]);
  assert.equal(resets(await at.calls()), ['reset p2 reset --yes', 'reset p1 reset --yes']);
  assert.is(await at.on('p1', `ls ${REMOTE}`), 'lock.guard\nrun.lock\n');
  await rm(at.at('paris.conf'));
  await rm(`${at.api}/node-p1`);
  await rm(`${at.api}/node-p2`);
  const again = await deletion(at, { confirm: 'paris' });
  assert.equal([again.done, again.left, command.exitCode?.(again)], [[], [], 0]);
  // Bare hosts again.
  assert.is((await at.plan()).steps.length, 4);
});

tests('a machine of another cluster, or one that does not answer, keeps all of them from being reset', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, ...P2 });
  await at.apply();
  await at.write({ ...P1, ...P2, p4: {} });
  const away = await deletion(at, { confirm: 'paris' });
  assert.equal(
    away.unreached.map(({ host }) => host),
    ['p4'],
  );
  assert.equal([away.done, command.exitCode?.(away)], [[], 33]);
  await at.on('p2', `echo other >/etc/kubernetes/pki/ca.crt; echo berlin >${REMOTE}/cluster`);
  const foreign = await deletion(at, { confirm: 'paris', skipUnreachable: true });
  assert.equal(foreign.refused, [{ host: 'p2', reason: 'it belongs to the cluster berlin' }]);
  assert.equal([foreign.done, command.exitCode?.(foreign), resets(await at.calls())], [[], 33, []]);
  await at.write({ ...P1, p4: {} });
  const skipped = await deletion(at, { confirm: 'paris', skipUnreachable: true });
  // The cluster has the node p2, which the file does not have any more.
  assert.equal(
    skipped.unreached.map(({ host }) => host),
    ['p4', 'p2'],
  );
  assert.equal([skipped.done, command.exitCode?.(skipped)], [['p1'], 0]);
});

tests('a reset that was interrupted is followed, and one that has failed keeps the control plane', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ ...P1, ...P2 });
  await at.apply();
  await rm(`${at.api}/began-p2`);
  await writeFile(`${at.api}/hold-p2`, '');
  await writeFile(`${at.api}/fail-reset-p2`, '');
  const operator = new AbortController();
  const first = deletion(at, { confirm: 'paris' }, operator.signal);
  await appears(`${at.api}/began-p2`);
  operator.abort(new Error('gone'));
  assert.match(String(await first.catch((error: unknown) => error)), 'gone');
  await rm(`${at.api}/hold-p2`);
  const failed = await deletion(at, { confirm: 'paris' });
  assert.equal(failed.failed, [
    { host: 'p2', reason: 'it failed with status 3: a hook has failed', code: 'PROGRAM_FAILED' },
  ]);
  assert.equal([failed.done, failed.left, command.exitCode?.(failed)], [[], ['p2', 'p1'], 33]);
  await rm(`${at.api}/fail-reset-p2`);
  assert.equal((await deletion(at, { confirm: 'paris' })).done, ['p2', 'p1']);
});

tests('a control plane whose package does not know that all of the cluster goes is reset nevertheless', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.apply();
  const leave =
    'not removed: kubernetes: kubernetes_leave failed with status 1: this control plane is still part of the cluster';
  await writeFile(`${at.api}/failed-hooks-p1`, `${leave}\n`);
  const own = async (line: string): Promise<void> => hooks(at, '1.34.0', line);
  await record(at, '1.34.0');
  // Its hook would have let it go: this is another failure.
  await own(CURRENT);
  const stopped = await deletion(at, { confirm: 'paris' });
  assert.equal(stopped.failed, [
    { host: 'p1', reason: 'it failed with status 20: a hook has failed', code: 'PROGRAM_FAILED' },
  ]);
  await own(EARLIER);
  const deleted = await deletion(at, { confirm: 'paris' });
  assert.equal([deleted.done, deleted.failed, command.exitCode?.(deleted)], [['p1'], [], 0]);
  assert.equal(resets(await at.calls()), ['reset p1 reset --yes', 'reset p1 reset --yes --keep-going']);
  await rm(at.at('paris.conf'));
  await rm(`${at.api}/node-p1`);
  await at.apply();
  await writeFile(`${at.api}/failed-hooks-p1`, `${leave}\nnot removed: containerd: containerd_uninstall failed\n`);
  const left = await deletion(at, { confirm: 'paris' });
  assert.match(left.failed[0]?.reason ?? '', /^it failed with status 20/);
});

tests('a control plane on which a reset has left the kubelet is not done until that is removed', async () => {
  await using at = await hostScene('p1');
  await at.write(P1);
  await at.apply();
  const unit = '/etc/systemd/system/kubelet.service';
  await at.on('p1', `mkdir -p "$(dirname ${unit})"; touch ${unit}`);
  for (const time of ['at first', 'again']) {
    const kept = await deletion(at, { confirm: 'paris' });
    assert.equal([kept.done, command.exitCode?.(kept)], [[], 33], time);
    assert.match(kept.failed[0]?.reason ?? '', /a part of Kubernetes remains.*run curlew reset on it/, time);
    await at.on('p1', `[ -e ${REMOTE}/cluster ] && rm -f ${REMOTE}/bundle/.digest`);
    // The scripts of this bundle make none that can be read.
    await rm(at.at('paris.conf'), { force: true });
  }
  await at.on('p1', `rm ${unit}`);
  assert.equal((await deletion(at, { confirm: 'paris' })).done, ['p1']);
});

tests('only the package that is applied decides whether a control plane is reset as by an earlier one', async () => {
  const flags = async (applied: string): Promise<readonly string[]> => {
    await using at = await hostScene('p1');
    await at.write(P1);
    await at.apply();
    await hooks(at, '1.33.1', EARLIER);
    await hooks(at, '1.34.4', CURRENT);
    await record(at, applied);
    await writeFile(`${at.api}/failed-hooks-p1`, 'not removed: kubernetes: kubernetes_leave failed\n');
    await deletion(at, { confirm: 'paris' });
    return resets(await at.calls());
  };
  assert.equal(await flags('1.34.4'), ['reset p1 reset --yes']);
  assert.equal(await flags('1.33.1'), ['reset p1 reset --yes --keep-going']);
});

test.run();
