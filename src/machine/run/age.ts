/** Files in the format of age (age-encryption.org/v1), which `age --decrypt` opens, too. */
import type { Decrypter, Encrypter } from 'age-encryption';
import type { Bytes } from '../../core/bytes.ts';
import { CurlewError } from '../../core/errors.ts';
import { createByteReader, type ByteReader } from '../../formats/archive/byte-reader.ts';

/** Begins each file. */
export const AGE_HEADER = 'age-encryption.org/v1\n';
/** The library reads a header to its end, however long it is. */
const MAX_HEADER = 64 * 1024;
const CHUNK_BYTES = 64 * 1024;

/** Undefined for no recipients: no one could open the file. `USAGE` for a text that is no recipient, such as that of an SSH key. */
export async function encrypterFor(recipients: readonly string[] = []): Promise<Encrypter | undefined> {
  if (recipients.length === 0) return undefined;
  const { Encrypter: Age } = await import('age-encryption');
  const encrypter = new Age();
  for (const recipient of recipients) {
    try {
      encrypter.addRecipient(recipient);
    } catch (cause) {
      throw new CurlewError('USAGE', `${recipient.slice(0, 80)} is not a recipient of age`, {
        hint: 'age-keygen prints one as the public key: age1…',
        cause,
      });
    }
  }
  return encrypter;
}

/** A decrypter with the identities in a file of age-keygen; `CLUSTER_FAILED` if it has none, or others. */
export async function decrypterFor(text: string, name: string): Promise<Decrypter> {
  const { Decrypter: Age } = await import('age-encryption');
  const decrypter = new Age();
  const lines = text.split('\n').map((line) => line.trim());
  const identities = lines.filter((line) => line !== '' && !line.startsWith('#'));
  try {
    for (const identity of identities) decrypter.addIdentity(identity);
  } catch {
    // What the library says may have a part of the key.
    identities.length = 0;
  }
  if (identities.length > 0) return decrypter;
  throw new CurlewError('CLUSTER_FAILED', `${name} has no identity of age that curlew reads`, {
    hint: 'use a file of age-keygen without a passphrase; or decrypt first: age --decrypt --identity FILE',
  });
}

export async function* encrypted(bytes: AsyncIterable<Uint8Array>, encrypter: Encrypter): Bytes {
  yield* await encrypter.encrypt(ReadableStream.from(bytes));
}

/** Its bytes, by any of the identities. Throws `refuse` for a file that is for none of them, or is not as it was written. */
export async function* decrypted(
  bytes: AsyncIterable<Uint8Array>,
  decrypter: Decrypter,
  { refuse, notForThese }: { readonly refuse: (why: string) => Error; readonly notForThese: () => Error },
): Bytes {
  await using reader = createByteReader(bytes);
  const head = await reader.take(MAX_HEADER);
  if (!/^--- /m.test(head.toString('latin1'))) throw refuse('it is truncated or changed');
  let unreadable: Error | undefined;
  const all = chunksOf(head, reader, (error) => (unreadable = error));
  try {
    yield* await decrypter.decrypt(ReadableStream.from(all));
  } catch (error) {
    if (unreadable !== undefined) throw unreadable;
    throw /no identity matched/.test(String(error)) ? notForThese() : refuse('it is truncated or changed');
  }
}

async function* chunksOf(head: Uint8Array, reader: ByteReader, failed: (error: Error) => void): Bytes {
  try {
    for (let chunk = head; chunk.length > 0; chunk = await reader.some(CHUNK_BYTES)) yield chunk;
  } catch (error) {
    if (error instanceof Error) failed(error);
    throw error;
  }
}
