/** Builds changed add-ons and publishes a release in a store. */
import { stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { buildAddons } from '../build/build.ts';
import type { BuildPlan } from '../build/plan.ts';
import { isChannelName } from '../core/catalog.ts';
import { CurlewError, canceledOr } from '../core/errors.ts';
import { readStateFile } from '../platform/files/state-file.ts';
import { previewPublish, nextRelease, unbuiltPackage } from '../ship/release/preview-publish.ts';
import { isCommit } from '../ship/release/release-inputs.ts';
import { NO_PREVIOUS, readPrevious, type Previous } from '../ship/release/previous-release.ts';
import { publishPackages, type PublishResult } from '../ship/release/publish.ts';
import { refuseOlder } from '../ship/release/refuse-older.ts';
import { checkedRelease } from '../ship/release/release-name.ts';
import { noteUnsigned } from '../ship/release/sign-release.ts';
import { parseOrderFile, type VersionOrders } from '../ship/release/version-order.ts';
import type { Context } from '../core/context.ts';
import { lockMode, planPackages } from '../steps/build/plan-packages.ts';
import { openBuildPorts } from '../steps/build/build-ports.ts';
import { signerOf } from '../steps/open/release-trust.ts';
import { findStoreFor, openStoreFor } from '../steps/open/stores.ts';
import {
  compareWithRelease,
  otherArchitectures,
  type Change,
  type ComparedAddon,
} from '../steps/build/compare-with-release.ts';
import { PUBLISH, type PublishRequest } from '../requests/build.ts';
import { useCase } from '../core/request.ts';

/** Packages uploaded at once. */
const JOBS = 4;

interface PlannedPackage extends Change {
  /** Bytes to transfer: exact for copied packages; otherwise the size of the file in --out or in the previous release. */
  readonly size: number | undefined;
}

export interface PublishPlan extends Pick<
  PublishResult,
  'store' | 'release' | 'previous' | 'channels' | 'bytesCopied'
> {
  readonly plan: readonly PlannedPackage[];
  /** Sum of the sizes that are known before the build. */
  readonly bytesUp: number;
}

/** Checks everything that does not need the store. */
async function check(request: PublishRequest, context: Context) {
  const commit = request.commit ?? context.env['GITHUB_SHA'];
  if (commit !== undefined && !isCommit(commit)) {
    throw new CurlewError('USAGE', 'curlew publish: the commit is not a hexadecimal git commit ID');
  }
  const release = request.release === undefined ? undefined : checkedRelease(request.release, '--release');
  for (const name of request.channel ?? []) requireChannelName(name);
  lockMode(request);
  return { plan: await planPackages(request.addons ?? [], request, context), release, commit };
}

function requireChannelName(name: string): void {
  if (isChannelName(name)) return;
  throw new CurlewError('USAGE', `--channel: ${JSON.stringify(name.slice(0, 100))} is not the name of a channel`, {
    hint: 'use lower-case letters, digits, ".", "_" and "-", with a letter or digit at both ends',
  });
}

function channelsOf({ channel = [] }: PublishRequest): readonly string[] | undefined {
  return channel.length === 0 ? undefined : channel;
}

const CONTINUES =
  'the same command continues the release, and neither builds nor uploads again what is complete; readers see it only once it is whole';

/** After an interruption, the same request resumes. */
export const publish = useCase(PUBLISH, async (request, context): Promise<PublishResult> => {
  return publishChanged(request, context).catch((error: unknown) => {
    throw canceledOr(error, context.signal, CONTINUES);
  });
});

async function publishChanged(request: PublishRequest, context: Context): Promise<PublishResult> {
  const { cwd, report, signal } = context;
  const { plan, release, commit } = await check(request, context);
  const lock = lockMode(request);
  const orders = await readVersionOrders(plan, { cwd, signal });
  const store = await openStoreFor(request.to, request, context, { create: true });
  const signer = await signerOf(request, context, { address: store.address, remember: true });
  const previous = await readPrevious(store, { trust: signer?.trust, signal });
  const makeCurrent = request.makeCurrent === true;
  if (release !== undefined) await refuseOlder(store, release, { current: previous.current, makeCurrent, signal });
  await using ports = await openBuildPorts(plan.addons, request, context);
  const jobs = request.jobs ?? JOBS;
  const compared = await compareWithRelease(plan, previous.packages, ports, { jobs: AT_ONCE, lock, signal });
  const stale = compared.filter(({ because }) => because !== undefined);
  const rebuilt = { ...plan, addons: stale.map(({ addon }) => addon) };
  const packages = stale.length === 0 ? [] : await buildAddons(rebuilt, ports, { jobs, lock, signal });
  const published = await publishPackages(packages, {
    store,
    signer,
    release,
    makeCurrent,
    now: new Date(),
    carry: (request.addons ?? []).length > 0,
    previous,
    unchanged: new Set([
      ...compared.filter(({ because }) => because === undefined).map(({ file }) => file),
      ...otherArchitectures(compared, previous.packages),
    ]),
    orders,
    channels: channelsOf(request),
    commit,
    jobs,
    report,
    signal,
  });
  await noteUnsigned(store, { release: published.release, signer, planned: false }, context);
  return published;
}

const ORDER_LIMIT = 1 << 20;

/** Orders in `versions.json` next to the versions of planned add-ons; empty for add-ons without that file. */
async function readVersionOrders(
  { addons }: BuildPlan,
  { cwd, signal }: { readonly cwd: string; readonly signal: AbortSignal },
): Promise<VersionOrders> {
  const orders = new Map<string, readonly string[]>();
  for (const { ref, root } of addons) {
    if (orders.has(ref.name)) continue;
    const path = join(dirname(resolve(cwd, root)), 'versions.json');
    signal.throwIfAborted();
    const text = await readStateFile(path, ORDER_LIMIT);
    orders.set(ref.name, text === undefined ? [] : parseOrderFile(text, path));
  }
  return orders;
}

/** Add-ons compared at once: most of the time is spent waiting for responses. */
const AT_ONCE = 16;

/** Plans what {@link publish} would build, upload and copy, and why; warns and refuses as far as the builds do not decide. Changes nothing. */
export const planPublish = useCase(PUBLISH, async (request, context): Promise<PublishPlan> => {
  const { cwd, report, signal } = context;
  const { to, addons = [], makeCurrent = false } = request;
  const { plan, release: requested } = await check(request, context);
  const lock = lockMode(request);
  await readVersionOrders(plan, { cwd, signal });
  const store = await findStoreFor(to, request, context);
  const address = store?.address ?? resolve(cwd, to);
  const signer = await signerOf(request, context, { address, remember: false });
  const previous = store === undefined ? NO_PREVIOUS : await readPrevious(store, { trust: signer?.trust, signal });
  if (store !== undefined && requested !== undefined)
    await refuseOlder(store, requested, { current: previous.current, makeCurrent, signal });
  await using ports = await openBuildPorts(plan.addons, request, context);
  const compared = await compareWithRelease(plan, previous.packages, ports, {
    jobs: AT_ONCE,
    lock,
    dryRun: true,
    signal,
  });
  const { rows, carried } = await planRows(compared, { previous, carry: addons.length > 0, out: ports.out });
  const release = requested ?? (await nextRelease(previous, { store, now: new Date(), signal }));
  const channels = channelsOf(request) ?? previous.channels;
  const listed = compared.map(({ addon, because, file }) => {
    const before = because === undefined ? previous.packages.get(file) : undefined;
    return before?.listed ?? unbuiltPackage(addon.ref, plan.arch);
  });
  const unbuilt = new Set(compared.flatMap(({ because, file }) => (because === undefined ? [] : [file])));
  const planned = { store, release, previous, channels, unbuilt, signer, makeCurrent, report, signal };
  await previewPublish([...listed, ...carried.map((one) => one.listed)], planned);
  const bytes = (chosen: readonly PlannedPackage[]): number => chosen.reduce((sum, { size }) => sum + (size ?? 0), 0);
  return {
    store: address,
    release,
    previous: previous.current?.release,
    plan: rows,
    channels,
    bytesUp: bytes(rows.filter(({ change }) => change !== 'unchanged')),
    bytesCopied: bytes(rows.filter(({ change }) => change === 'unchanged')),
  };
});

/** A row for each package of the release, and those that it takes from the previous one although they are not planned. */
async function planRows(
  compared: readonly ComparedAddon[],
  { previous, carry, out }: { readonly previous: Previous; readonly carry: boolean; readonly out: string },
) {
  const named = new Set(compared.map(({ file }) => file));
  const others = new Set(otherArchitectures(compared, previous.packages));
  const taken = [...previous.packages].filter(([file]) => !named.has(file) && (carry || others.has(file)));
  const carried = taken.map(([, earlier]) => earlier);
  const rows: PlannedPackage[] = [];
  for (const one of compared) rows.push({ ...one.change, size: await sizeOf(one, previous, out) });
  for (const { listed, recorded, release } of carried) {
    const { name, version, entry } = listed;
    const since = recorded?.since ?? release;
    rows.push({ name, version, change: 'unchanged', because: undefined, since, size: entry.size });
  }
  return { rows, carried };
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
