/** Which add-ons a run removes from a node: some of them, or all. */
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { nearest } from '../../core/nearest.ts';
import type { OrderedAddon } from '../../spec/order.ts';
import { readAsked } from './asked.ts';
import { isContainerRuntime, KUBERNETES } from '../hooks/hooks.ts';
import { keptPackage } from '../node/kept-package.ts';
import { type LastRun, readLastRun } from './last-run.ts';
import { describedPackage } from '../node/placed-package.ts';
import { isRemoved } from './plan-phases.ts';
import { type AppliedRecord, readRecords, type Records } from '../node/records.ts';
import type { ShellVariable } from '../hooks/settings.ts';
import type { SourcePackage } from '../node/source.ts';
import type { Removal, RunRequest, WantedPackage } from './request.ts';
import { hostname } from 'node:os';
import type { ClusterView } from '../cluster/consult.ts';
import { runsOf } from './run-folder.ts';

/** How {@link Removal} is to be done, where it is asked for. */
export type RemovalOptions = Pick<Removal, 'keepGoing' | 'keepData' | 'pruneImages'>;

interface Cancellable {
  readonly signal: AbortSignal;
}

interface KeptAddons {
  readonly removal: Pick<Removal, 'packages' | 'forgotten'>;
  readonly variables: readonly ShellVariable[];
}

/**
 * What runs the hooks that remove all add-ons of a node. An add-on whose package is not there any more is reported, and left
 * out.
 */
export async function resetRequest(
  directory: string,
  options: RemovalOptions,
  { report, signal }: Cancellable & { readonly report: Report },
): Promise<Pick<RunRequest, 'kind' | 'packages' | 'removal' | 'variables' | 'reapply'>> {
  const records = await readRecords(directory);
  const warn = (text: string): void => report({ type: 'note', level: 'warning', text });
  const { removal, variables } = await keptAddons(directory, records, Object.keys(records.applied), {
    unknown: (name) => warn(`${name}: another tool installed it: nothing of it is removed`),
    missing: (error) => warn(`${error.message}: its hooks do not run`),
    signal,
  });
  return { kind: 'reset', packages: [], removal: { ...removal, ...options }, variables, reapply: true };
}

/**
 * What runs the hooks that remove these add-ons. `NOT_FOUND` for one that is not installed, or whose package is not there
 * any more; `USAGE` for what everything else runs on, and where others that stay require one of them.
 */
export async function uninstallRequest(
  directory: string,
  names: readonly string[],
  options: RemovalOptions,
  { report, signal }: Cancellable & { readonly report: Report },
): Promise<Pick<RunRequest, 'kind' | 'packages' | 'removal' | 'variables' | 'reapply'>> {
  const records = await readRecords(directory);
  const installed = names.filter((name) => Object.hasOwn(records.applied, name));
  const others = names.filter((name) => !installed.includes(name));
  // What was extracted without being installed, or what an earlier try has removed from the records, has only files.
  const known = new Set([
    ...records.extracted.map(({ name }) => name),
    ...unfinishedRemovals(await readLastRun(directory, records), records),
  ]);
  const unknown = others.find((name) => !known.has(name));
  if (unknown !== undefined) throw notInstalled(unknown, records);
  const { removal, variables } = await removableAddons(directory, records, installed, { ...options, report, signal });
  const forgotten = [...removal.forgotten, ...others];
  await requireNoDependents(directory, records, { removal, names, signal });
  return { kind: 'uninstall', packages: [], removal: { ...removal, forgotten, ...options }, variables, reapply: true };
}

/** The same of add-ons that a spec no longer has; `wanted` are the packages that it does have. */
export async function pruneRequest(
  directory: string,
  wanted: readonly SourcePackage[],
  options: RemovalOptions,
  within: Cancellable & { readonly report: Report },
): Promise<{ readonly removal: Removal; readonly variables: readonly ShellVariable[] }> {
  const records = await readRecords(directory);
  const isWanted = (name: string): boolean => wanted.some(({ ref }) => ref.name === name);
  const names = Object.entries(records.applied).flatMap(([name, { digest }]) =>
    isWanted(name) || isBase(name) || digest === undefined ? [] : [name],
  );
  const { removal, variables } = await removableAddons(directory, records, names, { ...options, ...within });
  const stay = wanted.map(({ ref, addon }) => ({ ...addon, name: ref.name, version: ref.version }));
  refuseDependents(removal, stay, (name, by) => ({
    what: `remove ${name}, which is not in the spec: ${by} requires it`,
    hint: `put ${name} into the spec, or leave out --prune`,
  }));
  return { removal: { ...removal, ...options }, variables };
}

