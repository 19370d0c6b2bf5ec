/** A real etcd of three members: where its quorum is, and what becomes of a restore. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { requireConfirmed, viewOf } from '../../src/app/etcd-restore.ts';
import { upgradeOf } from '../../src/app/node-upgrade.ts';
import { openEtcd, type Etcd } from '../../src/cluster/kube/etcd.ts';
import { quorumPlace } from '../../src/machine/etcd.ts';
import { quorumProblem } from '../../src/machine/run/quorum.ts';
import { prepare } from '../../src/runtime/prepare/prepare.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { kubeconfigText } from '../support/kube-server.ts';
import { missing, unless } from '../support/needs.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { packagesOf, requestOf, tracer } from '../support/node-install.ts';
import { freePort } from '../support/ports.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { startDaemon, type Daemon } from './support/daemon.ts';

const test = suite('components/etcd');
const withEtcd = unless(missing('etcd'), test);
const own = hostname().toLowerCase();
const NAMES = [own, 'two', 'three'];

interface Running extends AsyncDisposable {
  readonly members: readonly Daemon[];
  readonly etcdAt: (index: number) => Promise<Etcd>;
}

/** Members with the certificates of kubeadm, so far as curlew uses them. */
async function startMembers(folder: string): Promise<Running> {
  const { key, cert, ca } = await makeCertificate();
  const pki = `${folder}/pki`;
  await mkdir(pki);
  const files = { 'ca.crt': ca, 'healthcheck-client.crt': cert, 'healthcheck-client.key': key };
  for (const [name, text] of Object.entries(files)) await writeFile(`${pki}/${name}`, text);
  const ports: { readonly name: string; readonly client: number; readonly peer: number }[] = [];
  for (const name of NAMES) ports.push({ name, client: await freePort(), peer: await freePort() });
  const cluster = ports.map(({ name, peer }) => `${name}=http://127.0.0.1:${peer}`).join(',');
  const start = async ({ name, client, peer }: (typeof ports)[number]): Promise<Daemon> => {
    const [url, peerUrl, logFile] = [
      `https://127.0.0.1:${client}`,
      `http://127.0.0.1:${peer}`,
      `${folder}/${name}.log`,
    ];
    return startDaemon({
      command: 'etcd',
      args: [
        ['--name', name, '--data-dir', `${folder}/${name}`, '--unsafe-no-fsync'],
        ['--listen-client-urls', url, '--advertise-client-urls', url],
        ['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', cluster],
        ['--cert-file', `${pki}/healthcheck-client.crt`, '--key-file', `${pki}/healthcheck-client.key`],
        ['--client-cert-auth', '--trusted-ca-file', `${pki}/ca.crt`],
        ['--heartbeat-interval', '20', '--election-timeout', '200'],
      ].flat(),
      logFile,
      ready: async () => (await readFile(logFile, 'utf8')).includes('ready to serve client requests'),
    });
  };
  const members = await Promise.all(ports.map(start));
  const etcdAt = async (index: number): Promise<Etcd> => {
    const server = `https://127.0.0.1:${ports[index]?.client}`;
    const etcd = await openEtcd({ signal: never, folder: pki, server });
    if (etcd === undefined) throw new Error('no certificates');
    return etcd;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(members.map(async (one) => one[Symbol.asyncDispose]()));
  };
  return { members, etcdAt, [Symbol.asyncDispose]: stop };
}

withEtcd('a restore is refused while members agree, and not for members that are only listed', async () => {
  await using box = await tree();
  await using running = await startMembers(box.path);
  const context = { signal: never, report: () => undefined, env: {}, cwd: box.path };
  const view = async (index = 0) => {
    using etcd = await running.etcdAt(index);
    return await viewOf(etcd, context, box.at('admin.conf'));
  };
  const whole = await view();
  assert.is(await quorumProblem(context, async () => running.etcdAt(0)), undefined);
  assert.equal([whole.members?.length, whole.agrees, quorumPlace(whole)], [3, true, 'here']);
  assert.throwsWith(
    () => requireConfirmed(whole, own),
    'CLUSTER_FAILED',
    /its 3 members have a quorum, and the others would/,
  );

  // One is gone: the other two agree, and the third knows that from them.
  await running.members[2]?.[Symbol.asyncDispose]();
  assert.is(quorumPlace(await view()), 'here');
  const without = await view(2);
  assert.equal([without.members, without.agrees, quorumPlace(without)], [undefined, false, 'none']);

  await running.members[1]?.[Symbol.asyncDispose]();
  const lost = await view();
  assert.equal([lost.members?.length, lost.agrees, quorumPlace(lost)], [3, false, 'none']);
  assert.throwsWith(
    () => requireConfirmed(lost, undefined),
    'CLUSTER_FAILED',
    /it has lost its quorum: of 3 members, (two, three|three, two) do not answer/,
  );
  requireConfirmed(lost, own);
  const problem = await quorumProblem(context, async () => running.etcdAt(0));
  assert.match(
    problem?.message ?? '',
    /^etcd has lost its quorum: 1 of 3 members answers, and (two and three|three and two) do not$/,
  );
  assert.match(problem?.hint ?? '', 'curlew etcd restore');

  // An upgrade does not wait for an API server that cannot answer.
  await mkdir(box.at('kubernetes'));
  await writeFile(box.at('kubernetes/admin.conf'), kubeconfigText(`https://127.0.0.1:${await freePort()}`, {}, {}));
  await using prepared = await prepare(requestOf(box, await packagesOf(bundleOf([tracer('kubernetes')]))), context);
  const place = { folder: box.at('kubernetes'), open: async () => running.etcdAt(0) };
  const signal = AbortSignal.timeout(20_000);
  const error = await assert.rejectsWith(upgradeOf(prepared, {}, { ...context, signal }, place), 'CLUSTER_FAILED');
  assert.match(error.message, 'etcd has lost its quorum: 1 of 3 members answers');
});

test.run();
