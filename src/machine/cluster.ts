/** A cluster as it is desired and as it is seen. Pure data. */
import type { ErrorCode } from '../core/errors.ts';
import type { Candidate, Compat, Identity, Requirement } from '../cluster/channel/channel.ts';
import type { Labels } from '../fleet/rollout/groups.ts';
import type { Strategy } from '../fleet/rollout/strategy.ts';
import type { EtcdMember } from './etcd.ts';

export type Role = 'control-plane' | 'worker';

/** Digests by path, such as `kubernetes.kubeletConfiguration.maxPods`. */
export type MachineSettings = Readonly<Record<string, string>>;

/** The settings that the last run of curlew that has ended well has given a machine. */
export interface RecordedSettings {
  /** How it became a node; undefined where an earlier version has made it one. */
  readonly by?: 'init' | 'join' | undefined;
  readonly digests: MachineSettings;
}

export interface DesiredMachine {
  readonly name: string;
  readonly role: Role;
  readonly address?: string | undefined;
  /** Version of a worker that stays behind its cluster, by one minor at most. */
  readonly kubeletVersion?: string | undefined;
  /** Labels of its node, over what others set. */
  readonly labels?: Labels | undefined;
  /** Taints of its node, as `KEY=VALUE:EFFECT`. */
  readonly taints?: readonly string[] | undefined;
  /** How it gets what changes; a control plane gets its versions in place. Default: `Auto`. */
  readonly update?: Update | undefined;
}

/** `Auto`: in place, and by a new machine where only its provider can change something; `Replace`: always by a new one. */
export type Update = 'Auto' | 'InPlaceOnly' | 'Replace';

export interface DesiredCluster {
  readonly name: string;
  /** Version of Kubernetes. */
  readonly version: string;
  /** Nothing is changed. */
  readonly paused?: boolean | undefined;
  readonly machines: readonly DesiredMachine[];
  /** Settings of all add-ons. */
  readonly settings?: MachineSettings | undefined;
}

/** A host that is desired, or that the cluster has as a Node. */
export interface SeenMachine {
  readonly name: string;
  /** Whether the host can be reached. */
  readonly answers: boolean;
  /** Why it is as one that does not answer, although there is an answer. */
  readonly silence?: string | undefined;
  /** Its machine id: a plan that was saved for another host is not this one's. */
  readonly hostId?: string | undefined;
  /** The cluster that the host itself records; it has none before it joins and after it is reset. */
  readonly cluster?: string | undefined;
  /** The API server has its Node; all that follows is known only then. */
  readonly joined: boolean;
  /** Why its provider must create it before anything else can be done on it. */
  readonly toCreate?: string | undefined;
  /** Its provider has it, and can delete it. */
  readonly exists?: boolean | undefined;
  /** Why its provider must replace it. */
  readonly outdated?: string | undefined;
  /** kubeadm has begun to make it a node and not ended, which a join continues. */
  readonly attempted?: boolean;
  /** The run that makes it a node was begun, and has not ended without a failure. */
  readonly begun?: 'init' | 'join' | undefined;
  readonly role?: Role;
  readonly kubelet?: string;
  /** The version of its own API server; a control plane that has none is still about to join. */
  readonly apiServer?: string;
  readonly ready?: boolean;
  /** Who has cordoned it; curlew lifts only what it has set itself. */
  readonly cordon?: 'curlew' | 'other' | undefined;
  /** The version for which curlew has cordoned it. */
  readonly cordonFor?: string | undefined;
  /** Nothing that a drain evicts is left on it. */
  readonly drained?: boolean | undefined;
  /** It is marked as about to be removed. */
  readonly leaving?: boolean;
  /** Versions of Kubernetes whose images are on the host, or come with what makes it a node. */
  readonly images?: readonly string[];
  /** The last attempt to bring it to this version has failed. */
  readonly failed?: { readonly to: string; readonly reason: string };
  readonly labels?: Labels;
  readonly taints?: readonly string[];
  /** Undefined where they are not known, as on a machine that another tool or an earlier version has joined. */
  readonly settings?: RecordedSettings | undefined;
  readonly ageDays?: number;
}

