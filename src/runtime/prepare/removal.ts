/** Requests that remove some or all add-ons of a node. */
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { nearest } from '../../core/nearest.ts';
import type { OrderedAddon } from '../../spec/order.ts';
import { readSavedRequest } from './saved-request.ts';
import { isContainerRuntime, KUBERNETES } from '../plan/hooks.ts';
import { keptPackage } from '../node/kept-package.ts';
import { readLastRun } from './last-run.ts';
import type { LastRun } from '../plan/continue-plan.ts';
import { describedPackage } from '../node/placed-package.ts';
import { isRemoved } from '../plan/order.ts';
import { readRecords } from '../node/records.ts';
import { type AppliedRecord, type Records, recordOf, recordedRef } from '../plan/records.ts';
import type { ShellVariable } from '../../spec/variables.ts';
import type { SourcePackage } from '../node/source.ts';
import type { PlannedRemoval, RunRequest, RequestedPackage } from './request.ts';
import { hostname } from 'node:os';
import type { ClusterView } from '../cluster/consult.ts';
import { runsOf } from './run-folder.ts';

/** Options of a requested {@link PlannedRemoval}. */
export type RemovalOptions = Pick<PlannedRemoval, 'keepGoing' | 'keepData' | 'pruneImages'>;

interface KeptAddons {
  readonly removal: Pick<PlannedRemoval, 'packages' | 'forgotten'>;
  readonly variables: readonly ShellVariable[];
}

/**
 * A request that runs the hooks to remove all add-ons of a node. An add-on whose package no longer exists is reported and left
 * out.
 */
export async function resetRequest(
  directory: string,
  options: RemovalOptions,
  { report, signal }: Cancellable & { readonly report: Report },
): Promise<Pick<RunRequest, 'kind' | 'packages' | 'variables' | 'reapply'> & { readonly removal: PlannedRemoval }> {
  const records = await readRecords(directory);
  const warn = (text: string): void => report({ type: 'note', level: 'warning', text });
  const { removal, variables } = await keptAddons(directory, records, Object.keys(records.applied), {
    unknown: (name) => warn(`${name}: another tool installed it, so it is not removed`),
    missing: (error) => warn(`${error.message}; its hooks are not run`),
    report,
    signal,
  });
  return { kind: 'reset', packages: [], removal: { ...removal, ...options }, variables, reapply: true };
}

/**
 * A request that runs the hooks to remove these add-ons. `NOT_FOUND` if one is not installed or its package no longer exists;
 * `USAGE` for kubernetes and the container runtime, and if an add-on that stays requires one of them.
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
  // Add-ons that were extracted but not installed, or that an earlier try removed from the records, have only files.
  const last = await readLastRun(directory, records);
  const known = new Set([...records.extracted.map(({ name }) => name), ...unfinishedRemovals(last, records)]);
  const unknown = others.find((name) => !known.has(name));
  if (unknown !== undefined) throw notInstalled(unknown, records, last);
  const { removal, variables } = await removableAddons(directory, records, installed, { ...options, report, signal });
  const forgotten = [...removal.forgotten, ...others];
  await requireNoDependents(directory, records, { removal, names, signal });
  return { kind: 'uninstall', packages: [], removal: { ...removal, forgotten, ...options }, variables, reapply: true };
}

/** A removal of the add-ons that a spec no longer has; `required` are the packages that it has. */
export async function pruneRequest(
  directory: string,
  required: readonly SourcePackage[],
  options: RemovalOptions,
  within: Cancellable & { readonly report: Report },
): Promise<{ readonly removal: PlannedRemoval; readonly variables: readonly ShellVariable[] }> {
  const records = await readRecords(directory);
  const isRequired = (name: string): boolean => required.some(({ ref }) => ref.name === name);
  const names = Object.entries(records.applied).flatMap(([name, { digest }]) =>
    isRequired(name) || isBase(name) || digest === undefined ? [] : [name],
  );
  const { removal, variables } = await removableAddons(directory, records, names, { ...options, ...within });
  const stay = required.map(({ ref, addon }) => ({ ...addon, name: ref.name, version: ref.version }));
  refuseDependents(removal, stay, (name, by) => ({
    what: `remove ${name}, which is not in the spec: ${by} requires it`,
    hint: `add ${name} to the spec, or omit --prune`,
  }));
  return { removal: { ...removal, ...options }, variables };
}

/** True for the add-ons that all others run on. */
function isBase(name: string): boolean {
  return name === KUBERNETES || isContainerRuntime({ name });
}

