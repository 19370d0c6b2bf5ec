/** Bundles that nobody has written: plans are kept in memory for a while, bytes are read when they are asked for. */
import type { ArchiveIndex, RangeSource } from '../formats/archive/entry.ts';
import { bundleRange } from '../bundle/write/bytes.ts';
import type { PlanSource } from '../bundle/plan-from.ts';
import type { ResolvedPackage } from '../bundle/resolve.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { hexOf } from '../core/digest.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { createSingleFlightCache } from '../platform/limit/single-flight-cache.ts';
import { CurlewError } from '../core/errors.ts';
import type { Arch } from '../core/ref.ts';
import type { Installer } from '../spec/installer.ts';
import { storeSource } from '../store/source.ts';
import type { Store, StoredObject } from '../store/store.ts';
import type { Catalogues } from './catalogues.ts';
import type { Content } from './content.ts';
import { ofStore } from './failure.ts';
import type { KnownSpec } from './installers.ts';
import { namedPackages } from './named-packages.ts';
import type { Layout } from './plan-protocol.ts';
import type { Planner } from './planner.ts';
import { createWatch, type Watch, type WatchOptions } from './watch.ts';

/** The tool for nodes, open as long as the server runs; `UNSUPPORTED` when this build has none for an architecture. */
export type Executable = (arch: Arch) => Promise<{ readonly source: RangeSource; readonly index: ArchiveIndex }>;

export interface BundleAsked {
  readonly spec: KnownSpec;
  readonly release: string | undefined;
  readonly arch: Arch;
  /** Fires when whoever asks has gone. */
  readonly signal: AbortSignal;
}

export interface Bundles {
  readonly whole: (asked: BundleAsked) => Promise<Content>;
  /** Only these packages, without a bundle's root (kurl.md 5.4). Unknown names are `SPEC_INVALID`, with near ones. */
  readonly packages: (asked: BundleAsked, names: readonly string[]) => Promise<Content>;
  /** What the schemas in these packages say of the settings of a spec. */
  readonly settings: (
    installer: Installer,
    resolved: readonly ResolvedPackage[],
    options: { readonly signal: AbortSignal },
  ) => Promise<readonly Diagnostic[]>;
  /** Plans in memory. */
  readonly kept: () => KeptPlans;
}

export interface KeptPlans {
  readonly count: number;
  /** Memory that they take. */
  readonly bytes: number;
}

export interface BundlesOptions extends WatchOptions {
  readonly planner: Planner;
  readonly catalogues: Catalogues;
  readonly executable: Executable;
  /** Also bundles of specs whose settings do not fit their packages. */
  readonly allowInvalidSettings?: boolean | undefined;
  /** Version of curlew. */
  readonly tool: string;
  /** Memory for plans, in bytes; one is kept whatever it takes. */
  readonly planBytes?: number | undefined;
}

/** Some fifty thousand entries: their tables of contents are nearly all that plans keep. */
const PLAN_BYTES = 16 << 20;
const LOOKS_AT_ONCE = 16;
/** Bytes that a segment and a source take beside what they hold: more than was measured. */
const SEGMENT_BYTES = 256;
const SOURCE_BYTES = 2048;

interface Kept extends Pick<Layout, 'size' | 'tocDigest' | 'segments'> {
  readonly sources: readonly PlanSource[];
}

