/** What every kind of store refuses, in the same words. */
import { CurlewError } from '../../core/errors.ts';
import type { ByteRange, Conditions, StoredObject } from './store.ts';

/** The error for an object that exceeds the reader's limit. */
export function tooLarge(address: string, key: string, limit: number): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${address}: ${key} is larger than ${limit} bytes`);
}

export function missing(address: string, key: string): CurlewError {
  return new CurlewError('NOT_FOUND', `${address}: ${key} does not exist`);
}

function conflict(address: string, key: string, what: string): CurlewError {
  return new CurlewError('STORE_CONFLICT', `${address}: ${key} ${what}`);
}

export function changed(address: string, key: string): CurlewError {
  return conflict(address, key, 'has changed');
}

/** The error for a write that replaces nothing, under a key that has an object; or whose object is not the one to replace. */
export function unmet(address: string, key: string, { ifNoneMatch }: Conditions): CurlewError {
  return ifNoneMatch === undefined ? changed(address, key) : conflict(address, key, 'already exists');
}

/** Checks conditions before any bytes are written, against the object that `find` returns. */
export async function refuseEarly(
  address: string,
  key: string,
  { ifNoneMatch, ifMatch }: Conditions,
  find: () => Promise<StoredObject | undefined>,
): Promise<void> {
  if (ifNoneMatch === undefined && ifMatch === undefined) return;
  const current = await find();
  if (ifNoneMatch !== undefined && current !== undefined) throw unmet(address, key, { ifNoneMatch });
  if (ifMatch === undefined) return;
  if (current === undefined) throw conflict(address, key, 'has been deleted');
  if (current.etag !== ifMatch) throw changed(address, key);
}

/** The requested range, by default the whole object; `STORE_CONFLICT` for one that is not in it. */
export function rangeIn(address: string, { key, size }: StoredObject, range: ByteRange | undefined): ByteRange {
  const { offset, length } = range ?? { offset: 0, length: size };
  if (offset < 0 || length < 0 || offset + length > size)
    throw conflict(address, key, `ends before byte ${offset + length}`);
  return { offset, length };
}

/** The error for a source that does not have as many bytes as it said. */
export function wrongSize(returned: number, expected: number): CurlewError {
  return new CurlewError('FETCH_FAILED', `the source returned ${returned} bytes instead of ${expected}`);
}
