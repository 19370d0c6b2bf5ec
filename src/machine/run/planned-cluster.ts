/** The plan of the machines of a cluster, by what is seen of it. Pure. */
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { contains, kubernetesTriple, parseRange } from '../../cluster/channel/range.ts';
import type { DesiredCluster, Held, Phase, Policy, Step } from '../cluster.ts';
import { taintText } from '../marks.ts';
import { planCluster, type ClusterPlan } from '../plan.ts';
import { splitRefusals, withoutHosts } from '../refusals.ts';
import { settingNotes } from '../settings.ts';
import { SWAP, unreadyReasons } from '../unready.ts';
import type { WrittenCluster } from './cluster-file.ts';
import { maySwap, passedErrors, kubeadmSettingsOf } from './kubeadm-settings.ts';
import type { BundleFacts, ClusterLook, HostLook } from './look.ts';
import { refusedBundle, refusedImages } from './refused-bundle.ts';

export interface PlannedCluster extends ClusterPlan {
  readonly cluster: string;
  readonly hosts: readonly {
    readonly name: string;
    readonly role: string;
    /** `debian 12, x86_64, 3900 MiB`; why it does not answer otherwise. */
    readonly text: string;
    readonly answers: boolean;
    readonly joined: boolean;
    /** Nothing of Kubernetes is on it: a new machine in the place of the one that is the Node. */
    readonly bare?: true;
    /** Whether it is a Node could not be found out. */
    readonly unknown?: true;
    readonly kubelet?: string | undefined;
  }[];
  /** Settings that are no reason for a step, for people; absent without such. */
  readonly uncompared?: readonly string[];
  /** Digest of everything that the plan depends on. */
  readonly digest: Digest;
}

/** A step that a command has done on a machine. */
export interface Done {
  readonly host: string;
  readonly phase: Phase;
  /** The add-on that has moved on the cluster, and its version: `dns 1.1.0`. */
  readonly addon?: string | undefined;
}

/** Decisions of a person apart from the file. */
export interface Choices {
  /** Titles of host preflights that are passed. */
  readonly ignore?: readonly string[] | undefined;
  /** So many machines may be removed at once. */
  readonly approveRemovals?: number | undefined;
  /** An add-on may move right after Kubernetes, if no version of it fits before and after. */
  readonly allowGap?: boolean | undefined;
  /** Machines on which this command has failed: the others continue. */
  readonly away?: readonly string[] | undefined;
  /** A machine that gets the settings of the file where it is not known which ones it has. */
  readonly named?: string | undefined;
  /** Add-ons of channels that move where the version of Kubernetes needs it. */
  readonly channels?: Pick<Policy, 'entries' | 'compat'> | undefined;
}

