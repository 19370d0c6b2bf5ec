/** Certificates and snapshots of a control plane: what is refused, and what is said of them. */
import { createHash, X509Certificate } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { daysOf, renewCertificates, requireKubelet, requireRestart } from '../../src/app/certificates-renew.ts';
import { etcdRestore, requireConfirmed } from '../../src/app/etcd-restore.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { recordAttempt } from '../../src/machine/run/attempts.ts';
import { clusterHealth } from '../../src/machine/run/node-health.ts';
import type { Member } from '../../src/cluster/kube/etcd.ts';
import type { EtcdView } from '../../src/machine/etcd.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/control-plane-data');
const { cert, ca } = await makeCertificate();

function failureOf(check: () => void): string {
  try {
    check();
    return '';
  } catch (error) {
    return error instanceof CurlewError ? error.message : String(error);
  }
}

function messageOf(view: Partial<EtcdView>, confirm?: string): string {
  return failureOf(() => requireConfirmed({ members: undefined, agrees: false, served: false, ...view }, confirm));
}

test('certificates are shown with the days that are left, in files and in kubeconfigs, but not authorities', async () => {
  await using box = await tree({
    'admin.conf': `users:\n- user:\n    client-certificate-data: ${btoa(cert)}\n`,
  });
  await mkdir(box.at('pki'));
  await writeFile(box.at('pki/apiserver.crt'), cert);
  await writeFile(box.at('pki/ca.crt'), ca);
  await writeFile(box.at('kubelet.conf'), 'users: []\n');
  const ends = Date.parse(new X509Certificate(cert).validTo);
  const day = 24 * 60 * 60_000;
  const found = await daysOf(box.path, new Date(ends - 3.5 * day));
  assert.equal(
    [...found].filter(([name]) => name !== 'pki/ca.crt'),
    [
      ['pki/apiserver.crt', 3],
      ['admin.conf', 3],
    ],
  );
  assert.equal((await daysOf(box.path, new Date(ends + day))).get('admin.conf'), -1);
  // Cut by a full disk.
  await writeFile(box.at('pki/apiserver.crt'), '-----BEGIN CERTIFICATE-----\n');
  const cut = await daysOf(box.path, new Date());
  assert.equal([cut.has('pki/apiserver.crt'), cut.get('pki/apiserver.crt')], [true, undefined]);
  assert.equal((await daysOf(box.at('missing'), new Date())).size, 0);
});

const member = (name: string, healthy = true): Member => {
  return { id: name, name, addresses: [`${name}.example.com`], healthy, answers: healthy, learner: false };
};

test('nothing is renewed where the kubelet ends for its own certificate, and what to do is said', () => {
  const name = 'pki/kubelet-client-current.pem';
  const now = new Date('2027-01-02T00:00:00Z');
  const check = (expires: number | undefined) => failureOf(() => requireKubelet({ name, expires }, now));
  assert.equal(
    [check(undefined), check(now.getTime() + 1), failureOf(() => requireKubelet(undefined, now))],
    ['', '', ''],
  );
  assert.is(
    check(Date.parse('2027-01-01')),
    'cannot renew certificates: that of the kubelet (pki/kubelet-client-current.pem) expired on 2027-01-01',
  );
});

test('a dry run refuses what the run would refuse for the kubelet, and names the file that has expired', async () => {
  await using box = await tree({});
  await mkdir(box.at('kubernetes/pki'), { recursive: true });
  await mkdir(box.at('kubelet/pki'), { recursive: true });
  await writeFile(box.at('kubernetes/pki/apiserver.crt'), cert);
  await writeFile(box.at('kubernetes/kubelet.conf'), 'users: []\n');
  const context = { signal: never, report: () => undefined, env: {}, cwd: box.path };
  const folders = { kubernetes: box.at('kubernetes'), kubelet: box.at('kubelet') };
  const preview = async () => renewCertificates({}, context, { dryRun: true }, folders);
  const current = box.at('kubelet/pki/kubelet-client-current.pem');
  await writeFile(current, cert);
  assert.is((await preview()).certificates[0]?.name, 'pki/apiserver.crt');
  const old = await makeCertificate(['localhost'], { notAfterDate: new Date('2020-01-01T00:00:00Z') });
  await writeFile(current, old.cert);
  await assert.rejectsWith(preview(), 'CLUSTER_FAILED', /\(pki\/kubelet-client-current.pem\) expired on 2020-01-01/);
  // A kubelet that runs may use another file, but would not start again.
  await writeFile(current, cert);
  const user = `users:\n- user:\n    client-certificate-data: ${btoa(old.cert)}\n`;
  await writeFile(box.at('kubernetes/kubelet.conf'), user);
  await assert.rejectsWith(preview(), 'CLUSTER_FAILED', /\(kubelet.conf\) expired on 2020-01-01/);
});

