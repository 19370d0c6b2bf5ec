/** Bundles generated on request: plans are cached in memory, and bytes are read on demand. */
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { bundleRange } from '../bundle/write/bytes.ts';
import { requireSpec, type PlanSource } from '../bundle/plan-from.ts';
import { resolveSpec, type ResolvedPackage } from '../bundle/resolve.ts';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { hexOf } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Arch } from '../../core/ref.ts';
import type { Installer } from '../../spec/installer.ts';
import { storeSource } from '../store/source.ts';
import type { Store, StoredObject } from '../store/store.ts';
import type { Catalogs } from './catalogs.ts';
import type { Content } from './content.ts';
import { asServerError } from './failure.ts';
import type { KnownSpec } from './installers.ts';
import { namedPackages } from './named-packages.ts';
import type { Layout } from './plan-protocol.ts';
import type { Planner } from './planner.ts';
import { createWatch, type SiteWatch, type WatchOptions } from './watch.ts';

/** The tool for nodes, open while the server runs; `UNSUPPORTED` if this build has none for an architecture. */
export type Executable = (arch: Arch) => Promise<{ readonly source: RangeSource; readonly index: ArchiveIndex }>;

interface BundleRequest {
  readonly spec: KnownSpec;
  readonly release: string | undefined;
  readonly arch: Arch;
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal;
}

export interface Bundles {
  readonly whole: (request: BundleRequest) => Promise<Content>;
  /** Only these packages, without a bundle's root (kurl.md 5.4). Unknown names are `SPEC_INVALID`, with similar ones. */
  readonly packages: (request: BundleRequest, names: readonly string[]) => Promise<Content>;
  /** Throws what `whole` would about the add-ons and settings of the spec. */
  readonly check: (request: BundleRequest) => Promise<void>;
  /** Checks the settings of a spec with the schemas in these packages. */
  readonly settings: (
    installer: Installer,
    resolved: readonly ResolvedPackage[],
    options: { readonly signal: AbortSignal },
  ) => Promise<readonly Diagnostic[]>;
  /** Statistics of cached plans. */
  readonly cached: () => CachedPlans;
}

export interface CachedPlans {
  readonly count: number;
  /** Memory in bytes. */
  readonly bytes: number;
}

export interface BundlesOptions extends WatchOptions {
  readonly planner: Planner;
  readonly catalogs: Catalogs;
  readonly executable: Executable;
  /** Also accept specs with settings that the packages reject. */
  readonly allowInvalidSettings?: boolean | undefined;
  /** Version of curlew. */
  readonly tool: string;
  /** Memory for plans, in bytes; at least one plan is cached. */
  readonly planBytes?: number | undefined;
}

/** About fifty thousand entries: plans consist mainly of tables of contents. */
const PLAN_BYTES = 16 << 20;
const HEAD_CONCURRENCY = 16;
/** Upper bound of the memory overhead of a segment and of a source, in bytes. */
const SEGMENT_BYTES = 256;
const SOURCE_BYTES = 2048;

interface CachedPlan extends Pick<Layout, 'size' | 'tocDigest' | 'segments'> {
  readonly sources: readonly PlanSource[];
}

