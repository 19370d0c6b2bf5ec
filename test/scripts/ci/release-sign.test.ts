/** How curlew's own releases are signed, and how whoever has downloaded one holds it against the public key. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import { makeKeyPair, readPublicKey } from '../../../src/formats/signing/keys.ts';
import { verifyStatement, type Statement } from '../../../src/formats/signing/statement.ts';
import * as assert from '../../support/assert.ts';
import { ci } from '../../support/ci.ts';
import type { Outcome } from '../../support/curlew.ts';
import { missing, unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

// not fast: clones and builds
const test = suite('scripts/ci/release-sign and release-publish', { timeoutMs: 120_000 });
const ROOT = join(import.meta.dirname, '../../..');
const { privateKey, publicKey } = makeKeyPair(undefined);
const FILES = ['curlew-1.2.3-linux-amd64.tar.gz', 'curlew-1.2.3-linux-arm64.tar.gz', 'curlew-1.2.3.tgz'];
const PROVENANCE = 'curlew-1.2.3.provenance.sigstore.json';
const JOB = {
  GITHUB_ACTIONS: 'true',
  GITHUB_SERVER_URL: 'https://forge.example',
  GITHUB_REPOSITORY: 'we/curlew',
  GITHUB_WORKFLOW_REF: 'we/curlew/.github/workflows/release.yml@refs/tags/v1.2.3',
  GITHUB_REF: 'refs/tags/v1.2.3',
  GITHUB_SHA: 'a'.repeat(40),
  GITHUB_RUN_ID: '7',
};
const checked = unless(missing('openssl'), test);

/** A checkout with a release that scripts/ci/release-pack could have made, and a `gh` that writes down its words. */
async function packed(): Promise<Tree> {
  const box = await tree({
    'package.json': '{"version":"1.2.3"}',
    'docs/release.pub': publicKey,
    'bin/gh': '#!/bin/sh\nprintf "%s\\n" "$*" >"$HOME/gh"\n',
    'release/curlew-1.2.3.tgz': 'npm package',
  });
  for (const arch of ['amd64', 'arm64']) {
    await mkdir(box.at(arch, 'bin'), { recursive: true });
    await writeFile(box.at(arch, 'bin/curlew'), `curlew for ${arch}`);
    await execa('tar', ['-czf', `../release/curlew-1.2.3-linux-${arch}.tar.gz`, 'bin'], { cwd: box.at(arch) });
  }
  await execa('bash', ['-c', 'sha256sum -- curlew-* >SHA256SUMS'], { cwd: box.at('release') });
  return box;
}

async function sign(box: Tree, env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const outcome = await ci(box, ['release-sign', 'release'], { CURLEW_RELEASE_KEY: privateKey, ...JOB, ...env }, ROOT);
  const [, secret = '-'] = privateKey.split('\n');
  assert.not.match(outcome.stdout + outcome.stderr, secret);
  return outcome;
}

async function publish(box: Tree): Promise<Outcome> {
  const env = { PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}` };
  return ci(box, ['release-publish', 'v1.2.3', 'release'], env, ROOT);
}

async function provenance(box: Tree): Promise<Statement> {
  const text = await readFile(box.at('release', PROVENANCE), 'utf8');
  const keys = [readPublicKey(publicKey, 'release.pub')];
  return verifyStatement({ text, from: PROVENANCE, about: 'the release' }, keys, (found) => found, '').statement;
}

test('the provenance names every file, the executables inside, the job and what it was made from', async () => {
  await using box = await packed();
  const { exitCode, stdout, stderr } = await sign(box);
  assert.is(exitCode, 0, stdout + stderr);
  const { subjects, predicateType, predicate } = await provenance(box);
  const found = Object.fromEntries(subjects.map(({ name, digest }) => [name, digest]));
  assert.equal(Object.keys(found), [...FILES, 'SHA256SUMS', 'curlew-linux-amd64', 'curlew-linux-arm64']);
  for (const name of [...FILES, 'SHA256SUMS']) {
    assert.is(found[name], digestOf(await readFile(box.at('release', name))));
  }
  assert.is(found['curlew-linux-arm64'], digestOf('curlew for arm64'));
  assert.is(predicateType, 'https://slsa.dev/provenance/v1');
  const text = JSON.stringify(predicate);
  assert.match(
    text,
    '"builder":{"id":"https://forge.example/we/curlew/.github/workflows/release.yml@refs/tags/v1.2.3"}',
  );
  assert.match(text, `"digest":{"gitCommit":"${JOB.GITHUB_SHA}"},"uri":"git+https://forge.example/we/curlew@`);
  assert.match(text, /"uri":"https:\/\/nodejs\.org\/dist\/v[\d.]+\/node-v[\d.]+-linux-arm64\.tar\.gz"/);
});