/** What everything else runs on. */
function isBase(name: string): boolean {
  return name === KUBERNETES || isContainerRuntime({ name });
}

async function removableAddons(
  directory: string,
  records: Records,
  names: readonly string[],
  { keepGoing, report, signal }: Pick<Removal, 'keepGoing'> & Cancellable & { readonly report: Report },
): Promise<KeptAddons> {
  const base = names.find(isBase);
  if (base !== undefined) {
    throw new CurlewError('USAGE', `uninstall ${base}: everything else on this node runs on it`, {
      hint: 'curlew reset removes all add-ons, and this one last',
    });
  }
  return keptAddons(directory, records, names, {
    unknown: (name) => {
      throw new CurlewError(
        'UNSUPPORTED',
        `uninstall ${name}: another tool installed it, and its hooks are not known`,
        {
          hint: `remove it as that tool does; curlew install of a bundle that has ${name} takes it over`,
        },
      );
    },
    missing: (error, name) => {
      if (!keepGoing) throw withMissingHint(error, name);
      report({ type: 'note', level: 'warning', text: `${error.message}: its hooks do not run` });
    },
    signal,
  });
}

function withMissingHint({ code, message, cause }: CurlewError, name: string): CurlewError {
  return new CurlewError(code, message, {
    hint: `install it again first; curlew uninstall ${name} --keep-going removes what is left of it without its hooks`,
    cause,
  });
}

interface KeptOptions extends Cancellable {
  readonly unknown: (name: string) => void;
  readonly missing: (error: CurlewError, name: string) => void;
}

async function keptAddons(
  directory: string,
  { applied, extracted }: Records,
  names: readonly string[],
  { unknown, missing, signal }: KeptOptions,
): Promise<KeptAddons> {
  const packages: WantedPackage[] = [];
  const forgotten: string[] = [];
  const variables = new Map<string, ShellVariable>();
  const rows = names.flatMap((name): readonly (readonly [string, AppliedRecord])[] => {
    const record = Object.hasOwn(applied, name) ? applied[name] : undefined;
    return record === undefined ? [] : [[name, record]];
  });
  const byRun = rows.toSorted(([, a], [, b]) => (a.run < b.run ? -1 : Number(a.run > b.run)));
  for (const [name, { version, digest, run }] of byRun) {
    const known = extracted.find((one) => one.name === name && one.version === version);
    const ref = { tree: known?.tree ?? 'addons', name, version } as const;
    const asked = await readAsked(directory, run);
    for (const variable of asked?.variables ?? []) variables.set(variable[0], variable);
    if (digest === undefined) {
      unknown(name);
      continue;
    }
    try {
      packages.push({ source: await keptPackage(directory, ref, digest, { signal }), settings: asked?.settings[name] });
    } catch (error) {
      if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
      missing(error, name);
      forgotten.push(name);
    }
  }
  return { removal: { packages, forgotten }, variables: [...variables.values()] };
}

function notInstalled(name: string, { applied }: Records): CurlewError {
  const near = nearest(name, new Set(Object.keys(applied)));
  return new CurlewError('NOT_FOUND', `uninstall ${name}: it is not installed on this node`, {
    hint: near === undefined ? 'curlew status shows what is' : `did you mean "${near}"?`,
  });
}

type StayingFacts = OrderedAddon & { readonly version: string };

async function requireNoDependents(
  directory: string,
  { applied, extracted }: Records,
  {
    removal,
    names,
    signal,
  }: Cancellable & { readonly removal: Pick<Removal, 'packages'>; readonly names: readonly string[] },
): Promise<void> {
  const stay: StayingFacts[] = [];
  for (const [name, { version, digest }] of Object.entries(applied)) {
    if (names.includes(name) || digest === undefined) continue;
    const tree = extracted.find((one) => one.name === name && one.version === version)?.tree ?? 'addons';
    const placed = await describedPackage(directory, { tree, name, version }, digest, { signal });
    if (placed !== undefined) stay.push({ ...placed.addon, name, version });
  }
  refuseDependents(removal, stay, (name, by, all) => ({
    what: `uninstall ${name}: ${by} requires it`,
    hint: `curlew uninstall ${[...names, ...all].join(' ')} removes both`,
  }));
}

