/** Snapshots as files: what they have, what is refused, and what fits a machine. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { requireFitting } from '../../src/app/etcd-restore.ts';
import { CurlewError } from '../../src/core/errors.ts';
import type { Etcd } from '../../src/cluster/kube/etcd.ts';
import { decrypted, decrypterFor, encrypted, encrypterFor } from '../../src/machine/run/age.ts';
import { openSnapshot } from '../../src/machine/run/snapshot-file.ts';
import { saveSnapshot } from '../../src/machine/run/snapshots.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { missing, unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('machine/snapshot-file');
const [own, other] = await Promise.all([makeCertificate(), makeCertificate()]);
/** Identities of age-keygen, and their recipients. */
const PAIRS = [
  [
    'AGE-SECRET-KEY-1Y44URJFCAA7ADFSU28PGNAXXD0EC8E2D9C30WYMKHCCN5W575S2Q67W7Z4',
    'age1s24ex3kj0ywfdmg5j7r9ynj58l8wmrj6hpamkgr7vn3dqpx649kqzt6cj4',
  ],
  [
    'AGE-SECRET-KEY-1TR9ER2UTUR2386TW5QCT2WMC62ME9RXGYVM7RVW587X47KV3X7CQHET6MD',
    'age1uxdgzs4tf3xfh6fcj0tqqsg8a8lvxyu7wtrw2dpnt500v77ckuksx3ufhe',
  ],
  [
    'AGE-SECRET-KEY-1N5GGY4SNXACP3W45RUPRG4H640XPAT20L5GQVWVVERN3JPPH6RVQAMUC79',
    'age13rzwc8mk4u9lgxme620wss295xuf99h49jwqts8ng2dech5xvvcsrn8hyw',
  ],
] as const;
const NOW = new Date(Date.UTC(2026, 1, 1));

/** Whole data, as etcd sends it, with the authority where the API server keeps it. */
function dataWith(authority: string): Buffer {
  const pages = Buffer.alloc(8192);
  pages.write(authority.trim(), 5000);
  return Buffer.concat([pages, createHash('sha256').update(pages).digest()]);
}

const etcdWith = (data: Buffer): Pick<Etcd, 'size' | 'save'> => ({
  size: async () => data.length,
  save: async (write) => write(data),
});

const controlPlane = (authority: string): Readonly<Record<string, string>> => ({
  'pki/ca.crt': authority,
  'pki/ca.key': 'key',
  'pki/apiserver.crt': 'of this machine',
  'pki/sa.key': 'accounts',
  'pki/etcd/ca.crt': 'etcd',
  'enc/config.yaml': 'kind: EncryptionConfiguration\n',
  'curlew/init.yaml': 'kind: InitConfiguration\n',
  'manifests/kube-apiserver.yaml': '    - --encryption-provider-config=FOLDER/enc/config.yaml\n',
});

async function kubernetesAt(box: Tree, name: string, authority: string): Promise<string> {
  for (const [path, text] of Object.entries(controlPlane(authority))) {
    await mkdir(box.at(`${name}/${path}/..`), { recursive: true });
    await writeFile(box.at(`${name}/${path}`), text.replace('FOLDER', box.at(name)));
  }
  return box.at(name);
}

async function save(box: Tree, { authority = own.ca, recipients = [] as readonly string[] } = {}): Promise<string> {
  const file = box.at(`shop-${(await readdir(box.path)).length}.tar`);
  const kubernetes = await kubernetesAt(box, `kubernetes-of-${file.slice(-5, -4)}`, authority);
  await saveSnapshot(etcdWith(dataWith(authority)), file, NOW, {
    directory: box.at('curlew'),
    kubernetes,
    units: box.at('units'),
    encrypter: await encrypterFor(recipients),
    report: () => undefined,
    signal: never,
  });
  return file;
}

async function encrypterOf(recipient: string): Promise<NonNullable<Awaited<ReturnType<typeof encrypterFor>>>> {
  const encrypter = await encrypterFor([recipient]);
  if (encrypter === undefined) throw new Error('no encrypter');
  return encrypter;
}

