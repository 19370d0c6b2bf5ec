/** What is to be done about each add-on, from the records of a cluster, its objects and the contents of manifests. */
import type { Channel } from '../../channel/channel.ts';
import { hashOfManifest } from '../../channel/location.ts';
import { planPass, withLive, type PassOptions, type PlannedAddon, type SeenAddon } from '../../channel/pass.ts';
import { inOrder } from '../../channel/plan.ts';
import { recordKey } from '../../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import type { ChannelFiles } from '../ports/channel-files.ts';
import { withChartContent } from './chart.ts';
import type { ChannelCluster } from './cluster.ts';
import { needsPki } from './pki.ts';
import { lookAtAddons } from './releases.ts';

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
  const { addons } = planPass(channels, cluster.facts, options);
  const wanted = addons.filter(({ entry }) => named.length === 0 || named.includes(entry.name));
  const unknown = named.find((name) => !wanted.some(({ entry }) => entry.name === name));
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
      const found = withLive(await withContent(one, files, cluster), look);
      if (found.action !== 'none' || !(await needsPki(cluster, one.entry))) return found;
      return { ...found, action: 'update', reason: 'its certificate authority is missing' };
    }),
  );
  const byEntry = new Map(seen.map((one) => [one.entry, one]));
  return inOrder(seen.map(({ entry }) => entry)).flatMap((entry) => byEntry.get(entry) ?? []);
}

/** An entry without hash has changed if its manifest has. */
async function withContent(planned: PlannedAddon, files: ChannelFiles, cluster: ChannelCluster): Promise<PlannedAddon> {
  const { channel, entry, action, installed } = planned;
  if (entry.source?.type === 'chart') return withChartContent(planned, { files, cluster });
  const isOpen =
    action === 'none' && entry.hash === '' && channel.compat === 'native' && entry.source?.type === 'manifest';
  if (!isOpen || installed?.hash === undefined) return planned;
  // A manifest that cannot be read now does not make an installed add-on fail.
  const content = await files.readManifest(channel, entry, cluster).catch(() => undefined);
  const isChanged = content !== undefined && hashOfManifest(content, channel) !== installed.hash;
  return isChanged ? { ...planned, action: 'update', reason: 'changed content' } : planned;
}
