/** Bundles that nobody has written: plans are kept in memory for a while, bytes are read when they are asked for. */
import type { ArchiveIndex, RangeSource } from '../archive/entry.ts';
import { planSplice, type SplicePlan } from '../archive/splice.ts';
import { bundleRange } from '../bundle/write/bytes.ts';
import { checkSettings, openPackages } from '../bundle/open-packages.ts';
import { planFrom, type PlanSource } from '../bundle/plan-from.ts';
import { checkPackage } from '../bundle/plan.ts';
import type { ResolvedPackage } from '../bundle/resolve.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { hexOf } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { createLanes } from '../core/lanes.ts';
import type { Arch } from '../core/ref.ts';
import type { Installer } from '../installer/installer.ts';
import type { Store } from '../store/store.ts';
import type { Catalogues } from './catalogues.ts';
import type { Content } from './content.ts';
import { ofStore } from './failure.ts';
import type { KnownSpec } from './installers.ts';
import { namedPackages } from './named-packages.ts';
import { createShelf } from './shelf.ts';
import { createAudience } from './audience.ts';
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
  readonly size: () => number;
}

export interface BundlesOptions extends WatchOptions {
  readonly catalogues: Catalogues;
  readonly executable: Executable;
  /** Also bundles of specs whose settings do not fit their packages. */
  readonly allowInvalidSettings?: boolean | undefined;
  /** Version of curlew. */
  readonly tool: string;
}

/** Entries of all plans together: about a kilobyte each. */
const MOST_ENTRIES = 50_000;
/** A plan reads the tables of contents of all its packages, and keeps the processor while it lays them out. */
const PLANS_AT_ONCE = 2;
const PLANS_WAITING = 16;

interface Kept {
  readonly splice: SplicePlan;
  readonly sources: readonly PlanSource[];
  /** False when an object is another one by now. */
  readonly holds: () => Promise<boolean>;
}

export function createBundles(store: Store, options: BundlesOptions): Bundles {
  const { catalogues, executable, allowInvalidSettings = false, tool, signal } = options;
  const watch = createWatch(store, options);
  const shelf = createShelf<Kept>({ most: MOST_ENTRIES, weigh: ({ splice }) => splice.index.entries.length + 100 });
  const lanes = createLanes(PLANS_AT_ONCE, { waiting: PLANS_WAITING });
  // Whoever asks next begins again.
  const audience = createAudience({ onEmpty: (key) => shelf.drop(key) });
  const contentOf = async (
    key: string,
    gone: AbortSignal,
    make: (signal: AbortSignal) => Promise<Omit<Kept, 'holds'>>,
  ): Promise<Content> => {
    const take = async (): Promise<Kept> =>
      audience(key, gone, async (empty) => {
        return shelf.take(key, async () => {
          const wanted = AbortSignal.any([signal, empty]);
          const made = await lanes.run(
            async () => ofStore(async () => make(wanted), { asked: ['UNSUPPORTED'] }),
            wanted,
          );
          return { ...made, holds: async () => unchanged(made.sources, watch) };
        });
      });
    let kept = await take();
    if (!(await kept.holds())) {
      shelf.drop(key);
      kept = await take();
    }
    return content(kept, () => shelf.drop(key));
  };
  return {
    whole: async ({ spec, release, arch, signal: gone }) => {
      const seen = await catalogues.of(release);
      const own = await executable(arch);
      const open = { ...own, [Symbol.asyncDispose]: async () => undefined };
      const key = ['bundle', spec.digest, seen.catalogue.release, seen.etag, arch].join(' ');
      return contentOf(key, gone, async (wanted) =>
        planned(
          await planFrom(store, spec.installer, {
            spec: Buffer.from(spec.text),
            catalogue: seen.catalogue,
            release: seen.catalogue.release,
            arch,
            settings: allowInvalidSettings ? 'allow' : 'enforce',
            tool,
            executable: async () => open,
            signal: wanted,
          }),
        ),
      );
    },
    packages: async ({ spec, release, arch, signal: gone }, names) => {
      const { catalogue, etag } = await catalogues.of(release);
      const resolved = namedPackages(names, { installer: spec.installer, catalogue, arch });
      const key = ['packages', catalogue.release, etag, arch, ...resolved.map((one) => one.key)].join(' ');
      return contentOf(key, gone, async (wanted) => splicePackages(store, resolved, wanted));
    },
    settings: async (installer, resolved, { signal: gone }) => {
      const wanted = AbortSignal.any([signal, gone]);
      const read = async (): Promise<readonly Diagnostic[]> =>
        checkSettings(installer, await openPackages(store, resolved, { signal: wanted }), { signal: wanted });
      return lanes.run(async () => ofStore(read), wanted);
    },
    size: shelf.size,
  };
}

function planned({ plan, sources }: Awaited<ReturnType<typeof planFrom>>): Omit<Kept, 'holds'> {
  return { splice: plan.splice, sources };
}

async function splicePackages(
  store: Store,
  resolved: readonly ResolvedPackage[],
  signal: AbortSignal,
): Promise<Omit<Kept, 'holds'>> {
  const packages = await openPackages(store, resolved, { signal });
  for (const one of packages) checkPackage(one.resolved, one.index);
  const splice = planSplice(packages.map(({ index }, source) => ({ kind: 'archive', source, index })));
  return { splice, sources: packages.map(({ source }) => source) };
}

async function unchanged(sources: readonly PlanSource[], watch: Watch): Promise<boolean> {
  const looks = sources.map(async ({ object }) => object === undefined || (await watch(object.key)) === object.etag);
  return (await Promise.all(looks)).every(Boolean);
}

/** Equal plans have equal tables of contents, and those name every byte. */
function content({ splice, sources }: Kept, drop: () => void): Content {
  return {
    size: splice.size,
    etag: `"${hexOf(splice.index.tocDigest)}"`,
    type: 'application/gzip',
    cache: 'ask',
    async *read(offset, length, options) {
      try {
        yield* bundleRange(splice, sources, { offset, length, ...options });
      } catch (error) {
        // The next request plans anew.
        if (error instanceof CurlewError) drop();
        throw error;
      }
    },
  };
}
