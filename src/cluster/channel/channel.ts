/** A channel as data: which version of each add-on fits which Kubernetes. Pure. */
import { groupBy } from '../../core/group-by.ts';
import { redact } from '../../core/errors.ts';
import type { Diagnostic, Place } from '../../core/diagnostic.ts';
import type { VersionRange } from './range.ts';

/**
 * The rules of choice and replacement: those of kops until June 2021 (by version), those of kops since then (by id and hash), and
 * curlew's own.
 */
export type Compat = 'kops-2017' | 'kops' | 'native';

export const CHANNEL_API_VERSION = 'fleet.curlew.dev/v1alpha1';

/** The name of an add-on: a part of the key of an annotation (Kubernetes: IsQualifiedName). */
export const ENTRY_NAME: RegExp = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** The fields by which two entries, or an entry and what is installed, are compared. */
export interface Identity {
  readonly version?: string | undefined;
  readonly id?: string | undefined;
  /** Hash of the content in hex: SHA-256, or SHA-1 in indexes before September 2021. */
  readonly hash?: string | undefined;
  /** Generation of the program that applied it; 0 before kops could prune. */
  readonly generation?: number | undefined;
}

/** One of the entries that are chosen among. */
export interface Candidate extends Identity {
  readonly name: string;
  /** Kubernetes versions that it is for; undefined if the text cannot be read, so that it is for none. */
  readonly range: VersionRange | undefined;
}

export interface Requirement {
  readonly name: string;
  /** Text of the requirement; empty if every version will do. */
  readonly version: string;
  readonly range: VersionRange | undefined;
}

export interface PruneKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly kind: string;
  /** Empty: objects of all namespaces. */
  readonly namespaces: readonly string[];
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

export interface Chart {
  /** One of the three is set: a Helm repository, an OCI reference, or the location of an archive, like that of a manifest. */
  readonly repoURL: string | undefined;
  readonly oci: string | undefined;
  readonly package: string | undefined;
  /** Name of the chart in its repository. */
  readonly name: string | undefined;
  /** Undefined for an archive. */
  readonly version: string | undefined;
  /** With nulls, and with bigints for integers beyond 2^53; their texts are templates. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly releaseName: string;
  /** Namespace of the release. */
  readonly namespace: string;
  /** Helm itself waits, before it runs the hooks that follow. */
  readonly wait: boolean;
  /** Helm rolls back what fails. */
  readonly atomic: boolean;
}

/** Values that a hub has in a Secret or a ConfigMap. */
export interface HubValues {
  /** It changes with the values, and reveals nothing of them. */
  readonly digest: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Needs of a chart beyond what this machine has: for its download, texts of files. */
export interface ChartAccess {
  /** Logins, as docker keeps them. */
  readonly logins?: string | undefined;
  /** Certificate authorities in PEM, instead of those of the machine. */
  readonly authorities?: string | undefined;
  /** Whoever answers is trusted. */
  readonly trustsAll?: boolean | undefined;
  /** The last layer of its values, and what nothing shows of it. */
  readonly values?: (HubValues & { readonly hidden: HubValues['values'] }) | undefined;
}

export type Source =
  /** `location` is absolute, or a path if the channel's own location is one. */
  | { readonly type: 'manifest'; readonly manifest: string; readonly location: string }
  | { readonly type: 'package'; readonly package: string }
  | { readonly type: 'chart'; readonly chart: Chart };

export const NODE_ROLES = ['control-plane', 'workers', 'all'] as const;
export const DRIFTS = ['Warn', 'Revert', 'Keep'] as const;

/** One alternative of an add-on. */
export interface Entry extends Candidate {
  /** Namespace whose object has the record; `kube-system` by default. */
  readonly namespace: string;
  /** Namespace of objects that name none; undefined: that of the kubeconfig's context. Indexes of kops cannot set it. */
  readonly objectNamespace?: string | undefined;
  readonly id: string;
  readonly hash: string;
  /** Text of the range; empty if it fits every version. */
  readonly kubernetesVersion: string;
  /** Undefined in an index of kops that has no manifest for it: it can be chosen, and not applied. */
  readonly source: Source | undefined;
  readonly requires: readonly Requirement[];
  readonly needsRollingUpdate: (typeof NODE_ROLES)[number] | undefined;
  readonly needsPKI: boolean;
  /** Undefined: what a new version no longer has is reported, not deleted. */
  readonly prune: 'auto' | readonly PruneKind[] | undefined;
  readonly drift: (typeof DRIFTS)[number];
  /** Labels of the add-on's objects in an index of kops. */
  readonly selector: Readonly<Record<string, string>>;
  readonly place: Place;
}

export interface Channel {
  /** A manifest is a channel of one add-on, which is the manifest. */
  readonly kind: 'Addons' | 'Channel' | 'Manifest';
  readonly name: string | undefined;
  readonly location: string;
  readonly compat: Compat;
  /** Entries in the order of the file. */
  readonly entries: readonly Entry[];
}

/** An entry in messages: `weave 2.8.1 (k8s-128)`. */
export function entryTitle({ name, version, id }: Pick<Candidate, 'name' | 'version' | 'id'>): string {
  // The id of a fleet's add-on is the hash of its content, which says nothing to people.
  const isShown = id !== undefined && id !== '' && !/^[0-9a-f]{64}$/.test(id);
  const words = [name, version, isShown ? `(${id})` : undefined];
  return words.filter((word) => word !== undefined).join(' ');
}

/** A finding at an entry. */
export function channelFinding(
  severity: Diagnostic['severity'],
  code: string,
  { place }: Entry,
  message: string,
  hint?: string,
): Diagnostic {
  return { code: `channel/${code}`, severity, message, place, hint };
}

/** The location of the file that is applied: a manifest, or the archive of a chart. */
export function entryFile({ source }: Pick<Entry, 'source'>): string | undefined {
  if (source?.type === 'manifest') return source.location;
  return source?.type === 'chart' ? source.chart.package : undefined;
}

/** The applied content, in messages, without the values of a chart, which may contain secrets. */
export function sourceTitle(source: Source): string {
  if (source.type === 'manifest') return redact(`manifest ${source.location}`);
  if (source.type === 'package') return `package ${source.package}`;
  const { repoURL, oci, package: file, name, version } = source.chart;
  const words = ['chart', name, version, 'from', repoURL ?? oci ?? file];
  return redact(words.filter((word) => word !== undefined).join(' '));
}

/** The entries of each add-on, both in the order of the file. */
export function byName<T extends Candidate>(entries: readonly T[]): ReadonlyMap<string, readonly T[]> {
  return groupBy(entries, ({ name }) => name);
}
