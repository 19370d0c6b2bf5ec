/** A fleet as it is written in files: clusters, add-ons, and the channels that these name. Pure. */
import type { Channel, Chart, ChartAccess, Entry } from '../cluster/channel/channel.ts';
import { choose } from '../cluster/channel/choose.ts';
import type { Findings } from '../cluster/channel/findings.ts';
import type { ClusterFacts, LiveState } from '../cluster/channel/pass.ts';
import { parseTriple } from '../cluster/channel/range.ts';
import type { Values } from './rollout/fleet.ts';
import type { Rules } from './rollout/limits.ts';
import type { AddonFields, ClusterFields } from './schema.ts';

/** A file of a fleet; paths in it must stay in its folder. */
export interface FleetFile {
  readonly path: string;
  /** What was given on the command line, or the folder of a file that was. */
  readonly folder: string;
  readonly text: string;
}

interface Written<Fields> {
  readonly file: FleetFile;
  readonly fields: Fields;
  /** Receives what is wrong with it. */
  readonly findings: Findings;
}

export interface FleetCluster extends Written<ClusterFields> {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The path of its kubeconfig. */
  readonly kubeconfig: string;
  /** Text of its kubeconfig, if a Secret of Cluster API among the files has it. */
  readonly secret?: string;
  /** The object in the form of Cluster API, for templates. */
  readonly object: Values;
  /** `ControlPlane` and `InfraCluster` of Cluster API, as far as they are among the files. */
  readonly roots?: Values;
}

export interface WrittenAddon extends Written<AddonFields> {
  readonly name: string;
  /** Kind of its document: a HelmChartProxy may select all clusters, and a ClusterManagementAddOn is made from templates. */
  readonly kind: 'FleetAddon' | 'HelmChartProxy' | 'ClusterManagementAddOn';
  /** Whose rules it follows, if an annotation says so. */
  readonly compat: Rules | undefined;
  /**
   * Its manifest or chart; undefined if a channel has it. What cannot be read is an error among the findings.
   */
  readonly entry: Entry | undefined;
  /** Why it stays as it is on each cluster. */
  readonly problem?: string | undefined;
  /** What its chart needs to be downloaded, from Secrets among the files. It is kept nowhere else. */
  readonly access?: ChartAccess;
}

export interface WrittenFleet {
  readonly clusters: readonly FleetCluster[];
  readonly addons: readonly WrittenAddon[];
  /** By name. */
  readonly channels: ReadonlyMap<string, Channel>;
}

/** What a cluster has answered. */
export interface Reply {
  readonly server: string;
  /** `v1.31.2` */
  readonly kubernetes: string;
  /** How many seconds its clock is ahead of that of this machine. */
  readonly ahead?: number;
  readonly facts: Omit<ClusterFacts, 'kubernetes'>;
  /** How objects differ from their records, by the key of the record. */
  readonly live?: ReadonlyMap<string, LiveState>;
  readonly warnings: readonly string[];
}

/** What a cluster has answered, or why it has not. */
export type Look = Reply | { readonly problem: string };

/** The add-ons of a channel that one of the fleet may become, by the Kubernetes of a cluster; none unless a channel has it. */
export function channelEntries(
  { name, fields }: WrittenAddon,
  { channels }: Pick<WrittenFleet, 'channels'>,
): readonly Entry[] {
  const { channel } = fields.spec.source;
  if (channel === undefined) return [];
  return (channels.get(channel.name)?.entries ?? []).filter((entry) => entry.name === (channel.addon ?? name));
}

/** What becomes of changes by others: as the add-on says, or else its channel in the entry for the Kubernetes of a cluster. */
export function driftOn(
  addon: WrittenAddon,
  fleet: Pick<WrittenFleet, 'channels'>,
  kubernetes: string,
): Entry['drift'] {
  const { drift = addon.entry?.drift } = addon.fields.spec;
  if (drift !== undefined) return drift;
  const entries = channelEntries(addon, fleet);
  const triple = parseTriple(kubernetes);
  const [fitting] = triple ? choose(entries, triple, 'native').values() : [];
  return (fitting ?? entries[0])?.drift ?? 'Warn';
}

/** What cannot exist twice in a cluster: the release of a chart, or the name in a record. Undefined for an unknown channel. */
export function identityOf(addon: WrittenAddon, fleet: WrittenFleet): string | undefined {
  const { source } = addon.entry ?? {};
  if (source?.type === 'chart') return identityOfChart(source.chart);
  const named = addon.entry ?? channelEntries(addon, fleet)[0];
  return named && recordIdentity({ ...named, addon: named.name });
}

export function releaseIdentity({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `release:${namespace}/${name}`;
}

export function identityOfChart({ namespace, releaseName: name }: Pick<Chart, 'namespace' | 'releaseName'>): string {
  return releaseIdentity({ namespace, name });
}

export function recordIdentity({ namespace, addon }: { readonly namespace: string; readonly addon: string }): string {
  return `addon:${namespace}/${addon}`;
}