test('the empty list that the command line gives for no recipient encrypts nothing', async () => {
  assert.is(await encrypterFor([]), undefined);
  assert.is(await encrypterFor(), undefined);
});

test('a snapshot has the data and what all control planes share, and tar shows it', async () => {
  await using box = await tree();
  const file = await save(box);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const names = execFileSync('tar', ['-tf', file], { encoding: 'utf8' }).trim().split('\n');
  assert.equal(names, [
    'snapshot/snapshot.json',
    'snapshot/kubernetes/pki/ca.crt',
    'snapshot/kubernetes/pki/ca.key',
    'snapshot/kubernetes/pki/etcd/ca.crt',
    'snapshot/kubernetes/pki/sa.key',
    'snapshot/kubeadm.yaml',
    'snapshot/kubernetes/enc/config.yaml',
    'snapshot/etcd.db',
  ]);
  // Nothing else of it is left.
  assert.equal(await readdir(box.at('curlew/etcd')), []);
  await using opened = await openSnapshot(file, { folder: box.at('curlew'), signal: never });
  assert.equal(await readFile(opened.data), dataWith(own.ca));
  assert.is(await readFile(`${opened.folder}/kubernetes/pki/sa.key`, 'utf8'), 'accounts');
  assert.is((await stat(opened.folder ?? '')).mode & 0o777, 0o700);
  for (const secret of [opened.data, `${opened.folder}/kubernetes/pki/sa.key`]) {
    assert.is((await stat(secret)).mode & 0o777, 0o600);
  }
});

test('a snapshot has the options of its timer, unless an operator has ended that', async () => {
  await using box = await tree();
  const kubernetes = await kubernetesAt(box, 'kubernetes', own.ca);
  await writeFile(`${kubernetes}/curlew/snapshot-timer`, '--every=1000ms\n');
  const timerIn = async (name: string): Promise<string | undefined> => {
    const options = {
      directory: box.at('curlew'),
      kubernetes,
      units: box.at('units'),
      report: noReport,
      signal: never,
    };
    await saveSnapshot(etcdWith(dataWith(own.ca)), box.at(name), NOW, options);
    await using opened = await openSnapshot(box.at(name), { folder: box.at('curlew'), signal: never });
    return await readFile(`${opened.folder}/timer`, 'utf8').catch(() => undefined);
  };
  assert.is(await timerIn('a.tar'), undefined);
  await mkdir(box.at('units/timers.target.wants'), { recursive: true });
  await symlink('/gone', box.at('units/timers.target.wants/curlew-etcd-snapshot.timer'));
  assert.is(await timerIn('b.tar'), '--every=1000ms\n');
});

test('a configuration of encryption elsewhere is named, since the snapshot does not have it', async () => {
  await using box = await tree();
  const kubernetes = await kubernetesAt(box, 'kubernetes', own.ca);
  await writeFile(`${kubernetes}/manifests/kube-apiserver.yaml`, '- --encryption-provider-config=/opt/enc.yaml\n');
  const warnings: string[] = [];
  const report = (event: { readonly type: string; readonly text?: string }) => void warnings.push(event.text ?? '');
  await saveSnapshot(etcdWith(dataWith(own.ca)), box.at('a.tar'), NOW, {
    directory: box.at('curlew'),
    kubernetes,
    report,
    signal: never,
  });
  assert.match(warnings.join(), /has no \/opt\/enc.yaml, with which Secrets are encrypted/);
});

