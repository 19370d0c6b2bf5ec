/** A plan with its reasons, add-on by add-on, for the operator before a run. */
import type { AddonVersion } from '../../core/ref.ts';
import type { Reporting } from '../../core/cancellable.ts';
import { checkHost, hostProblems, type HostChecks } from '../host/host-checks.ts';
import { NO_RUNTIME, planHost } from '../host/host-plan.ts';
import { leftByRemoval } from '../plan/hooks.ts';
import { actionId } from '../plan/action-id.ts';
import { isRemoved } from '../plan/order.ts';
import { basisOf, type SavedOptions, type SavedPlan } from './saved-plan.ts';
import { portConflicts } from '../plan/ports.ts';
import { sizeOnDisk, type MountPlan } from '../plan/disk.ts';
import { requireOwnSystem } from '../host/own-system.ts';
import { rollbackOutlooks, type RollbackOutlook } from '../prepare/former-states.ts';
import type { TrialCluster } from '../node/node-place.ts';
import type { RunPlan } from '../plan/run-plan.ts';
import type { RunView } from '../prepare/request.ts';

/** The planned changes of one add-on. */
export interface AddonOutlook extends AddonVersion {
  /** The version that it replaces; absent if it is not installed, or in this version. */
  readonly replaces?: string | undefined;
  /** Undefined if it is not fetched. */
  readonly fetch: { readonly because: string; readonly bytes: number } | undefined;
  readonly extract: { readonly wanted: boolean; readonly because: string; readonly bytes: number };
  readonly images: {
    readonly total: number;
    /** References of those that are loaded. */
    readonly missing: readonly string[];
    readonly bytes: number;
    /** Why none are loaded. */
    readonly skipped: string | undefined;
  };
  /** The version that `curlew rollback` returns to after the run; absent if there is none. */
  readonly back?: string | undefined;
  /** Why a rollback to the present version will not be possible; absent if it will be, or the add-on is not installed. */
  readonly noBack?: string | undefined;
  readonly apply: { readonly mode: RunPlan['addons'][number]['mode']; readonly because: string };
  /** Functions of its install.sh that the run will call, in order. */
  readonly hooks: readonly string[];
  /** The leftovers of its removal; absent if it has a hook for that, or is not removed. */
  readonly leaves?: string | undefined;
  /** Hooks that the resumed run has done. */
  readonly done: readonly string[];
}

export interface DryRun extends SavedPlan {
  /** The install folder. */
  readonly directory: string;
  /** The cluster that hooks of a trial change; absent if they get no kubeconfig. */
  readonly cluster?: TrialCluster | undefined;
  readonly addons: readonly AddonOutlook[];
  /** Companion packages, and why they are needed; absent if there are none. */
  readonly along?: readonly { readonly name: string; readonly version: string; readonly because: string }[] | undefined;
  /** Results of the host checks, except checks that would change something; absent if there are none. */
  readonly checks?: HostChecks | undefined;
  /** Reasons why a run would stop before its first change, or may fail. */
  readonly problems: readonly string[];
  /** The error with which the run would stop before its first change. */
  readonly stops: 'NO_SPACE' | 'IMAGE_LOAD_FAILED' | 'PREFLIGHT_FAILED' | undefined;
  /** The file that the plan was saved to. */
  readonly out: string | undefined;
}

export interface DryRunOptions extends Reporting {
  readonly words: SavedOptions;
  readonly tool: string;
  readonly out: string | undefined;
}

/** Changes nothing, on this machine or in a container runtime. `UNSUPPORTED` if a run would be, too. */
export async function dryRun(view: RunView, { words, tool, out, report, signal }: DryRunOptions): Promise<DryRun> {
  const { plan, request } = view;
  const seen = { ...view, report, signal };
  await requireOwnSystem(seen);
  const host = await planHost(seen);
  const checks = await checkHost(seen, { readOnly: true });
  const unfit = checks === undefined ? [] : hostProblems(checks);
  const unloaded = host.images.skipped === NO_RUNTIME ? [`images cannot be loaded: ${NO_RUNTIME}`] : [];
  const backs = await rollbackOutlooks(view, { signal });
  const problems = [...host.disk.mounts.flatMap(shortOf), ...unfit, ...unloaded, ...portConflicts(host.ports)];
  return {
    format: 1,
    words,
    basis: basisOf(view, tool),
    plan,
    host,
    directory: request.place.directory,
    cluster: request.place.cluster,
    addons: plan.addons.map(({ ref }) => outlookOf(ref.name, view, host.images, backs)),
    along: view.companions.length === 0 ? undefined : view.companions.map(companionOutlook),
    checks,
    problems,
    stops: stopsBy(host.disk.fits, unloaded, unfit),
    out,
  };
}

function companionOutlook({ ref: { name, version }, because }: RunView['companions'][number]) {
  return { name, version, because };
}

/** Precedence is that of a run's checks. */
function stopsBy(fits: boolean, unloaded: readonly string[], unfit: readonly string[]): DryRun['stops'] {
  if (!fits) return 'NO_SPACE';
  if (unloaded.length > 0) return 'IMAGE_LOAD_FAILED';
  return unfit.length === 0 ? undefined : 'PREFLIGHT_FAILED';
}

function shortOf({ mountPoint, short, inodes }: MountPlan): readonly string[] {
  const missing = [
    ...(short === 0 ? [] : [`${Math.ceil(short / 1e6)} MB`]),
    ...(inodes === undefined || inodes.short === 0 ? [] : [`${inodes.short} inodes`]),
  ];
  return missing.length === 0 ? [] : [`${mountPoint} is too small: ${missing.join(' and ')} more needed`];
}

function outlookOf(
  name: string,
  { plan, request }: RunView,
  images: SavedPlan['host']['images'],
  backs: readonly RollbackOutlook[],
): AddonOutlook {
  const packages = [...request.packages, ...(request.removal?.packages ?? [])];
  const packaged = packages.find(({ source }) => source.ref.name === name)?.source;
  const planned = plan.addons.find(({ ref }) => ref.name === name);
  if (packaged === undefined || planned === undefined) throw new Error(`not a package of this plan: ${name}`);
  const own = plan.actions.filter(({ addon }) => addon === name);
  const fetch = own.find(({ kind }) => kind === 'fetch');
  const extract = own.find(({ kind }) => kind === 'extract');
  const loads = images.addons.find(({ addon }) => addon === name);
  const defined = new Set(packaged.addon.hooks);
  const back = backs.find((one) => one.name === name);
  return {
    name,
    version: packaged.ref.version,
    replaces: planned.replaces,
    fetch: fetch === undefined ? undefined : { because: fetch.because, bytes: packaged.remote?.size ?? 0 },
    extract: {
      wanted: extract !== undefined,
      because: extract?.because ?? 'its files are in place',
      bytes: extract === undefined ? 0 : sizeOnDisk(packaged.files).bytes,
    },
    images: {
      total: packaged.addon.images.length,
      missing: loads?.missing ?? [],
      bytes: loads?.bytes ?? 0,
      skipped: images.skipped,
    },
    back: back?.lost === undefined ? back?.version : undefined,
    noBack: back?.lost,
    apply: { mode: planned.mode, because: planned.because },
    hooks: own.flatMap((action) => (action.kind === 'hook' && defined.has(action.function) ? [action.function] : [])),
    leaves:
      isRemoved(planned) && planned.hasInstallScript ? leftByRemoval(name, (called) => defined.has(called)) : undefined,
    done: packaged.addon.hooks.filter((hook) =>
      plan.continues?.done.some(({ action }) => action === actionId('hook', hook)),
    ),
  };
}
