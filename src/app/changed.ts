/** The add-ons that a build would rebuild, for the matrix of a CI job. */
import { readRelease } from '../ship/release/previous-release.ts';
import { checkedRelease } from '../ship/release/release-name.ts';
import { planAddons } from '../steps/build/plan-packages.ts';
import { openBuildPorts } from '../steps/build/build-ports.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { compareWithRelease, otherArchitectures, type Change } from '../steps/build/compare-with-release.ts';
import { CHANGED } from '../requests/build.ts';
import { useCase } from '../core/request.ts';

/** Add-ons compared at once: most of the time is spent waiting for responses. */
const AT_ONCE = 16;

interface Batch {
  /** From 1. */
  readonly batch: number;
  /** Arguments for `curlew build`. */
  readonly addons: string;
}

export interface ChangedAddons {
  readonly store: string;
  /** The release that was compared with. */
  readonly since: string;
  readonly changed: readonly Change[];
  readonly unchanged: number;
  /** Packages of the release without a folder. */
  readonly gone: readonly string[];
  readonly matrix: { readonly include: readonly Batch[] };
}

/** Builds nothing, and fetches only manifests and headers. */
export const changed = useCase(CHANGED, async (request, context): Promise<ChangedAddons> => {
  const { signal } = context;
  const { addons = [], since, batch = Number.MAX_SAFE_INTEGER } = request;
  const named = since === undefined ? undefined : checkedRelease(since, '--since');
  const plan = await planAddons(addons, request, context);
  const store = await openStoreFor(request.from, request, context, { create: false });
  const { release, packages } = await readRelease(store, { release: named, signal });
  await using ports = await openBuildPorts(plan.addons, request, context);
  const compared = await compareWithRelease(plan, packages, ports, { jobs: AT_ONCE, lock: undefined, signal });
  const stale = compared.filter(({ because }) => because !== undefined).map(({ change }) => change);
  const known = new Set([...compared.map(({ file }) => file), ...otherArchitectures(compared, packages)]);
  return {
    store: store.address,
    since: release,
    changed: stale,
    unchanged: compared.length - stale.length,
    gone: addons.length > 0 ? [] : [...packages.keys()].filter((file) => !known.has(file)),
    matrix: { include: batches(stale, batch) },
  };
});

function batches(all: readonly Change[], size: number): readonly Batch[] {
  const refs = all.map(({ name, version }) => `${name}/${version}`);
  const count = Math.ceil(refs.length / size);
  return Array.from({ length: count }, (_, at) => {
    return { batch: at + 1, addons: refs.slice(at * size, (at + 1) * size).join(' ') };
  });
}
