/**
 * A release: packages, catalogue, generated files, `VERSION`, latest copies, written in this order. Cut off anywhere it
 * leaves the previous release as it was, and the same call again completes it.
 */
import { mapLimited } from '../core/each.ts';
import { CurlewError } from '../core/errors.ts';
import { reportStep, type Report } from '../core/events.ts';
import { storeKey } from '../core/layout.ts';
import { formatRef } from '../core/ref.ts';
import { currentRelease, findCatalogue, type CurrentRelease } from '../store/catalogue.ts';
import type { ListedObject, Store } from '../store/store.ts';
import { fileOf, listPackages, makeCatalogue } from './catalogue.ts';
import { writeCatalogue, writeLatest, writeVersion } from './finish.ts';
import { checkedRelease, nextRelease, releaseOfDay } from './release-name.ts';
import { listedOf, placePackage, type Outcome, type PackageFileToPublish, type Wanted } from './upload.ts';

export interface PublishOptions {
  readonly store: Store;
  /** Undefined: the day's next one, `vYYYY.MM.DD-N`. */
  readonly release: string | undefined;
  readonly now: Date;
  /** True: what the previous release has and is not given here belongs to this release too. */
  readonly carry: boolean;
  /** Git commit for the metadata of uploaded packages, when known. */
  readonly commit: string | undefined;
  /** Packages at once. */
  readonly jobs: number;
  readonly report: Report;
  readonly signal: AbortSignal;
}

interface PublishedPackage {
  readonly name: string;
  readonly version: string;
  readonly arch: string;
  readonly digest: string;
  readonly size: number;
  readonly outcome: Outcome;
}

export interface PublishResult {
  readonly store: string;
  readonly release: string;
  /** The release that was current before; undefined for the first. */
  readonly previous: string | undefined;
  readonly packages: readonly PublishedPackage[];
  /** Unversioned copies written. */
  readonly latest: number;
}

/**
 * Publishes package files as a release. The same release with other content, or another publisher who was faster, is
 * `STORE_CONFLICT`.
 */
export async function publishPackages(
  files: readonly PackageFileToPublish[],
  options: PublishOptions,
): Promise<PublishResult> {
  const { store, jobs, report, signal, commit } = options;
  const current = await currentRelease(store, { signal });
  const release = await chooseRelease(options);
  const wanted = await gather(files, current, options);
  if (wanted.length === 0) throw new CurlewError('USAGE', 'there is no package to publish');
  // Keys that meet are told before anything is written.
  makeCatalogue(release, wanted.map(listedOf));
  const taken = await keysBelow(store, release, signal);
  const placed = await mapLimited(
    wanted,
    async (one, context) => {
      const id = listedOf(one);
      const [key, title] = [storeKey.package(release, fileOf(id)), formatRef(id)];
      const place = { store, release, commit, taken: taken.has(key), signal: context.signal };
      return reportStep(
        report,
        { id: key, title },
        () => placePackage(one, place),
        ({ outcome }) => outcome,
      );
    },
    { width: jobs, signal },
  );
  const catalogue = makeCatalogue(
    release,
    placed.map(({ listed }) => listed),
  );
  await writeCatalogue(store, catalogue, { signal });
  await writeVersion(store, release, current, { signal });
  const latest = await writeLatest(store, catalogue, { jobs, signal });
  const packages = placed.map(({ listed: { name, version, arch, entry }, outcome }) => {
    return { name, version, arch, digest: entry.digest, size: entry.size, outcome };
  });
  return { store: store.address, release, previous: current?.release, packages, latest };
}

/** An unfinished release of the day, one without catalogue, is gone on with. */
async function chooseRelease({ store, release, now, signal }: PublishOptions): Promise<string> {
  if (release !== undefined) return checkedRelease(release, '--release');
  const all = new Set<string>();
  const finished = new Set<string>();
  for await (const { key } of store.list(releaseOfDay(now), { signal })) {
    const [name = ''] = key.split('/', 1);
    if (key.includes('/')) all.add(name);
    if (key === storeKey.catalogue(name)) finished.add(name);
  }
  return nextRelease(now, finished.size === all.size ? all : finished);
}

/** Pairs each package file with the same package of the previous release, and adds what is carried over. */
async function gather(
  files: readonly PackageFileToPublish[],
  current: CurrentRelease | undefined,
  { store, carry, signal }: PublishOptions,
): Promise<readonly Wanted[]> {
  const catalogue = current === undefined ? undefined : await findCatalogue(store, current.release, { signal });
  if (current === undefined || catalogue === undefined) return files.map((file) => ({ file, earlier: undefined }));
  const objects = await keysBelow(store, current.release, signal);
  const earlier = new Map(
    listPackages(catalogue).map((listed) => {
      const object = objects.get(storeKey.package(current.release, fileOf(listed)));
      const sound = object?.size === listed.entry.size ? object : undefined;
      return [fileOf(listed), { release: current.release, listed, object: sound }] as const;
    }),
  );
  const given = files.map((file): Wanted => {
    const before = earlier.get(fileOf(file.addon));
    const same = before?.listed.name === file.addon.name && before.listed.entry.digest === file.addon.digest;
    return { file, earlier: same ? before : undefined };
  });
  if (!carry) return given;
  const names = new Set(files.map(({ addon }) => fileOf(addon)));
  const carried = [...earlier].filter(([name]) => !names.has(name));
  return [...given, ...carried.map(([, one]): Wanted => ({ file: undefined, earlier: one }))];
}

async function keysBelow(
  store: Store,
  release: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ListedObject>> {
  const found = new Map<string, ListedObject>();
  for await (const object of store.list(`${release}/`, { signal })) found.set(object.key, object);
  return found;
}
