/**
 * The bundles that sigstore-conformance stores for its clients: as hostile input for `curlew verify`, and those by a key as its
 * protocol wants them, by the check that agents make of manifests.
 */
import { execa } from 'execa';
import { X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requireRefusal } from '../../../src/core/errors.ts';
import { readPublicKey } from '../../../src/formats/signing/keys.ts';
import { verifyText } from '../../../src/formats/signing/signature.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { tracer } from '../../support/node-install.ts';
import { runCommand } from '../../support/run-command.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { ROOT } from '../support/programs.ts';
import { assertSays } from '../support/proof.ts';

const test = suite('components/proof/sigstore', { timeoutMs: 120_000 });
const CASES = 'bundle-verify';
const BUNDLE = 'bundle.sigstore.json';

async function boxOfCases(): Promise<{ readonly box: Tree; readonly names: readonly string[] }> {
  const box = await tree({ 'b.tar.gz': bundleOf([tracer('aaa')]) });
  await execa('tar', ['-xzf', join(ROOT, `test/fixtures/sigstore-conformance/${CASES}.tar.gz`), '-C', box.path]);
  const found = await readdir(box.at(CASES), { withFileTypes: true });
  const names = found.filter((one) => one.isDirectory()).map(({ name }) => name);
  assert.is((await runCommand(['keygen', 'our'], box.path)).exitCode, 0);
  return { box, names: names.sort() };
}

/** The trusted key that made the signature over the text; undefined if curlew refuses it. */
async function signerOf(text: Uint8Array, bundle: string, keyFiles: readonly string[]): Promise<string | undefined> {
  const signature = await readFile(bundle, 'utf8');
  try {
    const keys = await Promise.all(keyFiles.map(async (file) => readPublicKey(await readFile(file, 'utf8'), file)));
    return verifyText({ name: 'the text', text, signature, from: bundle }, keys).name;
  } catch (error) {
    requireRefusal(error, never);
    return undefined;
  }
}

test('every bundle is refused for a bundle of ours, and a signature by a key is accepted for its own text', async () => {
  const { box, names } = await boxOfCases();
  await using _box = box;
  const refused: string[] = [];
  const right: string[] = [];
  const keyed = names.filter((name) => name.startsWith('managed-key'));
  for (const name of names) {
    const key = existsSync(box.at(CASES, name, 'key.pub')) ? join(CASES, name, 'key.pub') : 'our.pub';
    const words = ['verify', 'b.tar.gz', '--key', key, '--signature', join(CASES, name, BUNDLE)];
    const { exitCode, stderr } = await runCommand(words, box.path);
    if (exitCode === 30 && !/^\s+at /m.test(stderr)) refused.push(name);
  }
  const text = await readFile(box.at(CASES, 'a.txt'));
  for (const name of keyed) {
    const keys = [box.at(CASES, name, 'key.pub')].filter((file) => existsSync(file));
    const signer = await signerOf(text, box.at(CASES, name, BUNDLE), keys);
    if ((signer === undefined) === name.endsWith('_fail')) right.push(name);
  }
  const said = `${refused.length} of ${names.length} refused; by a key: ${right.length} of ${keyed.length} as expected`;
  assertSays('sigstore', said, names.filter((name) => !refused.includes(name)).join('\n'));
});

test('an envelope is refused whose signature is not by the key of its certificate, also if that key is trusted', async () => {
  const { box, names } = await boxOfCases();
  await using _box = box;
  const badSignatures = names.filter((name) => name.endsWith('dsse-invalid-sig_fail'));
  assert.is(badSignatures.length, 2);
  for (const name of badSignatures) {
    const text = await readFile(box.at(CASES, name, BUNDLE), 'utf8');
    const { verificationMaterial } = JSON.parse(text) as {
      verificationMaterial: { certificate: { rawBytes: string } };
    };
    const { publicKey } = new X509Certificate(Buffer.from(verificationMaterial.certificate.rawBytes, 'base64'));
    await writeFile(box.at('certificate.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
    const words = ['verify', 'b.tar.gz', '--key', 'certificate.pub', '--signature', join(CASES, name, BUNDLE)];
    const { exitCode, stderr } = await runCommand(words, box.path);
    assert.equal([exitCode, stderr.includes('was not made with')], [30, true], stderr);
  }
});

test.run();
