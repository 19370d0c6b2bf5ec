/** Plans a run: what it will do, and why. Pure: from packages, records and spec to plain data. */
import { CurlewError } from '../../core/errors.ts';
import { compareText, compareVersions, type AddonVersion } from '../../core/ref.ts';
import { orderAddons } from '../../spec/order.ts';
import { isContainerRuntime, KUBERNETES } from './hooks.ts';
import { phases } from './order.ts';
import {
  installedVersion,
  settingsDigest,
  replacedVersion,
  offeredRollback,
  type AppliedRecord,
  type Records,
  recordOf,
} from './records.ts';
import type { PackageFacts, PlannedAddon, PlanOptions, RunKind, RunPlan, SpecKind } from './run-plan.ts';

/**
 * `SPEC_INVALID` if an add-on is in the spec twice or `requires` has a cycle. `DOWNGRADE` if a version is older than the
 * recorded one, unless that is allowed.
 */
export function planRun(
  kind: RunKind,
  packages: readonly PackageFacts[],
  records: Records,
  options: PlanOptions,
): RunPlan {
  const names = new Set<string>();
  for (const { ref } of [...packages, ...(options.removed ?? [])]) {
    if (names.has(ref.name)) throw new CurlewError('SPEC_INVALID', `plan: ${ref.name} is in the spec twice`);
    names.add(ref.name);
  }
  if (options.allowDowngrade !== true) refuseDowngrades(packages, records);
  const ordered = inOrder(packages);
  // The order is reversed, because later add-ons depend on earlier ones.
  const removed = inOrder(options.removed ?? []).toReversed();
  const addons = [
    ...ordered.map((facts) => planAddon(kind, facts, records, options)),
    ...removed.map((facts) => planRemoval(kind, facts, options)),
  ];
  return {
    format: 1,
    kind,
    addons,
    actions: phases(kind, { facts: [...ordered, ...removed], addons, records, options }),
  };
}

function inOrder(packages: readonly PackageFacts[]): readonly PackageFacts[] {
  return orderAddons(packages.map((facts) => ({ ...facts, name: facts.ref.name })));
}

function refuseDowngrades(packages: readonly PackageFacts[], { applied }: Records): void {
  const older = packages.flatMap(({ ref: { name, version } }) => {
    const before = recordOf(applied, name);
    // An add-on whose first install never finished has no version to compare with.
    if (before === undefined || installedVersion(before) === undefined) return [];
    return compareVersions(before.version, version) > 0 ? [{ name, version, before }] : [];
  });
  if (older.length === 0) return;
  const rows = older.map(({ name, version, before }) => `${name} from ${before.version} to ${version}`);
  throw new CurlewError('DOWNGRADE', `this would downgrade ${rows.join(', ')}`, { hint: downgradeHint(older) });
}

interface Downgrade extends AddonVersion {
  readonly before: AppliedRecord;
}

function downgradeHint(older: readonly Downgrade[]): string {
  const reversible = older.filter(({ name, version, before }) => offeredRollback(name, before)?.version === version);
  const failed = reversible.find(({ before }) => installedVersion(before) !== before.version);
  if (failed !== undefined) {
    return `curlew rollback ${failed.name} restores the version before the failed upgrade`;
  }
  const [back] = reversible;
  const other =
    back === undefined ? 'use a newer bundle or release' : `curlew rollback ${back.name} restores ${back.version}`;
  return `${other}; --allow-downgrade installs this one, which may not be able to read newer data`;
}

function planAddon(kind: RunKind, facts: PackageFacts, records: Records, options: PlanOptions): PlannedAddon {
  const { ref, digest, hasInstallScript } = facts;
  const settings = settingsDigest(facts.settings);
  const replaces = replacedVersion(ref, records);
  const common = { ref, digest, settings, ...(replaces === undefined ? {} : { replaces }), hasInstallScript };
  if (kind !== 'install' && !isContainerRuntime(ref)) return { ...common, mode: 'join', because: `every ${kind}` };
  const because = whyChanged({ ref, digest, settings }, recordOf(records.applied, ref.name), options);
  return because === undefined
    ? { ...common, mode: 'already applied', because: 'same version, package and settings, and its last run finished' }
    : { ...common, mode: 'install', because };
}