export function createBundles(store: Store, options: BundlesOptions): Bundles {
  const { planner, catalogues, executable, allowInvalidSettings = false, tool: version } = options;
  const watch = createWatch(store, options);
  const plans = createSingleFlightCache<Kept>({ most: options.planBytes ?? PLAN_BYTES, weigh: bytesOf });
  // Whoever asks next begins again.
  const audience = createAudience({ onEmpty: (key) => plans.drop(key) });
  const contentOf = async (
    key: string,
    gone: AbortSignal,
    make: (signal: AbortSignal) => Promise<Kept>,
  ): Promise<Content> => {
    const take = async (): Promise<Kept> =>
      audience(key, gone, async (wanted) =>
        plans.get(key, async () => ofStore(async () => make(wanted), { asked: ['UNSUPPORTED'] })),
      );
    let kept = await take();
    // An object is another one by now.
    if (!(await unchanged(kept.sources, watch, gone))) {
      plans.drop(key);
      kept = await take();
    }
    return content(kept, () => plans.drop(key));
  };
  const kept = (layout: Layout, tool?: RangeSource): Kept => {
    const sourceOf = (object: StoredObject | undefined): PlanSource => {
      if (object !== undefined) return storeSource(store, object);
      if (tool === undefined) throw new Error('the plan names the tool for nodes');
      return tool;
    };
    return { ...layout, sources: layout.sources.map(sourceOf) };
  };
  return {
    whole: async ({ spec, release, arch, signal: gone }) => {
      const { catalogue, etag } = await catalogues.of(release);
      const { source, index } = await executable(arch);
      const key = ['bundle', spec.digest, catalogue.release, etag, arch].join(' ');
      return contentOf(key, gone, async (signal) => {
        const { installer, text } = spec;
        const settings = allowInvalidSettings ? 'allow' : 'enforce';
        const words = { installer, spec: Buffer.from(text), catalogue, arch, settings, tool: version } as const;
        return kept(await planner.run({ kind: 'bundle', ...words, executable: index }, { signal }), source);
      });
    },
    packages: async ({ spec, release, arch, signal: gone }, names) => {
      const { catalogue, etag } = await catalogues.of(release);
      const resolved = namedPackages(names, { installer: spec.installer, catalogue, arch });
      const key = ['packages', catalogue.release, etag, arch, ...resolved.map((one) => one.key)].join(' ');
      return contentOf(key, gone, async (signal) =>
        kept(await planner.run({ kind: 'packages', resolved }, { signal })),
      );
    },
    settings: async (installer, resolved, { signal }) =>
      ofStore(async () => planner.run({ kind: 'settings', installer, resolved }, { signal })),
    kept: () => ({ count: plans.size(), bytes: plans.weight() }),
  };
}

/** Memory that a plan keeps. */
function bytesOf({ segments, sources }: Kept): number {
  const own = segments.reduce((sum, one) => sum + (one.kind === 'bytes' ? one.data.byteLength : 0), 0);
  return own + segments.length * SEGMENT_BYTES + sources.length * SOURCE_BYTES;
}

/** Looked at a few at a time: a thousand answers at once would hold up everybody else. */
async function unchanged(sources: readonly PlanSource[], watch: Watch, signal: AbortSignal): Promise<boolean> {
  const objects = sources.flatMap(({ object }) => object ?? []);
  const look = async ({ key, etag }: StoredObject): Promise<boolean> => (await watch(key)) === etag;
  return (await mapLimited(objects, look, { width: LOOKS_AT_ONCE, signal })).every(Boolean);
}

/** Equal plans have equal tables of contents, and those name every byte. */
function content({ sources, ...layout }: Kept, drop: () => void): Content {
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

/** Runs `work` with a signal that fires when all who wait for the same key have gone. */
export type Audience = <Result>(
  key: string,
  gone: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
) => Promise<Result>;

/** Whoever comes while work on a key is under way shares its signal; `onEmpty` is called before that fires. */
export function createAudience({ onEmpty }: { readonly onEmpty: (key: string) => void }): Audience {
  const rooms = new Map<string, { readonly empty: AbortController; present: number }>();
  return async (key, gone, work) => {
    gone.throwIfAborted();
    const room = rooms.get(key) ?? { empty: new AbortController(), present: 0 };
    rooms.set(key, room);
    room.present += 1;
    let isIn = true;
    const leave = (): boolean => {
      if (!isIn) return false;
      isIn = false;
      room.present -= 1;
      if (room.present === 0 && rooms.get(key) === room) rooms.delete(key);
      return room.present === 0;
    };
    const give = (): void => {
      if (!leave()) return;
      onEmpty(key);
      room.empty.abort(gone.reason);
    };
    gone.addEventListener('abort', give, { once: true });
    try {
      return await work(room.empty.signal);
    } finally {
      gone.removeEventListener('abort', give);
      leave();
    }
  };
}
