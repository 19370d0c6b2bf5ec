/** Bytes that are made while they are read. */
import { buffer } from 'node:stream/consumers';
import { CurlewError } from './errors.ts';

export type Bytes = AsyncGenerator<Uint8Array, void, undefined>;

/** The bytes of a file; more than `limit` are `PACKAGE_INVALID`, before any is read. `from` names what has the file. */
export async function wholeFile(
  from: string,
  { path, size }: { readonly path: string; readonly size: number },
  limit: number,
  read: () => AsyncIterable<Uint8Array>,
): Promise<Buffer> {
  if (size > limit) throw new CurlewError('PACKAGE_INVALID', `${from}: ${path} is larger than ${limit} bytes`);
  return buffer(read());
}
