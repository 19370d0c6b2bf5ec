import { execa } from 'execa';
import { chmod, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { boxWith, bundleOf, specOf } from '../support/node-bundles.ts';
import { traced, tracer } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

// not fast: signs and proves again and again
const test = suite('cli/sign', { timeoutMs: 120_000 });

const INVALID = 30;

/** A bundle, keys, and its signature; other keys, and a bundle that is not signed. */
async function signedBox(): Promise<Tree> {
  const box = await boxWith([tracer('aaa')]);
  await writeFile(box.at('other.tar.gz'), bundleOf([tracer('bbb')]));
  for (const words of [
    ['keygen', 'our'],
    ['keygen', 'their'],
    ['sign', 'b.tar.gz', '--key', 'our.key'],
  ]) {
    const { exitCode, stderr } = await runTraced(words, box);
    assert.is(exitCode, 0, stderr);
  }
  return box;
}

function installing(...words: string[]): readonly string[] {
  return ['install', '--root', 'root', '--unconfined', ...words];
}

async function isMissing(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    () => true,
  );
}

async function refused(box: Tree, words: readonly string[], message: RegExp): Promise<void> {
  const { exitCode, stderr } = await runTraced(words, box);
  assert.is(exitCode, INVALID, stderr);
  assert.match(stderr, /^error SIGNATURE_INVALID: /m);
  assert.match(stderr.replaceAll('\n', ' '), message);
}

test('keygen takes the name of one of its files as the name of both', async () => {
  await using box = await tree();
  for (const name of ['release.key', 'other.pub']) assert.is((await curlew(['keygen', name], traced(box))).exitCode, 0);
  assert.equal((await readdir(box.path)).toSorted(), ['other.key', 'other.pub', 'release.key', 'release.pub']);
});

test('keygen makes a private key for its owner alone, and never overwrites one', async () => {
  await using box = await tree();
  const made = await runTraced(['keygen', '--json'], box, { CURLEW_KEY_PASSPHRASE: 'correct horse' });
  assert.equal(JSON.parse(made.stdout), { privateKey: 'curlew.key', publicKey: 'curlew.pub', encrypted: true });
  assert.is((await stat(box.at('curlew.key'))).mode & 0o777, 0o600);
  assert.match(await readFile(box.at('curlew.key'), 'utf8'), /^-----BEGIN ENCRYPTED PRIVATE KEY-----/);
  const before = await readFile(box.at('curlew.key'));
  const again = await runTraced(['keygen'], box);
  assert.is(again.exitCode, 24);
  assert.ok(before.equals(await readFile(box.at('curlew.key'))));
  await rename(box.at('curlew.key'), box.at('elsewhere.key'));
  assert.is((await runTraced(['keygen'], box)).exitCode, 24);
  assert.ok(await isMissing(box.at('curlew.key')), 'half a pair was left');
});

test('a signer is told of a key that others can read, unless it is encrypted', async () => {
  await using box = await boxWith([tracer('aaa')]);
  await runTraced(['keygen', 'our'], box);
  await runTraced(['keygen', 'locked'], box, { CURLEW_KEY_PASSPHRASE: 'correct horse' });
  for (const [key, mode, told] of [
    ['our.key', 0o600, false],
    ['our.key', 0o644, true],
    ['our.key', 0o640, true],
    ['locked.key', 0o644, false],
  ] as const) {
    await chmod(box.at(key), mode);
    const env = key === 'locked.key' ? { CURLEW_KEY_PASSPHRASE: 'correct horse' } : {};
    const { exitCode, stderr } = await runTraced(['sign', 'b.tar.gz', '--key', key], box, env);
    assert.is(exitCode, 0, stderr);
    const text = stderr.replaceAll(/\s+/g, ' ');
    assert.is(text.includes('our.key is not encrypted: anyone who can read it can sign; '), told, stderr);
  }
});

test('a locked key signs by its passphrase, which is printed nowhere', async () => {
  await using box = await boxWith([tracer('aaa')]);
  await runTraced(['keygen'], box, { CURLEW_KEY_PASSPHRASE: 'correct horse' });
  const sign = ['sign', 'b.tar.gz', '--key', 'curlew.key'];
  await refused(box, sign, /read the key curlew\.key: it is encrypted/);
  const wrong = await runTraced(sign, box, { CURLEW_KEY_PASSPHRASE: 'wrong battery' });
  assert.is(wrong.exitCode, INVALID);
  assert.not.match(wrong.stderr, 'battery');
  assert.is((await curlew(sign, traced(box, { CURLEW_KEY_PASSPHRASE: 'correct horse' }))).exitCode, 0);
  assert.match(
    (await curlew(['verify', 'b.tar.gz', '--key', 'curlew.pub'], traced(box))).stdout,
    /^signed with .*curlew\.pub$/m,
  );
});