export function createBundles(store: Store, options: BundlesOptions): Bundles {
  const { planner, catalogs, executable, allowInvalidSettings = false, tool: version } = options;
  const watch = createWatch(store, options);
  const plans = createSingleFlightCache<CachedPlan>({ most: options.planBytes ?? PLAN_BYTES, weigh: bytesOf });
  // The next request starts again.
  const shared = createSharedWork({ onEmpty: (key) => plans.drop(key) });
  const contentOf = async (
    key: string,
    gone: AbortSignal,
    make: (signal: AbortSignal) => Promise<CachedPlan>,
  ): Promise<Content> => {
    const plan = async (): Promise<CachedPlan> =>
      shared(key, gone, async (signal) =>
        plans.get(key, async () => asServerError(async () => make(signal), { except: ['UNSUPPORTED'] })),
      );
    let cached = await plan();
    // Plan again if an object has changed.
    if (!(await unchanged(cached.sources, watch, gone))) {
      plans.drop(key);
      cached = await plan();
    }
    return content(cached, () => plans.drop(key));
  };
  const withSources = (layout: Layout, tool?: RangeSource): CachedPlan => {
    const sourceOf = (object: StoredObject | undefined): PlanSource => {
      if (object !== undefined) return storeSource(store, object);
      if (tool === undefined) throw new Error('the plan needs the tool for nodes');
      return tool;
    };
    return { ...layout, sources: layout.sources.map(sourceOf) };
  };
  const settingsOf: Bundles['settings'] = async (installer, resolved, { signal }) =>
    asServerError(async () => planner.run({ kind: 'settings', installer, resolved }, { signal }));
  const rule = allowInvalidSettings ? 'allow' : 'enforce';
  return {
    whole: async ({ spec, release, arch, signal: gone }) => {
      const { catalog, etag } = await catalogs.of(release);
      const { source, index } = await executable(arch);
      const key = ['bundle', spec.digest, catalog.release, etag, arch].join(' ');
      return contentOf(key, gone, async (signal) => {
        const { installer, text } = spec;
        const inputs = { installer, spec: Buffer.from(text), catalog, arch, settings: rule, tool: version } as const;
        return withSources(await planner.run({ kind: 'bundle', ...inputs, executable: index }, { signal }), source);
      });
    },
    packages: async ({ spec, release, arch, signal: gone }, names) => {
      const { catalog, etag } = await catalogs.of(release);
      const resolved = namedPackages(names, { installer: spec.installer, catalog, arch });
      const key = ['packages', catalog.release, etag, arch, ...resolved.map((one) => one.key)].join(' ');
      return contentOf(key, gone, async (signal) =>
        withSources(await planner.run({ kind: 'packages', resolved }, { signal })),
      );
    },
    check: async ({ spec: { installer }, release, arch, signal }) => {
      const { catalog } = await catalogs.of(release);
      const { packages: resolved, error } = resolveSpec(installer, catalog, arch);
      requireSpec(await settingsOf(installer, resolved, { signal }), error, { rule });
    },
    settings: settingsOf,
    cached: () => ({ count: plans.size(), bytes: plans.weight() }),
  };
}

/** Memory of a plan in bytes. */
function bytesOf({ segments, sources }: CachedPlan): number {
  const own = segments.reduce((sum, one) => sum + (one.kind === 'bytes' ? one.data.byteLength : 0), 0);
  return own + segments.length * SEGMENT_BYTES + sources.length * SOURCE_BYTES;
}

/** Limits concurrency, because a thousand responses at once would delay all other requests. */
async function unchanged(sources: readonly PlanSource[], watch: SiteWatch, signal: AbortSignal): Promise<boolean> {
  const objects = sources.flatMap(({ object }) => object ?? []);
  const isCurrent = async ({ key, etag }: StoredObject): Promise<boolean> => (await watch(key)) === etag;
  return (await mapLimited(objects, isCurrent, { width: HEAD_CONCURRENCY, signal })).every(Boolean);
}

/** The etag is the digest of the table of contents, which covers every byte. */
function content({ sources, ...layout }: CachedPlan, drop: () => void): Content {
  return {
    size: layout.size,
    etag: `"${hexOf(layout.tocDigest)}"`,
    type: 'application/gzip',
    cache: 'ask',
    async *read(offset, length, options) {
      try {
        yield* bundleRange(layout, sources, { offset, length, ...options });
      } catch (error) {
        // The next request plans again.
        if (error instanceof CurlewError) drop();
        throw error;
      }
    },
  };
}

/** Runs `work` with a signal that is aborted when all clients that wait for the same key have disconnected. */
export type SharedWork = <Result>(
  key: string,
  gone: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
) => Promise<Result>;

/** Calls for a key with running work share its signal. `onEmpty` is called before the signal is aborted. */
export function createSharedWork({ onEmpty }: { readonly onEmpty: (key: string) => void }): SharedWork {
  const groups = new Map<string, { readonly empty: AbortController; present: number }>();
  return async (key, gone, work) => {
    gone.throwIfAborted();
    const group = groups.get(key) ?? { empty: new AbortController(), present: 0 };
    groups.set(key, group);
    group.present += 1;
    let isIn = true;
    const leave = (): boolean => {
      if (!isIn) return false;
      isIn = false;
      group.present -= 1;
      if (group.present === 0 && groups.get(key) === group) groups.delete(key);
      return group.present === 0;
    };
    const onGone = (): void => {
      if (!leave()) return;
      onEmpty(key);
      group.empty.abort(gone.reason);
    };
    gone.addEventListener('abort', onGone, { once: true });
    try {
      return await work(group.empty.signal);
    } finally {
      gone.removeEventListener('abort', onGone);
      leave();
    }
  };
}
