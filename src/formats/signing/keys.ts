/** Keys of ECDSA on P-256, as PEM: the kind that cosign makes, too. */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';

/** What OpenSSL calls P-256. */
const CURVE = 'prime256v1';

export interface KeyPair {
  /** PKCS#8; encrypted where a passphrase was given. */
  readonly privateKey: string;
  readonly publicKey: string;
}

/** A new pair. Without a passphrase whoever reads the private key can sign. */
export function makeKeyPair(passphrase: string | undefined): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: CURVE });
  const locked = passphrase === undefined ? {} : ({ cipher: 'aes-256-cbc', passphrase } as const);
  return {
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem', ...locked }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/** A public key that signatures are held against. */
export interface TrustedKey {
  /** Where it was read from, for messages. */
  readonly name: string;
  readonly key: KeyObject;
}

/** Reads the PEM of a private key; `name` is where it comes from. What cannot be used is `SIGNATURE_INVALID`. */
export function readPrivateKey(pem: string, name: string, passphrase: string | undefined): KeyObject {
  if (/-----BEGIN ENCRYPTED (?:SIGSTORE|COSIGN) PRIVATE KEY-----/.test(pem)) {
    throw unusable(name, 'it is encrypted as only cosign does it', {
      hint: 'sign with cosign sign-blob --bundle; its signatures are taken',
    });
  }
  if (pem.includes('-----BEGIN ENCRYPTED PRIVATE KEY-----') && passphrase === undefined) {
    throw unusable(name, 'it is encrypted', { hint: 'put its passphrase into CURLEW_KEY_PASSPHRASE' });
  }
  if (pem.includes('-----BEGIN PUBLIC KEY-----') && !pem.includes('PRIVATE KEY-----')) {
    throw unusable(name, 'it is a public key', { hint: 'name the private one' });
  }
  try {
    return requireCurve(createPrivateKey({ key: pem, ...(passphrase === undefined ? {} : { passphrase }) }), name);
  } catch (error) {
    if (error instanceof CurlewError) throw error;
    if (passphrase !== undefined && /-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(pem)) {
      throw unusable(name, 'the passphrase is wrong, or the key is damaged', {
        hint: 'put the passphrase that the key was made with into CURLEW_KEY_PASSPHRASE',
      });
    }
    throw unusable(name, 'it is not a private key in PEM', { hint: pemHint(pem, 'curlew keygen makes one') });
  }
}

/** Reads the PEM of a public key. What cannot be used, a private key for one, is `SIGNATURE_INVALID`. */
export function readPublicKey(pem: string, name: string): TrustedKey {
  // A public key would be made of it: the file with the secret is not what is to be handed around.
  if (pem.includes('PRIVATE KEY-----')) throw unusable(name, 'it is a private key', { hint: 'name the public one' });
  try {
    return { name, key: requireCurve(createPublicKey(pem), name) };
  } catch (error) {
    if (error instanceof CurlewError) throw error;
    throw unusable(name, 'it is not a public key in PEM', {
      hint: pemHint(pem, 'name the .pub file that curlew keygen wrote beside the private key'),
    });
  }
}

/** The public part of a key of {@link readPrivateKey}: whoever signs with it trusts it. */
export function publicPart(key: KeyObject, name: string): TrustedKey {
  return { name, key: createPublicKey(key) };
}

function requireCurve(key: KeyObject, name: string): KeyObject {
  if (key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === CURVE) return key;
  throw unusable(name, 'it is not an ECDSA key on P-256', { hint: 'curlew keygen makes one' });
}

/** What to do about a file that OpenSSL cannot read; its own words name nothing that an operator knows. */
function pemHint(pem: string, otherwise: string): string {
  if (/^-----BEGIN OPENSSH |^(?:ssh|ecdsa)-/m.test(pem)) return `it is a key of OpenSSH, for logins: ${otherwise}`;
  if (/-----BEGIN /.test(pem)) return 'the file is damaged, or of another kind: copy it again, or name another';
  return otherwise;
}

function unusable(name: string, what: string, options: { readonly hint: string }): CurlewError {
  return new CurlewError('SIGNATURE_INVALID', `read the key ${name}: ${what}`, options);
}

/** Names a public key in signatures, as Sigstore's clients do: base64 of the sha256 of its DER. */
export function keyHint(key: KeyObject): string {
  const der = (key.type === 'private' ? createPublicKey(key) : key).export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(der).digest('base64');
}