/** `refused` has also what the file and its bundle do not have. */
export function planOf(
  cluster: WrittenCluster,
  look: ClusterLook,
  bundle: BundleFacts | undefined,
  {
    ignore = [],
    approveRemovals: approvedRemovals = 0,
    allowGap = false,
    channels,
    named,
    away: failed = [],
  }: Choices = {},
): PlannedCluster {
  const { hosts, seen, busy, unasked } = look;
  // Providers say addresses only when they are asked.
  const addresses = new Map(hosts.map(({ host }) => [host.name, host.address]));
  const machines = cluster.machines.map(({ name, role, address = addresses.get(name), machine, ...own }) => {
    const { labels, taints } = machine;
    const { kubeletVersion, update } = own;
    return { name, role, address, kubeletVersion, update, labels, taints: taints?.map(taintText) };
  });
  const settings = kubeadmSettingsOf(cluster.installer);
  const desired = { name: cluster.name, version: cluster.version, paused: cluster.paused, machines, settings };
  const { kubernetes } = cluster.installer;
  const isNew = seen.machines.every(({ joined }) => !joined);
  const first = isNew ? machines.find(({ role }) => role === 'control-plane')?.name : undefined;
  const split = (some: readonly Held[]) => splitRefusals(some, machines, seen.machines);
  const scene = { cluster, desired, look, bundle, policy: { approvedRemovals, allowGap, named, ...channels } };
  const known = split([
    ...look.refused,
    ...hosts.flatMap(({ host: { name: host, role }, facts }): readonly Held[] => {
      const isOther = cluster.machines.every(({ name }) => name !== host);
      // A host that is refused says nothing else.
      if (facts === undefined || isOther || look.refused.some((one) => one.host === host)) return [];
      const passed = passedErrors(kubernetes, host === first ? 'init' : 'join');
      const reasons = unreadyReasons(facts, role, { passed, swaps: ignore.includes(SWAP) || maySwap(kubernetes) });
      return reasons.map((reason) => ({ host, reason }));
    }),
  ]);
  const apart = [...known.own, ...failed.map((host) => ({ host, reason: 'a step has failed on it' }))];
  const tried = planPast(scene, apart);
  // What keeps a worker from joining is seen only when it is planned: the others are planned again without it.
  const joins = split(
    tried.late.filter(({ host }) => !seen.machines.some((one) => one.name === host && one.joined)),
  ).own;
  const away = [...apart, ...joins];
  const { planned, isKnown, able, late } = joins.length > 0 ? planPast(scene, away) : tried;
  const found = split(planned.refused);
  const stops = [...refusals(cluster, bundle), ...known.shared, ...found.shared, ...late];
  const alone = [...away, ...found.own];
  const refused = [...stops, ...known.own, ...joins, ...found.own];
  const steps = stops.length > 0 ? [] : able;
  const isAlone = ({ host }: Held): boolean => host !== undefined && alone.some((one) => one.host === host);
  const isAsked = isKnown && busy.length + unasked.length === 0;
  const unchecked = channels === undefined ? uncheckedAddons(desired.version, steps, look) : [];
  const held = [...look.held, ...unchecked, ...(isAsked ? planned.held.filter((one) => !isAlone(one)) : [])];
  // Free space changes all the time.
  const digest = digestOf(
    canonicalJson({
      desired,
      machines: jsonOf(cluster.machines.map(({ machine }) => machine)),
      // Providers say keys and users, too.
      ssh: jsonOf(hosts.map(({ host }) => host.ssh)),
      installer: cluster.installer,
      ignore: ignore.toSorted(),
      seen: jsonOf(seen),
      refused,
      steps,
      bundle: bundle ?? null,
    }),
  );
  const uncompared = settingNotes(settings, seen.machines);
  const shown = hosts.map((one) => shownHost(look, one));
  const noted = uncompared.length > 0 && { uncompared };
  return { cluster: cluster.name, hosts: shown, steps, held, refused, ...noted, digest };
}

interface PlanScene {
  readonly cluster: WrittenCluster;
  readonly desired: DesiredCluster;
  readonly look: ClusterLook;
  readonly bundle: BundleFacts | undefined;
  readonly policy: Policy;
}

/** The plan without what is wrong with these machines. `late`: what its steps would meet on hosts. */
function planPast({ cluster, desired, look, bundle, policy }: PlanScene, away: readonly Held[]) {
  const { hosts, seen, silent } = look;
  const whole = planCluster(desired, withoutHosts(seen, away), policy);
  // Its Node could be labeled, but may be that of another machine.
  const steps = whole.steps.filter(({ host, phase }) => phase !== 'label' || away.every((one) => one.host !== host));
  const planned = { ...whole, steps };
  // A host gets only the version of the bundle: one that is behind its cluster needs that of the cluster first.
  const early = planned.steps.filter(
    ({ phase, to }) => (phase === 'join' || phase === 'upgrade') && to !== cluster.version,
  );
  // Without a bundle to send, what kubectl there has said is all that can be known.
  const isKnown = silent === undefined || (bundle === undefined && seen.machines.some(({ joined }) => joined));
  const able: readonly Step[] = isKnown
    ? planned.steps
    : [{ host: silent.name, phase: 'images', reason: 'curlew must be there to ask it', waits: [] }];
  const hostsOf = (...some: readonly Phase[]): readonly HostLook[] =>
    hosts.filter((one) => able.some(({ host, phase }) => host === one.host.name && some.includes(phase)));
  const late = [
    ...early.map(({ host = '', phase, to }) => ({
      host,
      reason:
        phase === 'join'
          ? `it would join with ${to}, and the bundle has ${cluster.version}: let it join with the bundle of ${to} first, or add it after the upgrade`
          : `it must go to ${to} before its cluster goes to ${cluster.version}: apply the file with ${to} and its bundle first`,
    })),
    ...(bundle === undefined ? [] : hostsOf('images').flatMap((one) => refusedBundle(one, bundle))),
    ...(bundle === undefined ? [] : hostsOf('init', 'join').flatMap((one) => refusedImages(one, bundle))),
  ];
  return { planned, isKnown, able, late };
}