test('certificates are renewed only once they are due, or after a failure, which status names', async () => {
  await using box = await tree({
    'kubernetes/pki/apiserver.crt': cert,
    'kubernetes/kubelet.conf': 'users: []',
    'kubelet/config.yaml': '',
  });
  const context = { signal: never, report: () => undefined, env: {}, cwd: box.path, user: 0 };
  const folders = { kubernetes: box.at('kubernetes'), kubelet: box.at('kubelet') };
  const day = 24 * 60 * 60_000;
  const left = (await daysOf(folders.kubernetes, new Date())).get('pki/apiserver.crt') ?? 0;
  const renew = async (days: number) =>
    renewCertificates({ within: days * day, installDir: box.at('none') }, context, {}, folders);
  const health = async () => clusterHealth(context, { ...folders, images: box.path });
  assert.equal((await renew(left)).certificates, [{ name: 'pki/apiserver.crt', before: left, after: undefined }]);
  assert.is((await health())?.renewal, undefined);
  // Nothing has installed Kubernetes here.
  await assert.rejectsWith(renew(left + 2), 'CLUSTER_FAILED');
  assert.match(
    (await health())?.problems.join() ?? '',
    /the renewal of certificates has failed on \d{4}-.*has not installed kubernetes/,
  );
  await assert.rejectsWith(renew(left), 'CLUSTER_FAILED');
  const busy = async () => {
    throw new CurlewError('BUSY', 'another run is in progress');
  };
  await recordAttempt(folders.kubernetes, 'renewal', async () => undefined);
  assert.equal(Object.keys((await health())?.renewal ?? {}), ['format', 'time']);
  await assert.rejectsWith(recordAttempt(folders.kubernetes, 'renewal', busy), 'BUSY');
  await renew(left);
});

test('etcd is not restarted where another member is not healthy and the rest would be no quorum', () => {
  const check = (...members: readonly Member[]) => requireRestart(members, { name: 'one', addresses: new Set() });
  check();
  check(member('one'));
  check(member('one'), member('two'));
  check(member('one', false), member('two'), member('three'));
  check(member('one'), member('two'), member('three'), member('four'), member('five', false));
  assert.match(
    failureOf(() => check(member('one'), member('two'), member('three', false))),
    /since three is not healthy/,
  );
  assert.match(
    failureOf(() => check(member('one'), member('two'), { ...member('three'), learner: true })),
    /since three/,
  );
});

test('the member of this machine is known by its address, whatever its name', () => {
  const check = (...members: readonly Member[]) =>
    requireRestart(members, { name: 'machine', addresses: new Set(['one.example.com']) });
  check(member('one', false), member('two'));
  assert.match(
    failureOf(() => check(member('one'), member('two', false), member('three'))),
    /since two is not healthy/,
  );
});

test('a running cluster is restored only with its own name, and not with other members that agree', () => {
  const own = hostname().toLowerCase();
  const alone = { members: [member(own)], agrees: true };
  assert.match(messageOf(alone), /the cluster runs, and would lose its changes/);
  assert.is(messageOf(alone, own), '');
  const all = [member(own), member('two'), member('three', false)];
  assert.match(messageOf({ members: all, agrees: true }, own), /its 3 members have a quorum/);
});

test('a lost quorum is restored with the name of its machine, and members that do not answer are named', () => {
  const own = hostname().toLowerCase();
  const members = [member(own, false), member('two', false), { ...member('three', false), name: '' }];
  assert.match(messageOf({ members }), /lost its quorum: of 3 members, two, one that has just joined do not answer/);
  assert.is(messageOf({ members }, own), '');
});

test('a quorum without this machine is never contradicted, by its members or its API server', () => {
  const own = hostname().toLowerCase();
  const members = [member(own, false), member('two'), member('three')];
  const expected = /other control planes have a quorum without this machine/;
  assert.match(messageOf({ members }, own), expected);
  assert.match(messageOf({ served: true }, own), expected);
});

test('an etcd that does not answer is restored only with the name of its machine: others may have the quorum', async () => {
  assert.match(messageOf({}), /another control plane may run with its data/);
  assert.is(messageOf({}, hostname().toLowerCase()), '');
  await using box = await tree();
  const page = Buffer.alloc(512);
  await writeFile(box.at('shop.db'), Buffer.concat([page, createHash('sha256').update(page).digest()]));
  const context = { signal: never, report: () => undefined, env: {}, cwd: box.path };
  await assert.rejectsWith(
    etcdRestore({ file: 'shop.db', installDir: box.path }, context),
    'CLUSTER_FAILED',
    /no keys of its cluster/,
  );
});

test('the name of another machine is refused before the file is read', async () => {
  await using box = await tree();
  const context = { signal: never, report: () => undefined, env: {}, cwd: box.path };
  const restore = etcdRestore({ file: 'missing.db', confirm: 'elsewhere' }, context);
  await assert.rejectsWith(restore, 'USAGE', /--confirm elsewhere: this machine is /);
});

test('a file that is no snapshot is refused before anything else', async () => {
  await using box = await tree({ 'shop.db': 'not a database' });
  const context = { signal: never, report: () => undefined, env: {}, cwd: box.path };
  await assert.rejectsWith(
    etcdRestore({ file: 'shop.db' }, context),
    'CLUSTER_FAILED',
    /is not a whole snapshot of etcd/,
  );
  const missing = await assert.rejectsWith(etcdRestore({ file: 'missing.db' }, context), 'NOT_FOUND');
  assert.match(missing.hint ?? '', 'check the path; those of curlew etcd snapshot are in /var/lib/curlew/etcd');
  await assert.rejectsWith(renewCertificates({}, context), 'CLUSTER_FAILED', /has none of an API server/);
});

test.run();
