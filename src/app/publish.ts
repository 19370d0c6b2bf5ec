/** Builds what has changed and makes a release of it in a store. */
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { buildAddons } from '../build/build.ts';
import type { BuildPlan } from '../build/plan.ts';
import { CurlewError } from '../core/errors.ts';
import { isCommit } from '../store/release/inputs.ts';
import { readPrevious, type Previous } from '../store/release/previous.ts';
import { nextRelease, publishPackages, type PublishResult } from '../store/release/publish.ts';
import { refuseOlder } from '../store/release/refuse-older.ts';
import { checkedRelease } from '../store/release/release-name.ts';
import type { Context } from './context.ts';
import { lockMode, planPackages, type BuildRequest } from './planning.ts';
import { openBuildPorts } from './ports/build-ports.ts';
import { noteUnsigned, signerOf, type SignerRequest } from './ports/release-trust.ts';
import { openStoreFor, type StoreRequest } from './ports/stores.ts';
import { compareWithRelease, type Change, type ComparedAddon } from './recorded.ts';
import { readVersionOrders } from './version-orders.ts';

/** Packages on their way into the store at once. */
const JOBS = 4;

export interface PublishRequest extends BuildRequest, StoreRequest, SignerRequest {
  /** Names, `name/version` or paths; the release has all add-ons and nothing else when there are none. */
  readonly addons?: readonly string[] | undefined;
  /** Folder, made if need be, or `s3://bucket/prefix`. */
  readonly to: string;
  /** `vYYYY.MM.DD-N`, the next N of today, when absent. */
  readonly release?: string | undefined;
  /** A release is made current that was published before the current one. */
  readonly makeCurrent?: boolean | undefined;
  /** Git commit that is noted beside the packages; that of the CI job when absent. */
  readonly commit?: string | undefined;
}

interface PlannedPackage extends Change {
  /** Bytes that would move: known for what is copied; else those of the file in --out or of the previous release. */
  readonly size: number | undefined;
}

export interface PublishPlan {
  readonly store: string;
  readonly release: string;
  readonly previous: string | undefined;
  readonly plan: readonly PlannedPackage[];
  /** As far as sizes are known before building. */
  readonly bytesUp: number;
  readonly bytesCopied: number;
}

interface Checked {
  readonly plan: BuildPlan;
  readonly release: string | undefined;
  readonly commit: string | undefined;
}

/** Everything that can be refused before a store is opened. */
async function check(request: PublishRequest, context: Context): Promise<Checked> {
  const commit = request.commit ?? context.env['GITHUB_SHA'];
  if (commit !== undefined && !isCommit(commit)) {
    throw new CurlewError('USAGE', 'curlew publish: the commit is not a git commit in hex');
  }
  const release = request.release === undefined ? undefined : checkedRelease(request.release, '--release');
  lockMode(request);
  return { plan: await planPackages(request.addons ?? [], request, context), release, commit };
}

/** Stopped at any moment, the same request continues with what is there. */
export async function publish(request: PublishRequest, context: Context): Promise<PublishResult> {
  const { cwd, report, signal } = context;
  const { plan, release, commit } = await check(request, context);
  const lock = lockMode(request);
  const orders = await readVersionOrders(plan, { cwd, signal });
  const store = await openStoreFor(request.to, request, context, { create: true });
  const signer = await signerOf(request, context, [store.address]);
  const previous = await readPrevious(store, { trust: signer?.trust, signal });
  const makeCurrent = request.makeCurrent === true;
  if (release !== undefined) await refuseOlder(store, release, { current: previous.current, makeCurrent, signal });
  await using ports = await openBuildPorts(plan.addons, request, context);
  const jobs = request.jobs ?? JOBS;
  const compared = await compareWithRelease(plan, previous.packages, ports, { jobs: AT_ONCE, lock, signal });
  const stale = compared.filter(({ because }) => because !== undefined);
  const asked = { ...plan, addons: stale.map(({ addon }) => addon) };
  const packages = stale.length === 0 ? [] : await buildAddons(asked, ports, { jobs, lock, signal });
  const published = await publishPackages(packages, {
    store,
    signer,
    release,
    makeCurrent,
    now: new Date(),
    carry: (request.addons ?? []).length > 0,
    previous,
    unchanged: new Set(compared.filter(({ because }) => because === undefined).map(({ file }) => file)),
    orders,
    commit,
    jobs,
    report,
    signal,
  });
  await noteUnsigned(store, { release: published.release, signer }, context);
  return published;
}

/** Add-ons looked at at once: it is waiting for answers, mostly. */
const AT_ONCE = 16;

/** What {@link publish} would build, upload and copy, and why; nothing is changed. */
export async function planPublish(request: PublishRequest, context: Context): Promise<PublishPlan> {
  const { cwd, signal } = context;
  const { to, addons = [], makeCurrent = false } = request;
  const { plan, release: given } = await check(request, context);
  const store = await openStoreFor(to, request, context, { create: false }).catch((error: unknown) => {
    if (error instanceof CurlewError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
  const previous: Previous =
    store === undefined ? { current: undefined, packages: new Map() } : await readPrevious(store, { signal });
  if (store !== undefined && given !== undefined)
    await refuseOlder(store, given, { current: previous.current, makeCurrent, signal });
  await using ports = await openBuildPorts(plan.addons, request, context);
  const options = { jobs: AT_ONCE, lock: undefined, signal };
  const compared = await compareWithRelease(plan, previous.packages, ports, options);
  const named = new Set(compared.map(({ file }) => file));
  const carried = addons.length === 0 ? [] : [...previous.packages].filter(([file]) => !named.has(file));
  const rows: PlannedPackage[] = [];
  for (const one of compared) rows.push({ ...one.change, size: await sizeOf(one, previous, ports.out) });
  for (const [, { listed, recorded, release }] of carried) {
    const { name, version, entry } = listed;
    const since = recorded?.since ?? release;
    rows.push({ name, version, change: 'unchanged', because: undefined, since, size: entry.size });
  }
  const bytes = (chosen: readonly PlannedPackage[]): number => chosen.reduce((sum, { size }) => sum + (size ?? 0), 0);
  const release = given ?? (await nextRelease(previous, { store, now: new Date(), signal }));
  return {
    store: store?.address ?? resolve(cwd, to),
    release,
    previous: previous.current?.release,
    plan: rows,
    bytesUp: bytes(rows.filter(({ change }) => change !== 'unchanged')),
    bytesCopied: bytes(rows.filter(({ change }) => change === 'unchanged')),
  };
}

async function sizeOf(
  { file, because }: ComparedAddon,
  { packages }: Previous,
  out: string,
): Promise<number | undefined> {
  const before = packages.get(file)?.listed.entry.size;
  if (because === undefined) return before;
  const built = await stat(join(out, file)).catch(() => undefined);
  return built?.isFile() === true ? built.size : before;
}
