/** Certificate authorities: what OpenSSL and Node read in them. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { makeAuthority } from '../../../src/formats/signing/authority.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

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

test.run();