test('a snapshot that is cut, or brings a static pod, is refused, and leaves nothing', async () => {
  await using box = await tree();
  const file = await save(box);
  const whole = await readFile(file);
  const open = async () => openSnapshot(box.at('bad.tar'), { folder: box.at('curlew'), signal: never });
  for (const length of [600, whole.length - 9000, whole.length - 2000]) {
    await writeFile(box.at('bad.tar'), whole.subarray(0, length));
    await assert.rejectsWith(open(), 'CLUSTER_FAILED', /bad.tar is not a whole snapshot of etcd: it is truncated/);
  }
  const changed = Buffer.from(whole);
  changed.write('x', changed.indexOf('-----BEGIN', changed.indexOf('snapshot/etcd.db')));
  await writeFile(box.at('bad.tar'), changed);
  await assert.rejectsWith(open(), 'CLUSTER_FAILED', /its digest differs/);
  await mkdir(box.at('evil/snapshot/kubernetes/manifests'), { recursive: true });
  await writeFile(box.at('evil/snapshot/kubernetes/manifests/pod.yaml'), 'kind: Pod');
  execFileSync('tar', ['-cf', box.at('bad.tar'), '--format=ustar', '-C', box.at('evil'), 'snapshot']);
  await assert.rejectsWith(open(), 'CLUSTER_FAILED', /kubernetes\/manifests\/pod.yaml/);
  assert.equal(await readdir(box.at('curlew')), ['etcd']);
});

test('an encrypted snapshot has nothing that can be read, and opens with the identity of any recipient alone', async () => {
  await using box = await tree();
  const [one, two, none] = PAIRS;
  const recipients = [one[1], two[1]];
  await writeFile(box.at('two.txt'), `# created: today\n${two[0]}\n`);
  await writeFile(box.at('none.txt'), `${none[0]}\n`);
  const file = await save(box, { recipients });
  assert.is((await readFile(file)).includes('snapshot'), false);
  assert.equal(await readdir(box.at('curlew/etcd')), []);
  const open = async (path: string, identity?: string) =>
    openSnapshot(path, { folder: box.at('curlew'), identity, signal: never });
  {
    await using opened = await open(file, box.at('two.txt'));
    assert.equal(await readFile(opened.data), dataWith(own.ca));
  }
  await assert.rejectsWith(open(file), 'USAGE', /the identity of a recipient is missing/);
  await assert.rejectsWith(
    open(file, box.at('none.txt')),
    'CLUSTER_FAILED',
    /cannot decrypt .* with .*none.txt: it is encrypted for others/,
  );
  await assert.rejectsWith(open(file, file), 'CLUSTER_FAILED', /has no identity of age/);
  await assert.rejectsWith(open(file, box.at('missing.txt')), 'NOT_FOUND');
  const whole = await readFile(file);
  const flipped = Buffer.from(whole);
  flipped[whole.length - 3000] = (flipped[whole.length - 3000] ?? 0) ^ 1;
  for (const bytes of [flipped, whole.subarray(0, -5000)]) {
    await writeFile(box.at('bad.age'), bytes);
    await assert.rejectsWith(
      open(box.at('bad.age'), box.at('two.txt')),
      'CLUSTER_FAILED',
      /it is truncated or changed/,
    );
  }
  for (const text of ['ssh-ed25519 AAAA', `${one[1].slice(0, -1)}q`, one[0]]) {
    await assert.rejectsWith(encrypterFor([text]), 'USAGE', /is not a recipient of age/);
  }
});

/** What the first version with `--recipient` has encrypted for the first pair. */
const EARLIER = [
  'YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBDa3BaR3RpbnBheXV6S2xLa0tuS3VvcHlQdEs4WHlYQjBwZzlVSHFUNUgw',
  'CkxIV0dmOExtOEdIckNmemtiMVZRN3U2amd4ZzZEUkhPYzl3SUw4NkpoMDAKLS0tIE1uQXE1NER1NUI5LzZiN3dQb2pza2VsR3I4',
  'RjdNamdCY3V2cWJldTRmcmcKleBidieeIrFgCjQKhqQH/oncyE5NHlufQ0CKp9Wtf7ljgGrlXmlCczg++4aLkqehEbiZXBc=',
].join('');