/** What an add-on that stays requires must stay, or something else that fulfills it. */
function refuseDependents(
  { packages }: Pick<Removal, 'packages'>,
  stay: readonly StayingFacts[],
  words: (name: string, by: string, all: readonly string[]) => { readonly what: string; readonly hint: string },
): void {
  const removed = packages.map(({ source: { ref, addon } }) => ({ name: ref.name, fulfills: addon.fulfills }));
  // Lists of packages may be as long as their author likes: each is looked through once.
  const provided = new Set(stay.flatMap(({ name, fulfills }) => [name, ...fulfills]));
  const providers = new Map<string, string[]>();
  for (const { name, fulfills } of removed) {
    for (const one of new Set([name, ...fulfills])) providers.set(one, [...(providers.get(one) ?? []), name]);
  }
  const broken = stay.flatMap((addon) =>
    addon.requires
      .filter((wanted) => !provided.has(wanted))
      .flatMap((wanted) => (providers.get(wanted) ?? []).map((name) => ({ name, addon }))),
  );
  const [first] = broken;
  if (first === undefined) return;
  const dependents = [...new Set(broken.map(({ addon }) => addon))];
  const by = dependents.map(({ name, version }) => `${name} ${version}`).join(', ');
  const { what, hint } = words(
    first.name,
    by,
    dependents.map(({ name }) => name),
  );
  throw new CurlewError('USAGE', what, { hint });
}

/** Names that a run which did not finish has removed from the records; files of theirs may be left. */
export function unfinishedRemovals(last: LastRun | undefined, { applied }: Records): readonly string[] {
  if (last === undefined || last.outcome === 'finished') return [];
  const removed = last.planned?.plan.addons.filter(isRemoved) ?? [];
  return removed.flatMap(({ ref: { name } }) => (Object.hasOwn(applied, name) ? [] : [name]));
}

/**
 * Names of those that leave the cluster with this run, so that their part in it is removed, too. Without a cluster that is
 * everything that was installed from this node. `CLUSTER_FAILED` when the cluster of an `uninstall` does not answer.
 */
export async function leavingAddons(
  { kind, place, removal, cluster }: Pick<RunRequest, 'kind' | 'place' | 'removal' | 'cluster'>,
  own: Records,
  view: ClusterView,
): Promise<{ readonly leaving: ReadonlySet<string>; readonly notes: readonly string[] }> {
  const names = (removal?.packages ?? []).map(({ source }) => source.ref.name);
  const recordOf = (name: string): AppliedRecord | undefined =>
    Object.hasOwn(own.applied, name) ? own.applied[name] : undefined;
  const installed = names.filter((name) => recordOf(name)?.by !== 'join');
  const nothing = { leaving: new Set<string>(), notes: [] };
  // On a node beside the primary nothing is removed from the cluster.
  if (names.length === 0 || kind === 'join' || kind === 'upgrade') return nothing;
  if (view.cluster === undefined) {
    if (own.cluster === undefined || cluster === undefined || installed.length === 0)
      return { ...nothing, leaving: new Set(installed) };
    if (kind !== 'reset' && removal?.keepGoing !== true) {
      throw new CurlewError('CLUSTER_FAILED', `remove ${installed.join(', ')}: the API server does not answer`, {
        hint: `start it (crictl ps -a shows its container); curlew uninstall ${installed.join(' ')} --keep-going leaves what they have in the cluster`,
      });
    }
    return { ...nothing, notes: ['the API server does not answer: what the add-ons have in the cluster stays there'] };
  }
  // Before an add-on is installed to its end, the cluster may not have heard of it.
  const isListed = (name: string): boolean => Object.hasOwn(view.known, name);
  const isPending = (name: string): boolean => recordOf(name)?.by !== 'join' && recordOf(name)?.finished === false;
  if (kind !== 'reset')
    return { ...nothing, leaving: new Set(names.filter((name) => isListed(name) || isPending(name))) };
  if (recordOf(KUBERNETES) !== undefined && (await hasOtherControlPlanes(view))) return nothing;
  const runs = new Set([...(await runsOf(place.directory)), ...Object.values(own.applied).map(({ run }) => run)]);
  const isOurs = (name: string): boolean => (isListed(name) ? runs.has(view.known[name]?.run ?? '') : isPending(name));
  return { ...nothing, leaving: new Set(installed.filter(isOurs)) };
}

async function hasOtherControlPlanes({ cluster }: ClusterView): Promise<boolean> {
  const nodes = (await cluster?.readNodes()) ?? [];
  return nodes.some(({ name, controlPlane }) => controlPlane && name !== hostname().toLowerCase());
}
