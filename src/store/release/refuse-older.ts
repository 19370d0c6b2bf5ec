/** Keeps a release that was published before the current one from becoming current without a word. */
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import type { CurrentRelease } from '../catalogue.ts';
import type { Store } from '../store.ts';

interface Options {
  /** Undefined for the first release of a store. */
  readonly current: CurrentRelease | undefined;
  /** It was asked for: nothing is refused. */
  readonly makeCurrent?: boolean | undefined;
  readonly signal: AbortSignal;
}

/**
 * Throws `DOWNGRADE` where the catalogue of `release` is older than that of the current release. One that was begun and
 * has no catalogue yet, or has one and was stopped before it became current, may be completed.
 */
export async function refuseOlder(
  store: Store,
  release: string,
  { current, makeCurrent = false, signal }: Options,
): Promise<void> {
  if (makeCurrent || current === undefined || current.release === release) return;
  const [mine, theirs] = await Promise.all(
    [release, current.release].map(async (name) => writtenAt(store, storeKey.catalogue(name), signal)),
  );
  if (mine === undefined || theirs === undefined || mine >= theirs) return;
  throw new CurlewError(
    'DOWNGRADE',
    `${store.address}: ${release} was published before ${current.release}, which is current`,
    {
      hint: `publish under another release string; --make-current makes ${release} current again`,
    },
  );
}

/** Only listings always say when. */
async function writtenAt(store: Store, wanted: string, signal: AbortSignal): Promise<Date | undefined> {
  for await (const { key, modified } of store.list(wanted, { signal })) if (key === wanted) return modified;
  return undefined;
}
