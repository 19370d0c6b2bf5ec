/**
 * Files in format 1 of age (age-encryption.org/v1) for X25519 recipients, which `age --decrypt` opens, too. Its primitives are those of Node,
 * so that no package is added to what runs as root on nodes.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
  type KeyObject,
} from 'node:crypto';
import { CurlewError } from '../../core/errors.ts';
import { createByteReader, type ByteReader } from '../../formats/archive/byte-reader.ts';
import { bech32Data } from './bech32.ts';

/** Begins each file. */
export const AGE_HEADER = 'age-encryption.org/v1\n';
const KEY_BYTES = 16;
const TAG_BYTES = 16;
const SHARE_BYTES = 32;
const CHUNK_BYTES = 64 * 1024;
const CIPHER = 'chacha20-poly1305';
const MAX_HEADER = 64 * 1024;
/** DER before the bytes of a key. */
const PUBLIC = Buffer.from('302a300506032b656e032100', 'hex');
const SECRET = Buffer.from('302e020100300506032b656e04220420', 'hex');

/** `USAGE` for a text that is no recipient, such as that of an SSH key. */
export function ageRecipient(text: string): KeyObject {
  const data = bech32Data(text, 'age');
  if (data?.length === SHARE_BYTES) return publicKey(data);
  throw new CurlewError('USAGE', `${text.slice(0, 80)} is not a recipient of age`, {
    hint: 'age-keygen prints one as the public key: age1…',
  });
}

/** The identities in a file of age-keygen; `CLUSTER_FAILED` if it has none, or others. */
export function ageIdentities(text: string, name: string): readonly KeyObject[] {
  const lines = text.split('\n').map((line) => line.trim());
  const identities = lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => bech32Data(line.toLowerCase(), 'age-secret-key-'));
  const keys = identities.flatMap((data) =>
    data?.length === SHARE_BYTES
      ? [createPrivateKey({ key: Buffer.concat([SECRET, data]), format: 'der', type: 'pkcs8' })]
      : [],
  );
  if (keys.length > 0 && keys.length === identities.length) return keys;
  throw new CurlewError('CLUSTER_FAILED', `${name} has no identity of age that curlew reads`, {
    hint: 'use a file of age-keygen without a passphrase; or decrypt first: age --decrypt --identity FILE',
  });
}

export async function* encrypted(
  bytes: AsyncIterable<Uint8Array>,
  recipients: readonly KeyObject[],
): AsyncGenerator<Uint8Array, void, undefined> {
  const fileKey = randomBytes(KEY_BYTES);
  const stanzas = recipients.map((recipient) => {
    const own = generateKeyPairSync('x25519');
    const share = rawOf(own.publicKey);
    const body = seal(fileKey, wrapKey(own.privateKey, recipient, share, rawOf(recipient)), Buffer.alloc(12));
    return `-> X25519 ${base64(share)}\n${base64(body)}\n`;
  });
  const header = `${AGE_HEADER}${stanzas.join('')}---`;
  const nonce = randomBytes(KEY_BYTES);
  yield Buffer.from(`${header} ${base64(macOf(header, fileKey))}\n`);
  yield nonce;
  await using reader = createByteReader(bytes);
  const key = derived(fileKey, nonce, 'payload');
  for await (const [chunk, chunkNonce] of chunksOf(reader, CHUNK_BYTES)) yield seal(chunk, key, chunkNonce);
}

/** Its bytes, by any of the identities. Throws `refuse` for a file that is for none of them, or is not as it was written. */
export async function* decrypted(
  bytes: AsyncIterable<Uint8Array>,
  identities: readonly KeyObject[],
  { refuse, notForThese }: { readonly refuse: (why: string) => Error; readonly notForThese: () => Error },
): AsyncGenerator<Uint8Array, void, undefined> {
  await using reader = createByteReader(bytes);
  const text = await readHeader(reader);
  const [, header, mac = ''] = /^(age-encryption\.org\/v1\n[^]*\n---) ([\w+/]{43})\n$/.exec(text) ?? [];
  if (header === undefined) throw refuse('its header is damaged');
  const fileKey = unwrapped(header, identities);
  if (fileKey === undefined) throw notForThese();
  if (!timingSafeEqual(macOf(header, fileKey), Buffer.from(mac, 'base64'))) throw refuse('its header is changed');
  const key = derived(fileKey, await reader.take(KEY_BYTES), 'payload');
  for await (const [chunk, nonce] of chunksOf(reader, CHUNK_BYTES + TAG_BYTES)) {
    const plain = open(chunk, key, nonce);
    if (plain === undefined) throw refuse('it is truncated or changed');
    yield plain;
  }
}

async function readHeader(reader: ByteReader): Promise<string> {
  let text = '';
  while (text.length < MAX_HEADER && !/\n--- [^\n]*\n$/.test(text)) {
    const byte = await reader.take(1);
    if (byte.length === 0) break;
    text += byte.toString('latin1');
  }
  return text;
}

function unwrapped(header: string, identities: readonly KeyObject[]): Buffer | undefined {
  for (const [, share = '', body = ''] of header.matchAll(/^-> X25519 ([\w+/]{43})\n([\w+/]{43})\n/gm)) {
    const theirs = Buffer.from(share, 'base64');
    for (const identity of identities) {
      const own = rawOf(createPublicKey(identity));
      const key = wrapKey(identity, publicKey(theirs), theirs, own);
      const fileKey = open(Buffer.from(body, 'base64'), key, Buffer.alloc(12));
      if (fileKey?.length === KEY_BYTES) return fileKey;
    }
  }
  return undefined;
}

/** Chunks with their nonces: a counter of eleven bytes, and whether it is the last chunk. */
async function* chunksOf(reader: ByteReader, size: number): AsyncGenerator<[Buffer, Buffer], void, undefined> {
  let chunk = await reader.take(size);
  for (let count = 0; ; count += 1) {
    const next = chunk.length < size ? Buffer.alloc(0) : await reader.take(size);
    const nonce = Buffer.alloc(12);
    nonce.writeUIntBE(count, 5, 6);
    nonce[11] = next.length === 0 ? 1 : 0;
    yield [chunk, nonce];
    if (next.length === 0) return;
    chunk = next;
  }
}

function wrapKey(privateKey: KeyObject, other: KeyObject, share: Buffer, recipient: Buffer): Buffer {
  const secret = diffieHellman({ privateKey, publicKey: other });
  return derived(secret, Buffer.concat([share, recipient]), 'age-encryption.org/v1/X25519');
}

function derived(secret: Buffer, salt: Buffer, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, 32));
}

function macOf(header: string, fileKey: Buffer): Buffer {
  return createHmac('sha256', derived(fileKey, Buffer.alloc(0), 'header'))
    .update(header, 'latin1')
    .digest();
}

function seal(plain: Buffer, key: Buffer, nonce: Buffer): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function open(sealed: Buffer, key: Buffer, nonce: Buffer): Buffer | undefined {
  if (sealed.length < TAG_BYTES) return undefined;
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}

function publicKey(raw: Buffer): KeyObject {
  return createPublicKey({ key: Buffer.concat([PUBLIC, raw]), format: 'der', type: 'spki' });
}

function rawOf(key: KeyObject): Buffer {
  return key.export({ format: 'der', type: 'spki' }).subarray(-SHARE_BYTES);
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}
