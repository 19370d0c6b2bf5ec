/** ECDSA P-256 keys in PEM, the same kind as cosign's. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';

/** OpenSSL's name of P-256. */
const CURVE = 'prime256v1';

export interface KeyPair {
  /** PKCS#8; encrypted if a passphrase was given. */
  readonly privateKey: string;
  readonly publicKey: string;
}

/** Creates a key pair. Without a passphrase, anyone who can read the private key can sign. */
export function makeKeyPair(passphrase: string | undefined): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: CURVE });
  const locked = passphrase === undefined ? {} : ({ cipher: 'aes-256-cbc', passphrase } as const);
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem', ...locked }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/** A public key that is trusted to verify signatures. */
export interface TrustedKey {
  /** Where it was read from, for messages. */
  readonly name: string;
  readonly key: KeyObject;
}

/** Reads the PEM of a private key; `name` is its source. `SIGNATURE_INVALID` for an unusable key. */
export function readPrivateKey(pem: string, name: string, passphrase: string | undefined): KeyObject {
  if (/-----BEGIN ENCRYPTED (?:SIGSTORE|COSIGN) PRIVATE KEY-----/.test(pem)) {
    throw unusable(name, "it is encrypted in cosign's own format", {
      hint: 'sign with cosign sign-blob --bundle, whose signatures curlew accepts',
    });
  }
  if (pem.includes('-----BEGIN ENCRYPTED PRIVATE KEY-----') && passphrase === undefined) {
    throw unusable(name, 'it is encrypted', { hint: 'set CURLEW_KEY_PASSPHRASE to its passphrase' });
  }
  if (pem.includes('-----BEGIN PUBLIC KEY-----') && !pem.includes('PRIVATE KEY-----')) {
    throw unusable(name, 'it is a public key', { hint: 'use the private key' });
  }
  try {
    return requireCurve(createPrivateKey({ key: pem, ...(passphrase === undefined ? {} : { passphrase }) }), name);
  } catch (error) {
    if (error instanceof CurlewError) throw error;
    if (passphrase !== undefined && /-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(pem)) {
      throw unusable(name, 'the passphrase is wrong, or the key is damaged', {
        hint: 'set CURLEW_KEY_PASSPHRASE to the passphrase of the key',
      });
    }
    throw unusable(name, 'it is not a private key in PEM format', {
      hint: pemHint(pem, 'create one with curlew keygen'),
    });
  }
}

/** Reads the PEM of a public key. `SIGNATURE_INVALID` for an unusable key, such as a private one. */
export function readPublicKey(pem: string, name: string): TrustedKey {
  // OpenSSL would derive the public key, but a file with the secret should not be distributed.
  if (pem.includes('PRIVATE KEY-----')) throw unusable(name, 'it is a private key', { hint: 'use the public key' });
  try {
    return { name, key: requireCurve(createPublicKey(pem), name) };
  } catch (error) {
    if (error instanceof CurlewError) throw error;
    throw unusable(name, 'it is not a public key in PEM format', {
      hint: pemHint(pem, 'use the .pub file that curlew keygen wrote next to the private key'),
    });
  }
}

/** The public part of a key of {@link readPrivateKey}, which its signer trusts. */
export function publicPart(key: KeyObject, name: string): TrustedKey {
  return { name, key: createPublicKey(key) };
}

function requireCurve(key: KeyObject, name: string): KeyObject {
  if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === CURVE) return key;
  throw unusable(name, 'it is not an ECDSA P-256 key', { hint: 'create one with curlew keygen' });
}

/** The hint for a file that OpenSSL cannot read; its own messages do not help operators. */
function pemHint(pem: string, otherwise: string): string {
  if (/^-----BEGIN OPENSSH |^(?:ssh|ecdsa)-/m.test(pem)) return `it is an OpenSSH key for logins: ${otherwise}`;
  if (/-----BEGIN /.test(pem)) return 'the file is damaged or of another type: copy it again or use another file';
  return otherwise;
}

function unusable(name: string, what: string, options: { readonly hint: string }): CurlewError {
  return new CurlewError('SIGNATURE_INVALID', `cannot read the key ${name}: ${what}`, options);
}

/** Identifies a public key in signatures, like Sigstore's clients: base64 of the sha256 of its DER. */
export function keyHint(key: KeyObject): string {
  const der = (key.type === 'private' ? createPublicKey(key) : key).export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(der).digest('base64');
}
