/** Prevents an older release from becoming current by mistake. */
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { compareVersions } from '../../core/ref.ts';
import type { CurrentRelease } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';

interface Options {
  /** Undefined for the first release of a store. */
  readonly current: CurrentRelease | undefined;
  /** True allows an older release. */
  readonly makeCurrent?: boolean | undefined;
  readonly signal: AbortSignal;
}

interface Notes {
  readonly report: Report;
}

/**
 * Throws `DOWNGRADE` if the catalog of `release` is older than that of the current release. An interrupted release without
 * a catalog, or with a newer one, may be completed.
 */
export async function refuseOlder(
  store: Store,
  release: string,
  { current, makeCurrent = false, signal }: Options,
): Promise<void> {
  if (makeCurrent || current === undefined || current.release === release) return;
  const [mine, theirs] = await Promise.all(
    [release, current.release].map(async (name) => writtenAt(store, storeKey.catalog(name), signal)),
  );
  if (mine === undefined || theirs === undefined || mine >= theirs) return;
  throw new CurlewError(
    'DOWNGRADE',
    `${store.address}: ${release} is older than the current release ${current.release}`,
    { hint: `publish under another release string, or add --make-current to make ${release} current again` },
  );
}

/** Says that a release whose name sorts before that of the current one takes its place. */
export function noteLowerName(
  release: string,
  { current, makeCurrent, report }: Omit<Options, 'signal'> & Notes,
): void {
  if (makeCurrent === true || current === undefined || compareVersions(release, current.release) >= 0) return;
  const text = `${release} becomes the current release, although its name sorts before ${current.release}`;
  report({ type: 'note', level: 'warning', text });
}

/** The time of an object, from a listing: only listings always have it. */
async function writtenAt(store: Store, key: string, signal: AbortSignal): Promise<Date | undefined> {
  for await (const object of store.list(key, { signal })) if (object.key === key) return object.modified;
  return undefined;
}