/** An add-on that a channel has brought. */
export interface SeenAddon extends Identity {
  /** Location of that channel. */
  readonly channel?: string | undefined;
}

export interface SeenCluster {
  /** Nodes and hosts could be listed. What a partial list does not have is not gone. */
  readonly complete: boolean;
  readonly machines: readonly SeenMachine[];
  /** Undefined if they could not be listed. A member has the name of its machine. */
  readonly members?: readonly EtcdMember[] | undefined;
  /** The version before whose steps etcd was saved. */
  readonly snapshot?: string | undefined;
  /** Installed add-ons of the channels, by name. */
  readonly addons?: ReadonlyMap<string, SeenAddon>;
}

/** Most machines that may be not ready when another begins or one is repaired, unless a policy says otherwise. */
export const MAX_UNHEALTHY = '40%';

export interface Policy {
  /** Versions of Kubernetes that can be installed, apart from the desired one. */
  readonly available?: readonly string[];
  /** Entries of the cluster's channels. */
  readonly entries?: readonly (Candidate & { readonly requires?: readonly Requirement[] })[];
  readonly compat?: Compat;
  readonly allowGap?: boolean;
  /** How workers are upgraded: 10 % at a time, and none may fail, by default. */
  readonly workers?: Strategy;
  /** Most workers that may be not ready when another begins; 40 % by default. */
  readonly maxUnhealthy?: number | string;
  /** Most machines that are removed without approval; 10 % of the machines, and at least 1, by default. */
  readonly maxRemovals?: number | string;
  /** Number of removals that a person has approved. */
  readonly approvedRemovals?: number;
  /** A machine that a person names gets the settings of the file where it is not known which ones it has. */
  readonly named?: string | undefined;
}

/** A phase of work on a host, or once for the cluster (`addon`). Each can be repeated. */
export type Phase =
  | 'create'
  | 'delete'
  | 'init'
  | 'join'
  | 'snapshot'
  | 'images'
  | 'drain'
  | 'upgrade'
  | 'configure'
  | 'uncordon'
  | 'repair'
  | 'label'
  | 'mark'
  | 'remove-member'
  | 'reset'
  | 'delete-node'
  | 'addon';

export interface Action {
  /** Missing for what is not done on a host. */
  readonly host?: string;
  readonly phase: Phase;
  /** A version: of Kubernetes, or of the add-on. */
  readonly to?: string;
  readonly addon?: string;
  readonly reason: string;
}

export interface Step extends Action {
  /** The steps before it; a step without any may begin now. */
  readonly waits: readonly string[];
}

export interface Held {
  /** Missing for the whole cluster. */
  readonly host?: string;
  readonly reason: string;
}

/** Nothing is left to do, and nothing keeps it from what is desired. */
export function isSettled({
  steps,
  held,
  refused,
  failed = [],
}: {
  readonly steps: readonly Step[];
  readonly held: readonly Held[];
  readonly refused: readonly Held[];
  readonly failed?: readonly unknown[] | undefined;
}): boolean {
  return steps.length + held.length + refused.length + failed.length === 0;
}

/** The failure of a step on its machine, or here. */
export interface Failed {
  readonly reason: string;
  readonly code: ErrorCode;
}

/** The failure of a command on machines: theirs, if all are of one kind. A program without a code of curlew's says nothing more. */
export function failureCode(failed: readonly Pick<Failed, 'code'>[]): ErrorCode {
  const [first = 'CLUSTER_FAILED', ...others] = new Set(failed.map(({ code }) => code));
  return others.length > 0 || first === 'PROGRAM_FAILED' ? 'CLUSTER_FAILED' : first;
}