function planRemoval(kind: RunKind, facts: PackageFacts, { leaving }: PlanOptions): PlannedAddon {
  const { ref, digest, hasInstallScript } = facts;
  const mode = leaving?.has(ref.name) === true ? 'remove' : 'leave';
  const whose = mode === 'remove' ? '' : kind === 'reset' ? 'this node leaves: ' : 'only from this node: ';
  const because = kind === 'reset' || kind === 'uninstall' ? 'requested' : 'it is not in the spec';
  return { ref, digest, settings: settingsDigest(facts.settings), mode, because: whose + because, hasInstallScript };
}

/** The address may be only in ekco's settings, but kubernetes serves it. */
function whyMoved(name: string, { loadBalancer }: Pick<PlanOptions, 'loadBalancer'>): string | undefined {
  if (name !== KUBERNETES || loadBalancer === undefined) return undefined;
  return `the load balancer was ${loadBalancer.before} and is ${loadBalancer.now}`;
}

/** {@link whyInstall}, or that the cluster's load balancer changes. */
export function whyChanged(
  planned: Pick<PlannedAddon, 'ref' | 'digest' | 'settings'>,
  record: AppliedRecord | undefined,
  options: Pick<PlanOptions, 'reapply' | 'loadBalancer'>,
): string | undefined {
  return whyInstall(planned, record, options.reapply) ?? whyMoved(planned.ref.name, options);
}

/** Why an add-on is installed that was installed in another version. */
export function otherVersion(version: string): string {
  return `version ${version} was installed`;
}

/** Undefined if the add-on need not be installed. */
export function whyInstall(
  { ref, digest, settings }: Pick<PlannedAddon, 'ref' | 'digest' | 'settings'>,
  record: AppliedRecord | undefined,
  reapply: boolean,
): string | undefined {
  if (record === undefined) return 'it was not installed';
  if (record.by === 'join') return 'this node joined with it and did not install it';
  if (record.version !== ref.version) return otherVersion(record.version);
  if (record.digest === undefined) return `another tool installed ${record.version}, from an unknown package`;
  if (record.digest !== digest) return 'another package of this version was installed';
  if (record.settings !== settings) return 'its settings have changed';
  if (!record.finished) return 'its last run did not finish';
  return reapply ? 'requested by --reapply' : undefined;
}

/**
 * The kind of run on a node with these records: `install` also upgrades the node that add-ons were installed from, since only
 * an install applies them. Throws `USAGE` if such a node is to join.
 */
export function kindOnNode(requested: SpecKind, { applied }: Pick<Records, 'applied'>): SpecKind {
  // Every kind of run installs the container runtime.
  const installed = Object.entries(applied).filter(
    ([name, { by }]) => by === 'install' && !isContainerRuntime({ name }),
  );
  const [first] = installed;
  if (requested === 'install' || first === undefined) return requested;
  if (requested === 'upgrade') return 'install';
  const [name, { version }] = first;
  throw new CurlewError('USAGE', `curlew join: ${name} ${version} was installed from this node, so it cannot join`, {
    hint: 'curlew upgrade applies a newer bundle; curlew reset removes what is installed',
  });
}

export interface StayingAddon {
  readonly name: string;
  readonly version: string;
}

/** Applied add-ons that a run is not about and leaves as they are, by name. */
export function stayingAddons(
  about: readonly string[],
  { applied }: Pick<Records, 'applied'>,
): readonly StayingAddon[] {
  return Object.entries(applied)
    .filter(([name]) => !about.includes(name))
    .map(([name, { version }]) => ({ name, version }))
    .toSorted((a, b) => compareText(a.name, b.name));
}