async function removableAddons(
  directory: string,
  records: Records,
  names: readonly string[],
  { keepGoing, report, signal }: Pick<PlannedRemoval, 'keepGoing'> & Cancellable & { readonly report: Report },
): Promise<KeptAddons> {
  const base = names.find(isBase);
  if (base !== undefined) {
    throw new CurlewError('USAGE', `cannot uninstall ${base}: everything else on this node runs on it`, {
      hint: 'curlew reset removes all add-ons, this one last',
    });
  }
  return keptAddons(directory, records, names, {
    unknown: (name) => {
      throw new CurlewError(
        'UNSUPPORTED',
        `cannot uninstall ${name}: another tool installed it, and its hooks are unknown`,
        { hint: `remove it with that tool; or take it over: curlew install with a bundle that has ${name}` },
      );
    },
    missing: (error, name) => {
      const hint = `install it again first; curlew uninstall ${name} --keep-going removes its files without running its hooks`;
      if (!keepGoing) throw error.with({ hint });
      report({ type: 'note', level: 'warning', text: `${error.message}; its hooks are not run` });
    },
    report,
    signal,
  });
}

interface KeptOptions extends Cancellable {
  readonly report: Report;
  readonly unknown: (name: string) => void;
  readonly missing: (error: CurlewError, name: string) => void;
}

async function keptAddons(
  directory: string,
  { applied, extracted }: Records,
  names: readonly string[],
  { unknown, missing, report, signal }: KeptOptions,
): Promise<KeptAddons> {
  const packages: RequestedPackage[] = [];
  const forgotten: string[] = [];
  const variables = new Map<string, ShellVariable>();
  const rows = names.flatMap((name): readonly (readonly [string, AppliedRecord])[] => {
    const record = recordOf(applied, name);
    return record === undefined ? [] : [[name, record]];
  });
  const byRun = rows.toSorted(([, a], [, b]) => (a.run < b.run ? -1 : Number(a.run > b.run)));
  for (const [name, { version, digest, run }] of byRun) {
    const ref = recordedRef({ extracted }, name, version);
    const asked = await readSavedRequest(directory, run);
    for (const variable of asked?.variables ?? []) variables.set(variable[0], variable);
    if (digest === undefined) {
      unknown(name);
      continue;
    }
    try {
      packages.push({
        source: await keptPackage(directory, ref, digest, { report, signal }),
        settings: asked?.settings[name],
      });
    } catch (error) {
      if (!(error instanceof CurlewError) || error.code !== 'NOT_FOUND') throw error;
      missing(error, name);
      forgotten.push(name);
    }
  }
  return { removal: { packages, forgotten }, variables: [...variables.values()] };
}

