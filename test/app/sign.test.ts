/** What `curlew sign` makes of the content of a fleet is what an agent with that key accepts. */
import { readFile } from 'node:fs/promises';
import { signFiles } from '../../src/app/sign.ts';
import type { Context } from '../../src/core/context.ts';
import { digestOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { makeKeyPair, readPublicKey } from '../../src/formats/signing/keys.ts';
import { verifyText } from '../../src/formats/signing/signature.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/sign');
const PAGE = 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: page }\n';
const pair = makeKeyPair(undefined);

test('a manifest and the archive of a chart are signed by their bytes, as an agent verifies them', async ({
  signal,
}) => {
  const files = { 'web.yaml': PAGE, 'web-1.4.2.tgz': 'bytes of a chart', 'our.key': pair.privateKey };
  await using box = await tree(files);
  const context: Context = { signal, report: noReport, env: {}, cwd: box.path };
  const signed = await signFiles({ files: ['web.yaml', 'web-1.4.2.tgz'], key: 'our.key' }, context);
  const trusted = [readPublicKey(pair.publicKey, 'our.pub')];
  for (const [at, name] of (['web.yaml', 'web-1.4.2.tgz'] as const).entries()) {
    const from = `${name}.sigstore.json`;
    assert.equal(signed[at], { path: name, signature: from, role: 'content', sha256: digestOf(files[name]) });
    const signature = await readFile(box.at(from), 'utf8');
    assert.is(verifyText({ name, text: Buffer.from(files[name]), signature, from }, trusted).name, 'our.pub');
  }
});

test('after Ctrl-C, sign says which files are signed, or that nothing was written', async () => {
  await using box = await tree({ 'web.yaml': PAGE, 'b.tar.gz': 'x', 'our.key': pair.privateKey });
  for (const [files, said, hint] of [
    [['web.yaml', 'b.tar.gz'], 'canceled', 'signed: web.yaml; the same command signs all files again'],
    [['b.tar.gz', 'web.yaml'], 'canceled; nothing was written', undefined],
  ] as const) {
    const stop = new AbortController();
    const report: Context['report'] = ({ type }) => {
      if (type === 'step-started') stop.abort(new CurlewError('CANCELLED', 'canceled'));
    };
    const context: Context = { signal: stop.signal, report, env: {}, cwd: box.path };
    const error = await assert.rejectsWith(signFiles({ files, key: 'our.key' }, context), 'CANCELLED');
    assert.equal([error.message, error.hint], [said, hint]);
  }
});

test('what says no name, version or time is refused with them, and other files and installer specs as before', async ({
  signal,
}) => {
  const spec = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\n';
  await using box = await tree({ 'web.yaml': PAGE, 'web.txt': PAGE, 'spec.yaml': spec, 'our.key': pair.privateKey });
  const context: Context = { signal, report: noReport, env: {}, cwd: box.path };
  const sign = async (file: string, more = {}): Promise<unknown> =>
    signFiles({ files: [file], key: 'our.key', ...more }, context);
  await assert.rejectsWith(sign('web.yaml', { expires: 1000 }), 'USAGE', /sign web\.yaml: --expires is for packages/);
  await assert.rejectsWith(sign('web.txt'), 'PACKAGE_INVALID', /web\.txt: not a package or bundle of curlew/);
  await assert.rejectsWith(sign('spec.yaml'), 'PACKAGE_INVALID', /is an installer spec/);
});

test.run();
