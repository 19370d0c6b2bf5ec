/** `curlew publish`: builds what has changed and makes a release of it in a store. */
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { buildAddons } from '../../build/build.ts';
import { CurlewError } from '../../core/errors.ts';
import { isCommit } from '../../store/release/inputs.ts';
import { readPrevious, type Previous } from '../../store/release/previous.ts';
import { refuseOlder } from '../../store/release/refuse-older.ts';
import { nextRelease, publishPackages, type PublishResult } from '../../store/release/publish.ts';
import { checkedRelease } from '../../store/release/release-name.ts';
import { openBuildPorts } from '../build-ports.ts';
import { BUILD_OPTIONS, countOf, lockMode, planPackages } from '../building.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { MAKE_CURRENT, noteUnsigned, SIGNER_OPTIONS, signerOf } from '../release-trust.ts';
import { KEY_OPTIONS } from '../signed.ts';
import { openStoreFor, STORE_OPTIONS } from '../stores.ts';
import { compareWithRelease, type Change, type ComparedAddon } from '../recorded.ts';
import { formatBytes } from '../render/units.ts';
import { readVersionOrders } from '../version-orders.ts';

/** Packages on their way into the store at once. */
const JOBS = 4;

const WHAT = {
  uploaded: 'uploaded',
  copied: 'unchanged, copied inside the store',
  present: 'there already',
} as const;

interface PlannedPackage extends Change {
  /** Bytes that would move: known for what is copied; else those of the file in --out or of the previous release. */
  readonly size: number | undefined;
}

interface PublishPlan {
  readonly store: string;
  readonly release: string;
  readonly previous: string | undefined;
  readonly plan: readonly PlannedPackage[];
  /** As far as sizes are known before building. */
  readonly bytesUp: number;
  readonly bytesCopied: number;
}

export const publish: Command<PublishResult | PublishPlan> = {
  name: 'publish',
  summary: 'Build add-ons and publish them as a release',
  operands: '[addon…]',
  options: {
    to: { type: 'string', value: 'STORE', help: 'folder, made if need be, or s3://bucket/prefix' },
    release: { type: 'string', value: 'R', help: 'release string (default: vYYYY.MM.DD-N, the next N of today)' },
    ...MAKE_CURRENT,
    commit: { type: 'string', value: 'SHA', help: 'git commit to note beside the packages (default: $GITHUB_SHA)' },
    'dry-run': { type: 'boolean', help: 'say what would be built, uploaded and copied, and why; change nothing' },
    ...SIGNER_OPTIONS,
    key: KEY_OPTIONS.key,
    ...STORE_OPTIONS,
    ...BUILD_OPTIONS,
  },
  details:
    'Without names, the release holds all add-ons below ./addons and ./packages and nothing else. With names, it holds\n' +
    'these, and from the previous release all that is not named.\n\n' +
    'What has not changed since the previous release is neither built nor uploaded but copied inside the store: its own\n' +
    'files, what its tags and addresses stand for now, and what its container builds are made from are compared with\n' +
    'what was recorded then. Stopped at any moment, the same command goes on with what is there.',
  examples: [
    'curlew publish --to /srv/dist',
    'curlew publish --to /srv/dist --release v1.4.0 --dry-run',
    'curlew publish --to /srv/dist --sign release.key',
  ],
  run: async (args, context) => {
    const { cwd, env, report, signal } = context;
    const to = args.text('to');
    if (to === undefined) throw new CurlewError('USAGE', 'curlew publish: say with --to where to publish');
    const commit = args.text('commit') ?? env['GITHUB_SHA'];
    if (commit !== undefined && !isCommit(commit)) {
      throw new CurlewError('USAGE', 'curlew publish: the commit is not a git commit in hex');
    }
    const given = args.text('release');
    const release = given === undefined ? undefined : checkedRelease(given, '--release');
    const lock = lockMode(args);
    const plan = await planPackages(args.positionals, args, context);
    const orders = await readVersionOrders(plan, { cwd, signal });
    if (args.flag('dry-run')) return dryRun(to, release, plan, args, context);
    const store = await openStoreFor(to, args, context, { create: true });
    const signer = await signerOf(args, context, { addresses: [store.address] });
    const previous = await readPrevious(store, { trust: signer?.trust, signal });
    const makeCurrent = args.flag('make-current');
    if (release !== undefined) await refuseOlder(store, release, { current: previous.current, makeCurrent, signal });
    await using ports = await openBuildPorts(plan.addons, args, context);
    const jobs = countOf(args, 'jobs', JOBS);
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
      carry: args.positionals.length > 0,
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
  },
  render: (result) => ('plan' in result ? planText(result) : resultText(result)),
};

/** Add-ons looked at at once: it is waiting for answers, mostly. */
const AT_ONCE = 16;

async function dryRun(
  to: string,
  given: string | undefined,
  plan: Awaited<ReturnType<typeof planPackages>>,
  args: Arguments,
  context: CommandContext,
): Promise<PublishPlan> {
  const { cwd, signal } = context;
  const store = await openStoreFor(to, args, context, { create: false }).catch((error: unknown) => {
    if (error instanceof CurlewError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
  const previous: Previous =
    store === undefined ? { current: undefined, packages: new Map() } : await readPrevious(store, { signal });
  const makeCurrent = args.flag('make-current');
  if (store !== undefined && given !== undefined)
    await refuseOlder(store, given, { current: previous.current, makeCurrent, signal });
  await using ports = await openBuildPorts(plan.addons, args, context);
  const options = { jobs: AT_ONCE, lock: undefined, signal };
  const compared = await compareWithRelease(plan, previous.packages, ports, options);
  const named = new Set(compared.map(({ file }) => file));
  const carried = args.positionals.length === 0 ? [] : [...previous.packages].filter(([file]) => !named.has(file));
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

function planText({ store, release, plan, bytesUp, bytesCopied }: PublishPlan): string {
  const lines = plan.map(({ name, version, change, because, since, size }) => {
    const reason = change === 'unchanged' ? `unchanged since ${since}` : `${change}: ${because}`;
    return `${name} ${version}: ${reason}, ${size === undefined ? 'size not known yet' : formatBytes(size)}`;
  });
  const isGuess = plan.some(({ change }) => change !== 'unchanged');
  const up = `${isGuess ? 'about ' : ''}${formatBytes(bytesUp)} to be uploaded`;
  return [...lines, `${store}: ${release} would be made; ${up}, ${formatBytes(bytesCopied)} copied`].join('\n');
}

function resultText({ store, release, previous, packages, bytesUp, bytesCopied, bytesPresent }: PublishResult): string {
  const lines = packages.map(({ name, version, size, outcome, sent }) => {
    const rest = outcome === 'uploaded' && sent < size ? `${formatBytes(sent)} of ` : '';
    const why = rest === '' ? '' : ' (an upload that was cut off had left the rest there)';
    return `${name} ${version}: ${WHAT[outcome]}, ${rest}${formatBytes(size)}${why}`;
  });
  const before = previous === undefined || previous === release ? '' : ` (before: ${previous})`;
  const there = bytesPresent === 0 ? '' : `, ${formatBytes(bytesPresent)} there already`;
  const moved = `${formatBytes(bytesUp)} uploaded, ${formatBytes(bytesCopied)} copied${there}`;
  return [...lines, `${store}: ${release} is the current release${before}; ${moved}`].join('\n');
}
