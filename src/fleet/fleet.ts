/** A fleet as it is written in files: clusters, add-ons, and the channels that these name. Pure. */
import type { Channel, Entry } from '../channel/channel.ts';
import type { Findings } from '../channel/findings.ts';
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
  readonly found: Findings;
}

export interface WrittenCluster extends Written<ClusterFields> {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The path of its kubeconfig. */
  readonly kubeconfig: string;
}

export interface WrittenAddon extends Written<AddonFields> {
  readonly name: string;
  /**
   * Its manifest or chart; undefined if a channel has it. What cannot be read is an error among the findings.
   */
  readonly entry: Entry | undefined;
}

export interface WrittenFleet {
  readonly clusters: readonly WrittenCluster[];
  readonly addons: readonly WrittenAddon[];
  /** By name. */
  readonly channels: ReadonlyMap<string, Channel>;
}

/** What identifies an add-on in a cluster: its release, or the name of its record. */
export function identityOf(
  { source }: Pick<Entry, 'source'>,
  { name, namespace }: Pick<Entry, 'name' | 'namespace'>,
): string {
  if (source?.type !== 'chart') return `addon:${namespace}/${name}`;
  return `release:${source.chart.namespace}/${source.chart.releaseName}`;
}
