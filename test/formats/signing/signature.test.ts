import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { makeKeyPair, readPrivateKey, readPublicKey } from '../../../src/formats/signing/keys.ts';
import { signText, verifyText } from '../../../src/formats/signing/signature.ts';

const test = suite('signatures');
const text = Buffer.from('{"version":1,"entries":[]}');
const ours = makeKeyPair(undefined);
const signature = signText(text, readPrivateKey(ours.privateKey, 'ours.key', undefined));
const trusted = [readPublicKey(ours.publicKey, 'ours.pub')];

function check(over: { text?: Uint8Array; signature?: string } = {}, keys = trusted): string {
  return verifyText({ name: 'b.tar.gz', text, signature, from: 's.json', ...over }, keys).name;
}

test('hold for the text and the key that made them, whichever of the trusted ones that is', () => {
  const other = readPublicKey(makeKeyPair(undefined).publicKey, 'other.pub');
  assert.is(check({}, [other, ...trusted]), 'ours.pub');
});

test('are Sigstore bundles that name the digest and the key', () => {
  const digest = createHash('sha256').update(text).digest('base64');
  const der = createPublicKey(ours.publicKey).export({ type: 'spki', format: 'der' });
  const { messageSignature, ...others } = JSON.parse(signature) as { messageSignature: { messageDigest: unknown } };
  assert.equal(messageSignature.messageDigest, { algorithm: 'SHA2_256', digest });
  assert.equal(others, {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint: createHash('sha256').update(der).digest('base64') } },
  });
});

test('of another text are refused, and so are those of keys that nobody trusts', () => {
  const changed = Buffer.from(text.toString().replace('1', '2'));
  assert.throwsWith(
    () => check({ text: changed }),
    'SIGNATURE_INVALID',
    /verify b\.tar\.gz: the signature s\.json belongs to another file/,
  );
  const other = readPublicKey(makeKeyPair(undefined).publicKey, 'other.pub');
  assert.throwsWith(
    () => check({}, [other]),
    'SIGNATURE_INVALID',
    /the signature s\.json was not made with other\.pub/,
  );
});

test('of another text with the digest put right are refused', () => {
  const changed = Buffer.from('{"version":1,"entries":[{}]}');
  const forged = JSON.parse(signature) as { messageSignature: { messageDigest: { digest: string } } };
  forged.messageSignature.messageDigest.digest = createHash('sha256').update(changed).digest('base64');
  assert.throwsWith(
    () => check({ text: changed, signature: JSON.stringify(forged) }),
    'SIGNATURE_INVALID',
    /was not made with ours\.pub/,
  );
});

test('with any bit of theirs flipped are refused', () => {
  const bytes = Buffer.from(
    (JSON.parse(signature) as { messageSignature: { signature: string } }).messageSignature.signature,
    'base64',
  );
  const bundle = JSON.parse(signature) as { messageSignature: { signature: string } };
  for (let at = 0; at < bytes.byteLength * 8; at += 1) {
    const flipped = Buffer.from(bytes);
    flipped[at >> 3] = (flipped[at >> 3] ?? 0) ^ (1 << (at & 7));
    bundle.messageSignature.signature = flipped.toString('base64');
    assert.throwsWith(() => check({ signature: JSON.stringify(bundle) }), 'SIGNATURE_INVALID', /was not made with/);
  }
});

for (const [what, change, message] of [
  ['text that is not JSON', () => '{', /: not JSON/],
  ['a list', () => '[]', /: not an object/],
  ['another version', (all: string) => all.replace('v0.3', 'v9'), /mediaType: not "application/],
  [
    'an attestation',
    () => '{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":{}}',
    /messageSignature: missing/,
  ],
  ['another hash', (all: string) => all.replace('SHA2_256', 'SHA2_384'), /messageDigest\.algorithm: not "SHA2_256"/],
  ['a short digest', (all: string) => all.replace(/"digest":"[^"]+"/, '"digest":"AAAA"'), /its digest is damaged/],
  [
    'no base64',
    (all: string) => all.replace(/"signature":"./, '"signature":"*'),
    /messageSignature\.signature: not base64/,
  ],
] as const) {
  test(`that are ${what} are refused`, () => {
    assert.throwsWith(() => check({ signature: change(signature) }), 'SIGNATURE_INVALID', message);
  });
}

test('are made with a locked key only by its passphrase', () => {
  const { privateKey } = makeKeyPair('correct horse');
  assert.ok(readPrivateKey(privateKey, 'k', 'correct horse').type === 'private');
  assert.throwsWith(
    () => readPrivateKey(privateKey, 'k', 'wrong'),
    'SIGNATURE_INVALID',
    /read the key k: the passphrase is wrong, or the key is damaged$/,
  );
  assert.throwsWith(
    () => readPrivateKey(privateKey, 'k', undefined),
    'SIGNATURE_INVALID',
    /read the key k: it is encrypted/,
  );
});

test('need a key of the right kind', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const p384 = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
  for (const { publicKey, privateKey } of [rsa, p384]) {
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    assert.throwsWith(() => readPublicKey(pem, 'k'), 'SIGNATURE_INVALID', /not an ECDSA P-256 key/);
    const secret = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    assert.throwsWith(() => readPrivateKey(secret, 'k', undefined), 'SIGNATURE_INVALID', /not an ECDSA P-256 key/);
  }
  assert.throwsWith(() => readPublicKey(ours.privateKey, 'k'), 'SIGNATURE_INVALID', /it is a private key/);
  assert.throwsWith(() => readPrivateKey(ours.publicKey, 'k', undefined), 'SIGNATURE_INVALID', /it is a public key/);
  assert.throwsWith(
    () => readPublicKey('ssh-ed25519 AAAA', 'k'),
    'SIGNATURE_INVALID',
    /it is not a public key in PEM format$/,
  );
  assert.throwsWith(
    () => readPrivateKey('', 'k', undefined),
    'SIGNATURE_INVALID',
    /it is not a private key in PEM format$/,
  );
  const sealed = '-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAA==\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----';
  assert.throwsWith(() => readPrivateKey(sealed, 'k', 'x'), 'SIGNATURE_INVALID', /encrypted in cosign's own format/);
});

test('that OpenSSL cannot read are refused in words of our own, with what to do', () => {
  const broken = (kind: string): string => `-----BEGIN ${kind} KEY-----\nZZZZ\n-----END ${kind} KEY-----\n`;
  const reads = [
    ...['apiVersion: v1', broken('PRIVATE'), broken('OPENSSH PRIVATE')].map((pem) => [pem, undefined] as const),
    [broken('PRIVATE'), 'a passphrase that nothing asked for'],
    [makeKeyPair('right').privateKey, 'wrong'],
  ] as const;
  for (const read of [
    ...reads.map(
      ([pem, passphrase]) =>
        () =>
          readPrivateKey(pem, 'k', passphrase),
    ),
    ...['apiVersion: v1', broken('PUBLIC'), 'ssh-ed25519 AAAA'].map((pem) => () => readPublicKey(pem, 'k')),
  ]) {
    const { message, hint, cause } = assert.throwsWith(read, 'SIGNATURE_INVALID');
    assert.not.match(`${message} ${String(cause)}`, /routines|DECODER|asn1/);
    assert.ok(hint, message);
  }
});

test.run();