checked('openssl and sha256sum are enough to tell a release from anything else', async () => {
  await using box = await packed();
  assert.is((await sign(box)).exitCode, 0);
  const line = 'openssl dgst -sha256 -verify ../docs/release.pub -signature SHA256SUMS.sig SHA256SUMS';
  const verify = `${line} && sha256sum --check --ignore-missing --strict SHA256SUMS`;
  const run = async (): Promise<number | undefined> =>
    (await execa('bash', ['-c', verify], { cwd: box.at('release'), reject: false })).exitCode;
  assert.is(await run(), 0);
  await writeFile(box.at('release/curlew-1.2.3.tgz'), 'another package');
  assert.is(await run(), 1);
  const sums = await readFile(box.at('release/SHA256SUMS'), 'utf8');
  const [old, other] = ['npm package', 'another package'].map((content) => hexOf(digestOf(content)));
  await writeFile(box.at('release/SHA256SUMS'), sums.replace(old ?? '-', other ?? '-'));
  assert.is(await run(), 1);
});

test('an encrypted key is unlocked by its passphrase', async () => {
  await using box = await packed();
  const pair = makeKeyPair('hush-hush');
  await writeFile(box.at('docs/release.pub'), pair.publicKey);
  const env = { CURLEW_RELEASE_KEY: pair.privateKey, CURLEW_KEY_PASSPHRASE: 'hush-hush' };
  const { exitCode, stdout, stderr } = await sign(box, env);
  assert.is(exitCode, 0, stderr);
  assert.not.match(stdout + stderr, 'hush-hush');
});

for (const [title, env, said] of [
  ['no key', { CURLEW_RELEASE_KEY: '' }, 'CURLEW_RELEASE_KEY is not set'],
  [
    'another key',
    { CURLEW_RELEASE_KEY: makeKeyPair(undefined).privateKey },
    'is not the private key of docs/release.pub',
  ],
  ['no key but its public part', { CURLEW_RELEASE_KEY: publicKey }, 'it is a public key'],
] as const) {
  test(`with ${title} nothing is signed`, async () => {
    await using box = await packed();
    const { exitCode, stderr } = await sign(box, env);
    assert.is(exitCode, 1);
    assert.match(stderr, said);
    assert.equal((await readdir(box.at('release'))).toSorted(), ['SHA256SUMS', ...FILES]);
  });
}

test('without a public key in the checkout it is said how to make one', async () => {
  await using box = await packed();
  await rm(box.at('docs/release.pub'));
  const { exitCode, stderr } = await sign(box);
  assert.is(exitCode, 1);
  assert.match(stderr, 'docs/release.pub is missing: make keys with curlew keygen');
});

test('files that are not those of the list are not signed', async () => {
  await using box = await packed();
  await writeFile(box.at('release/curlew-1.2.3.tgz'), 'another package');
  assert.is((await sign(box)).exitCode, 1);
  assert.not.ok(existsSync(box.at('release', PROVENANCE)));
});

checked('what is signed is published, with its signatures and nothing else', async () => {
  await using box = await packed();
  await sign(box);
  await writeFile(box.at('release/install-me.sh'), 'left by somebody');
  const { exitCode, stderr } = await publish(box);
  assert.is(exitCode, 0, stderr);
  const names = [...FILES, 'SHA256SUMS', 'SHA256SUMS.sig', PROVENANCE];
  const said = await readFile(box.at('gh'), 'utf8');
  assert.match(said, names.map((name) => `release/${name}`).join(' '));
  assert.not.match(said, 'install-me');
});

checked('a list that names a file elsewhere is not published', async () => {
  await using box = await packed();
  const elsewhere = 'printf "%s  ../package.json\\n" "$(sha256sum ../package.json | cut -c 1-64)" >>SHA256SUMS';
  await execa('bash', ['-c', elsewhere], { cwd: box.at('release') });
  assert.is((await sign(box)).exitCode, 0);
  const { exitCode, stderr } = await publish(box);
  assert.is(exitCode, 1);
  assert.match(stderr, 'not the name of a file of the release: ../package.json');
  assert.not.ok(existsSync(box.at('gh')));
});

for (const [title, damage] of [
  ['is not signed', async (box: Tree) => rm(box.at('release/SHA256SUMS.sig'))],
  ['has no provenance', async (box: Tree) => rm(box.at('release', PROVENANCE))],
  [
    'is signed with another key',
    async (box: Tree) => writeFile(box.at('docs/release.pub'), makeKeyPair(undefined).publicKey),
  ],
] as const) {
  checked(`a release that ${title} is not published`, async () => {
    await using box = await packed();
    await sign(box);
    await damage(box);
    assert.is((await publish(box)).exitCode, 1);
    assert.not.ok(existsSync(box.at('gh')));
  });
}

test.run();