/** The row of a host, for people. */
export function shownHost(
  { seen, isListed }: ClusterLook,
  { host: { name, role }, facts, problem }: HostLook,
): PlannedCluster['hosts'][number] {
  const node = seen.machines.find((one) => one.name === name);
  const isBare = facts !== undefined && (node?.cluster === undefined || facts.isUnfinished);
  return {
    name,
    role,
    text: facts === undefined ? (problem?.reason ?? '') : `${facts.os}, ${facts.arch}, ${facts.memoryMiB} MiB`,
    answers: facts !== undefined,
    joined: node?.joined === true,
    ...(node?.joined === true && facts !== undefined && node.cluster === undefined && { bare: true }),
    ...(!isListed && !isBare && { unknown: true }),
    kubelet: node?.kubelet,
  };
}

function jsonOf(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** Add-ons whose channel says for which versions of Kubernetes they are, and was not named. */
function uncheckedAddons(version: string, steps: readonly Step[], { seen }: ClusterLook): readonly Held[] {
  const moves = steps.some(({ phase, host }) => {
    const { apiServer } = seen.machines.find(({ name }) => name === host) ?? {};
    return phase === 'upgrade' && apiServer !== undefined && minorOf(apiServer) !== minorOf(version);
  });
  if (!moves) return [];
  return [...(seen.addons ?? [])].map(([name, { version: installed = '', channel }]) => {
    const from = channel ?? 'LOCATION';
    return {
      reason: `${[name, installed].join(' ').trim()} may not be for ${version}: --channel ${from} checks it, and moves it where it must`,
    };
  });
}

function minorOf(version: string): string {
  return kubernetesTriple(version).slice(0, 2).join('.');
}

/** A package of the bundle moves with Kubernetes, on the node on which both are upgraded. */
function misfits({ ranges = [], kubernetes }: BundleFacts): readonly Held[] {
  return ranges
    .filter(({ range }) => !contains(parseRange(range, 'native').range ?? [], kubernetesTriple(kubernetes)))
    .map(({ name, version, range }) => ({
      reason: `the bundle has ${name} ${version}, which is for Kubernetes ${range}, and not for ${kubernetes}: use one with a version of ${name} that is`,
    }));
}

function refusals(cluster: WrittenCluster, bundle: BundleFacts | undefined): readonly Held[] {
  const { machines, version, installer, unreadable } = cluster;
  const held: Held[] = unreadable === undefined ? [] : [{ reason: unreadable }];
  const { loadBalancerAddress } = Object(installer['kubernetes']);
  const control = machines.filter(({ role }) => role === 'control-plane');
  if (control.length > 1 && typeof loadBalancerAddress !== 'string') {
    held.push({
      reason: `${control.length} control planes need an address that reaches all of them: add spec.installer.kubernetes.loadBalancerAddress`,
    });
  }
  if (bundle !== undefined) held.push(...misfits(bundle));
  if (bundle !== undefined && bundle.kubernetes !== version)
    held.push({
      reason: `the bundle has Kubernetes ${bundle.kubernetes}, and the file wants ${version}: use one that has it, or change the file`,
    });
  return held;
}