test('verify tells a signature that holds from all others', async () => {
  await using box = await signedBox();
  const held = await runTraced(['verify', 'b.tar.gz', '--key', 'their.pub', '--key', 'our.pub'], box);
  assert.match(held.stdout, /^signed with .*our\.pub$/m);
  await refused(box, ['verify', 'b.tar.gz', '--key', 'their.pub'], /was not made with .*their\.pub/);
  await refused(
    box,
    ['verify', 'other.tar.gz', '--key', 'our.pub'],
    /there is no signature .*other\.tar\.gz\.sigstore\.json/,
  );
  const swapped = ['verify', 'other.tar.gz', '--key', 'our.pub', '--signature', 'b.tar.gz.sigstore.json'];
  await refused(box, swapped, /belongs to another file/);
  await refused(box, ['verify', 'b.tar.gz', '--key', 'our.key'], /it is a private key/);
  const unnamed = await runTraced(['verify', 'b.tar.gz', '--require-signed'], box);
  assert.is(unnamed.exitCode, 64);
  assert.match(unnamed.stderr, 'no key to verify signatures');
});

test('only what is whole is signed', async () => {
  await using box = await signedBox();
  const bytes = await readFile(box.at('other.tar.gz'));
  bytes[600] = (bytes[600] ?? 0) ^ 1;
  await writeFile(box.at('other.tar.gz'), bytes);
  const { exitCode } = await runTraced(['sign', 'other.tar.gz', '--key', 'our.key'], box);
  assert.ok(exitCode === 15 || exitCode === 16, String(exitCode));
  assert.ok(await isMissing(box.at('other.tar.gz.sigstore.json')));
});

test('a run that asks for a signature takes the signed bundle, and nothing before it has looked', async () => {
  await using box = await signedBox();
  await refused(box, installing('--bundle', 'other.tar.gz', '--key', 'our.pub'), /there is no signature/);
  await refused(box, installing('--bundle', 'b.tar.gz', '--key', 'their.pub'), /was not made with/);
  assert.ok(await isMissing(box.at('root')), 'something was made');
  const done = await curlew(installing('--bundle', 'b.tar.gz', '--key', 'our.pub', '--require-signed'), traced(box));
  assert.match(done.stdout, /^aaa {2}1\.0\.0 {2}installed/);
});

test('an unpacked bundle is held to the signature of its table of contents', async () => {
  await using box = await signedBox();
  await mkdir(box.at('unpacked'));
  await execa('tar', ['xzf', box.at('b.tar.gz'), '-C', box.at('unpacked')]);
  const words = installing('--dir', 'unpacked', '--key', 'our.pub');
  await refused(box, words, /there is no signature .*unpacked\/stargz\.index\.json\.sigstore\.json/);
  const named = [...words, '--signature', 'b.tar.gz.sigstore.json'];
  await writeFile(box.at('unpacked/addons/aaa/1.0.0/install.sh'), 'aaa() { : ; }\n');
  assert.match((await runTraced(named, box)).stderr, /^error DIGEST_MISMATCH: /m);
  await execa('tar', ['xzf', box.at('b.tar.gz'), '-C', box.at('unpacked')]);
  const verify = ['verify', 'unpacked', '--key', 'our.pub'];
  await refused(box, verify, /there is no signature .*unpacked\/stargz\.index\.json\.sigstore\.json/);
  const { stdout } = await runTraced([...verify, '--signature', 'b.tar.gz.sigstore.json'], box);
  assert.match(stdout, /^unpacked: ok, [^]*\nsigned with .*our\.pub/);
  assert.match((await runTraced(named, box)).stdout, /^aaa {2}1\.0\.0 {2}installed/);
});

test('a configuration that names keys lets nothing unsigned in, wherever it comes from', async () => {
  await using box = await signedBox();
  await mkdir(box.at('.config/curlew'), { recursive: true });
  await writeFile(box.at('.config/curlew/config.json'), '{"trustedKeys": ["../../our.pub"]}');
  await refused(box, installing('--bundle', 'other.tar.gz'), /there is no signature/);
  await refused(box, ['preflight', '--bundle', 'other.tar.gz'], /there is no signature/);
  await refused(box, ['load-images', '--bundle', 'other.tar.gz', '--dry-run'], /there is no signature/);
  await mkdir(box.at('kurl/addons'), { recursive: true });
  await refused(
    box,
    ['load-images', '--dir', 'kurl', '--dry-run'],
    /has no stargz\.index\.json, which a signature covers/,
  );
  await writeFile(box.at('spec.yaml'), specOf([{ name: 'aaa', version: '1.0.0' }]));
  await mkdir(box.at('store'));
  await writeFile(box.at('store/VERSION'), 'r1');
  await refused(box, installing('--from', 'store', '--installer', 'spec.yaml'), /the signature VERSION/);
  assert.is((await runTraced(installing('--bundle', 'b.tar.gz'), box)).exitCode, 0);
});

test.run();