function notInstalled(name: string, { applied }: Records, last: LastRun | undefined): CurlewError {
  if (removedBy(last).includes(name)) {
    return new CurlewError('NOT_FOUND', `${name} is already uninstalled: the last run on this node removed it`, {
      hint: 'nothing is left to do; curlew status lists installed add-ons',
    });
  }
  const near = nearest(name, new Set(Object.keys(applied)));
  return new CurlewError('NOT_FOUND', `cannot uninstall ${name}: it is not installed on this node`, {
    hint: near === undefined ? 'curlew status lists installed add-ons' : `did you mean "${near}"?`,
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
  }: Cancellable & { readonly removal: Pick<PlannedRemoval, 'packages'>; readonly names: readonly string[] },
): Promise<void> {
  const stay: StayingFacts[] = [];
  for (const [name, { version, digest }] of Object.entries(applied)) {
    if (names.includes(name) || digest === undefined) continue;
    const placed = await describedPackage(directory, recordedRef({ extracted }, name, version), digest, { signal });
    if (placed !== undefined) stay.push({ ...placed.addon, name, version });
  }
  refuseDependents(removal, stay, (name, by, all) => ({
    what: `uninstall ${name}: ${by} requires it`,
    hint: `curlew uninstall ${[...names, ...all].join(' ')} removes all of them`,
  }));
}

/** Throws `USAGE` if an add-on that stays requires a removed one, and no other that stays fulfills it. */
function refuseDependents(
  { packages }: Pick<PlannedRemoval, 'packages'>,
  stay: readonly StayingFacts[],
  describe: (name: string, by: string, all: readonly string[]) => { readonly what: string; readonly hint: string },
): void {
  const removed = packages.map(({ source: { ref, addon } }) => ({ name: ref.name, fulfills: addon.fulfills }));
  // The lists are of any length: each is searched only once.
  const provided = new Set(stay.flatMap(({ name, fulfills }) => [name, ...fulfills]));
  const providers = new Map<string, string[]>();
  for (const { name, fulfills } of removed) {
    for (const one of new Set([name, ...fulfills])) providers.set(one, [...(providers.get(one) ?? []), name]);
  }
  const broken = stay.flatMap((addon) =>
    addon.requires
      .filter((required) => !provided.has(required))
      .flatMap((required) => (providers.get(required) ?? []).map((name) => ({ name, addon }))),
  );
  const [first] = broken;
  if (first === undefined) return;
  const dependents = [...new Set(broken.map(({ addon }) => addon))];
  const by = dependents.map(({ name, version }) => `${name} ${version}`).join(', ');
  const { what, hint } = describe(
    first.name,
    by,
    dependents.map(({ name }) => name),
  );
  throw new CurlewError('USAGE', what, { hint });
}

/** Add-ons that an unfinished run has removed from the records; some of their files may remain. */
export function unfinishedRemovals(last: LastRun | undefined, { applied }: Records): readonly string[] {
  if (last === undefined || last.outcome === 'finished') return [];
  return removedBy(last).filter((name) => !Object.hasOwn(applied, name));
}

function removedBy(last: LastRun | undefined): readonly string[] {
  return last?.planned?.plan.addons.filter(isRemoved).map(({ ref }) => ref.name) ?? [];
}

/**
 * Names of the add-ons that this run also removes from the cluster. Without a cluster, these are all that were installed from
 * this node. `CLUSTER_FAILED` if the cluster of an `uninstall` does not answer.
 */
export async function leavingAddons(
  { kind, place, removal, cluster }: Pick<RunRequest, 'kind' | 'place' | 'removal' | 'cluster'>,
  own: Records,
  view: ClusterView,
): Promise<{ readonly leaving: ReadonlySet<string>; readonly notes: readonly string[] }> {
  const names = (removal?.packages ?? []).map(({ source }) => source.ref.name);
  const installed = names.filter((name) => recordOf(own.applied, name)?.by !== 'join');
  const nothing = { leaving: new Set<string>(), notes: [] };
  // Only the primary removes add-ons from the cluster.
  if (names.length === 0 || kind === 'join' || kind === 'upgrade') return nothing;
  if (view.cluster === undefined) {
    if (own.cluster === undefined || cluster === undefined || installed.length === 0)
      return { ...nothing, leaving: new Set(installed) };
    if (kind !== 'reset' && removal?.keepGoing !== true) {
      throw new CurlewError(
        'CLUSTER_FAILED',
        `cannot remove ${installed.join(', ')}: the API server does not respond`,
        {
          hint: `start it (crictl ps -a shows its container); curlew uninstall ${installed.join(' ')} --keep-going leaves their objects in the cluster`,
        },
      );
    }
    return { ...nothing, notes: ['the API server does not respond: objects of the add-ons stay in the cluster'] };
  }
  // The cluster's record may not list an add-on whose install has not finished.
  const isListed = (name: string): boolean => Object.hasOwn(view.known, name);
  const isPending = (name: string): boolean => {
    const { by, finished } = recordOf(own.applied, name) ?? {};
    return by !== 'join' && finished === false;
  };
  if (kind !== 'reset')
    return { ...nothing, leaving: new Set(names.filter((name) => isListed(name) || isPending(name))) };
  if (recordOf(own.applied, KUBERNETES) !== undefined && (await hasOtherControlPlanes(view))) return nothing;
  const runs = new Set([...(await runsOf(place.directory)), ...Object.values(own.applied).map(({ run }) => run)]);
  const isOurs = (name: string): boolean => (isListed(name) ? runs.has(view.known[name]?.run ?? '') : isPending(name));
  const staying = installed.filter((name) => view.channels.has(name));
  const leaving = new Set(installed.filter((name) => isOurs(name) && !staying.includes(name)));
  return { leaving, notes: staying.map((name) => `${name} stays in the cluster: ${view.channels.get(name)} keeps it`) };
}

async function hasOtherControlPlanes({ cluster }: ClusterView): Promise<boolean> {
  const nodes = (await cluster?.readNodes()) ?? [];
  return nodes.some(({ name, controlPlane }) => controlPlane && name !== hostname().toLowerCase());
}
