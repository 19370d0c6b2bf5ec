/** Certificate authorities: what OpenSSL and Node read in them. */
import { execFile } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { secret } from '../../../src/core/secret.ts';
import { makeAuthority, readSigner, signClient } from '../../../src/formats/signing/authority.ts';
import * as assert from '../../support/assert.ts';
import { missing, unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const run = promisify(execFile);
const test = suite('formats/signing/authority');

test('an authority signs itself, has its key, its name and its time, and may sign others', () => {
  const now = Date.parse('2026-03-01T12:00:00Z');
  const { certificate, key } = makeAuthority('web.example', { days: 365, now });
  const read = new X509Certificate(certificate);
  assert.ok(read.verify(read.publicKey));
  assert.ok(read.checkPrivateKey(createPrivateKey(key.reveal())));
  assert.ok(read.ca);
  assert.ok(read.checkIssued(read));
  assert.equal(
    [read.subject, read.issuer, read.subjectAltName],
    ['CN=web.example', 'CN=web.example', 'DNS:web.example'],
  );
  assert.equal([Date.parse(read.validFrom), Date.parse(read.validTo)], [now - 3_600_000, now + 365 * 86_400_000]);
});

test('names of every length are encoded, and years beyond 2049', () => {
  for (const length of [1, 50, 63, 120, 126, 127, 128, 253]) {
    const name = 'n'.repeat(length);
    const read = new X509Certificate(makeAuthority(name, { days: 36_500 }).certificate);
    assert.ok(read.verify(read.publicKey), String(length));
    assert.is(read.subjectAltName, `DNS:${name}`);
  }
});

test('each authority has a key and a number of its own', () => {
  const serials = Array.from(
    { length: 20 },
    () => new X509Certificate(makeAuthority('a', { days: 1 }).certificate).serialNumber,
  );
  assert.is(new Set(serials).size, 20);
});

const CLIENT = { commonName: 'agent', organizations: ['a', 'b'], units: ['u'] };

unless(missing('openssl'), test)(
  'OpenSSL takes a certificate of a client by authorities of RSA and of each curve',
  async () => {
    await using box = await tree();
    for (const [index, key] of [['rsa:2048'], ['ec', 'P-256'], ['ec', 'P-384'], ['ec', 'P-521']].entries()) {
      const [crt, pem] = [box.at(`ca-${index}.crt`), box.at(`ca-${index}.key`)];
      const curve = key[1] === undefined ? [] : ['-pkeyopt', `ec_paramgen_curve:${key[1]}`];
      const name = [
        '-subj',
        '/O=Example/CN=agents',
        '-days',
        '2',
        '-nodes',
        '-addext',
        'keyUsage=critical,keyCertSign',
      ];
      await run('openssl', ['req', '-x509', '-newkey', key[0] ?? '', ...curve, ...name, '-keyout', pem, '-out', crt]);
      const texts = { certificate: await readFile(crt, 'utf8'), key: secret(await readFile(pem, 'utf8')) };
      const signer = readSigner(texts, Date.now() + 1000);
      if ('problem' in signer) throw new Error(signer.problem);
      const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const made = signClient(signer, { subject: CLIENT, key: publicKey }, { lifeS: 3600, now: Date.now() });
      await writeFile(box.at('client.crt'), made);
      const verify = ['verify', '-x509_strict', '-CAfile', crt, '-purpose'];
      await run('openssl', [...verify, 'sslclient', box.at('client.crt')]);
      const asServer = run('openssl', [...verify, 'sslserver', box.at('client.crt')]);
      assert.is(
        await asServer.then(
          () => 'taken',
          () => 'refused',
        ),
        'refused',
      );
      assert.is(new X509Certificate(made).subject, 'O=a\nO=b\nOU=u\nCN=agent');
    }
  },
);

test('a certificate ends with its authority', () => {
  const now = Date.parse('2026-03-01T12:00:00Z');
  const { certificate, key } = makeAuthority('agents', { days: 0.5, now });
  const signer = readSigner({ certificate, key }, now);
  if ('problem' in signer) throw new Error(signer.problem);
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const made = new X509Certificate(signClient(signer, { subject: CLIENT, key: publicKey }, { lifeS: 86_400, now }));
  assert.equal([Date.parse(made.validFrom), Date.parse(made.validTo)], [now - 300_000, now + 43_200_000]);
});

test.run();