const refuse = (why: string): CurlewError => new CurlewError('CLUSTER_FAILED', why);
const opened = async (bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> =>
  decrypted(bytes, await decrypterFor(PAIRS[0][0], 'one.txt'), { refuse, notForThese: () => refuse('not for these') });

test('a file of an earlier version is decrypted', async () => {
  assert.is(await text(await opened(Readable.from([Buffer.from(EARLIER, 'base64')]))), 'of an earlier version');
});

test('of a large file, only parts are held, and a header without an end is not read on', async () => {
  let read = 0;
  async function* large(): AsyncGenerator<Uint8Array, void, undefined> {
    for (; read < 1000; read += 1) yield Buffer.alloc(64 * 1024, 'x');
  }
  const encrypter = await encrypterOf(PAIRS[0][1]);
  for (const bytes of [encrypted(large(), encrypter), await opened(encrypted(large(), encrypter))]) {
    read = 0;
    for await (const part of bytes) if (part.length > 1000) break;
    assert.ok(read < 20, `${read} parts were read`);
  }
  read = 0;
  await assert.rejectsWith(text(await opened(large())), 'CLUSTER_FAILED', /it is truncated or changed/);
  assert.ok(read < 3, `${read} parts were read`);
});

test('a file that cannot be read to its end is not called changed', async () => {
  async function* cut(): AsyncGenerator<Uint8Array, void, undefined> {
    yield* encrypted(Readable.from([Buffer.alloc(200_000)]), await encrypterOf(PAIRS[0][1]));
    throw new CurlewError('FILE_UNUSABLE', 'the disk fails');
  }
  await assert.rejectsWith(text(await opened(cut())), 'FILE_UNUSABLE', /the disk fails/);
});

unless(missing('age', 'age-keygen'), test)('age opens what curlew encrypts, and curlew what age encrypts', async () => {
  await using box = await tree();
  execFileSync('age-keygen', ['-o', box.at('key.txt')], { stdio: 'ignore' });
  const recipient = execFileSync('age-keygen', ['-y', box.at('key.txt')], { encoding: 'utf8' }).trim();
  const file = await save(box, { recipients: [recipient] });
  execFileSync('age', ['--decrypt', '--identity', box.at('key.txt'), '--output', box.at('plain.tar'), file]);
  assert.match(execFileSync('tar', ['-tf', box.at('plain.tar')], { encoding: 'utf8' }), /kubernetes\/pki\/ca.key\n/);
  execFileSync('age', ['--recipient', recipient, '--output', box.at('again.age'), box.at('plain.tar')]);
  // Its chunks have 64 KiB, and the last one says so.
  for (const size of [0, 1, 65_535, 65_536, 65_537, 131_072]) {
    const plain = Buffer.alloc(size, 'x');
    const parts = encrypted(Readable.from([plain]), await encrypterOf(recipient));
    await writeFile(box.at('sized.age'), parts);
    assert.is(Buffer.compare(execFileSync('age', ['-d', '-i', box.at('key.txt'), box.at('sized.age')]), plain), 0);
  }
  await using opened = await openSnapshot(box.at('again.age'), {
    folder: box.at('curlew'),
    identity: box.at('key.txt'),
    signal: never,
  });
  assert.equal(await readFile(opened.data), dataWith(own.ca));
});

test('only data of the cluster whose authority the machine has fits it, with keys or without', async () => {
  await using box = await tree();
  const kubernetes = await kubernetesAt(box, 'machine', own.ca);
  await writeFile(`${kubernetes}/manifests/kube-apiserver.yaml`, '');
  const check = async (file: string, isBare = false) => {
    await using snapshot = await openSnapshot(file, { folder: box.at('curlew'), signal: never });
    await requireFitting(snapshot, file, { kubernetes, isBare });
  };
  await check(await save(box));
  const foreign = await save(box, { authority: other.ca });
  await assert.rejectsWith(check(foreign), 'CLUSTER_FAILED', /it is of another cluster/);
  await check(foreign, true);
  // Earlier versions and etcdctl write only the data.
  await writeFile(box.at('own.db'), dataWith(own.ca));
  await writeFile(box.at('foreign.db'), dataWith(other.ca));
  await check(box.at('own.db'));
  await assert.rejectsWith(check(box.at('foreign.db')), 'CLUSTER_FAILED', /it is of another cluster/);
  await assert.rejectsWith(check(box.at('own.db'), true), 'CLUSTER_FAILED', /this machine has no keys of its cluster/);
});

test.run();
