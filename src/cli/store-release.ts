/** Words of the command line that name a release of a store: `STORE@R`. */
import { CurlewError } from '../core/errors.ts';
import { checkedRelease } from '../store/release/release-name.ts';

export interface StoreRelease {
  readonly store: string;
  /** Undefined without an `@`. */
  readonly release: string | undefined;
}

/** The release stands behind the last `@` of the last component; other `@` belong to the address. */
export function parseStoreRelease(text: string, option: string): StoreRelease {
  const at = text.lastIndexOf('@');
  if (at === -1 || text.includes('/', at)) return { store: text, release: undefined };
  const store = text.slice(0, at);
  if (store === '') throw new CurlewError('USAGE', `${option}: no store stands before the @`);
  return { store, release: checkedRelease(text.slice(at + 1), option) };
}
