/** What is to be done about each add-on, from the records of a cluster, its objects and the contents of manifests. */
import type { Channel } from '../../channel/channel.ts';
import { noticesContent } from '../../channel/choose.ts';
import { hashOfManifest } from '../../channel/location.ts';
import { planPass, withLive, type PassOptions, type PlannedAddon, type SeenAddon } from '../../channel/pass.ts';
import { inOrder } from '../../channel/plan.ts';
import { recordKey } from '../../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import type { ChannelFiles } from '../ports/channel-files.ts';
import { withChartContent } from '../../deliver/chart.ts';
import type { ChannelCluster } from '../../deliver/cluster.ts';
import { needsPki } from '../../deliver/pki.ts';
import { lookAtAddons } from '../../deliver/releases.ts';

interface WorkOptions extends PassOptions {
  /** Only these; default: all. */
  readonly addons?: readonly string[] | undefined;
  readonly files: ChannelFiles;
}

/** In the order of application. `NOT_FOUND` for a named add-on that no channel has for this cluster. */
export async function lookForWork(
  channels: readonly Channel[],
  cluster: ChannelCluster,
  { addons: named = [], files, ...options }: WorkOptions,
): Promise<readonly SeenAddon[]> {
  const isWanted = ({ entry }: PlannedAddon): boolean => named.length === 0 || named.includes(entry.name);
  const first = planPass(channels, cluster.facts, options).addons.filter(isWanted);
  const contents = await readContents(first, files, cluster);
  const wanted = planPass(channels, { ...cluster.facts, contents }, options).addons.filter(isWanted);
  const taken = typeof options.takeOver === 'object' ? options.takeOver : [];
  const unknown = [...named, ...taken].find((name) => !wanted.some(({ entry }) => entry.name === name));
  if (unknown !== undefined) {
    throw new CurlewError('NOT_FOUND', `cannot apply ${unknown}: no channel has an entry of it for this cluster`, {
      hint: `curlew channel explain ${unknown} says why`,
    });
  }
  const still = wanted.flatMap(({ action, record }) => (action === 'none' && record !== undefined ? [record] : []));
  const looks = await lookAtAddons(cluster, still);
  const seen = await Promise.all(
    wanted.map(async (one): Promise<SeenAddon> => {
      const look = looks.get(recordKey(one.entry.namespace, one.entry.name)) ?? { missing: [], changed: [] };
      const found = withLive(await withChartContent(one, { files, cluster }), look);
      if (found.action !== 'none' || !(await needsPki(cluster, one.entry))) return found;
      return { ...found, action: 'update', reason: 'its certificate authority is missing' };
    }),
  );
  const byEntry = new Map(seen.map((one) => [one.entry, one]));
  return inOrder(seen.map(({ entry }) => entry)).flatMap((entry) => byEntry.get(entry) ?? []);
}

/** Hashes of the manifests of unchanged entries that have none, by the keys of their records. */
async function readContents(
  planned: readonly PlannedAddon[],
  files: ChannelFiles,
  cluster: ChannelCluster,
): Promise<ReadonlyMap<string, string>> {
  const read = async ({ channel, entry, action, installed }: PlannedAddon): Promise<readonly [string, string][]> => {
    const isOpen = noticesContent(entry, channel.compat) && entry.source?.type === 'manifest';
    if (!isOpen || action !== 'none' || installed?.hash === undefined) return [];
    // A manifest that cannot be read now does not make an installed add-on fail.
    const content = await files.readManifest(channel, entry, cluster).catch(() => undefined);
    if (content === undefined) return [];
    return [[recordKey(entry.namespace, entry.name), hashOfManifest(content, channel)]];
  };
  return new Map((await Promise.all(planned.map(read))).flat());
}
