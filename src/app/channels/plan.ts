/** What is to be done about each add-on, from the records of a cluster, its objects and the contents of manifests. */
import type { Channel } from '../../channel/channel.ts';
import { noticesContent } from '../../channel/choose.ts';
import { hashOfManifest } from '../../channel/location.ts';
import {
  channelOwner,
  planPass,
  withContent,
  withLive,
  type Pass,
  type PassOptions,
  type PlannedAddon,
  type SeenAddon,
} from '../../channel/pass.ts';
import { inOrder } from '../../channel/plan.ts';
import { recordKey } from '../../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Addon, Task } from '../../deliver/addon.ts';
import { isChartChanged } from '../../deliver/charts.ts';
import type { ChannelCluster } from '../../deliver/cluster.ts';
import { observe } from '../../deliver/deliver.ts';
import { needsPki } from '../../deliver/pki.ts';
import type { ChannelFiles } from '../ports/channel-files.ts';

interface WorkOptions extends PassOptions {
  /** Only these; default: all. */
  readonly addons?: readonly string[] | undefined;
  readonly files: ChannelFiles;
}

/** A planned add-on, and the same for its delivery. */
export type Work = SeenAddon & Task;

export interface WorkPlan extends Omit<Pass, 'addons'> {
  /** Work in the order of application. */
  readonly work: readonly Work[];
  /** Also of the add-ons that the request leaves out. */
  readonly tasks: readonly Task[];
}

/** `NOT_FOUND` for a named add-on that no channel has for this cluster. */
export async function planWork(
  channels: readonly Channel[],
  cluster: ChannelCluster,
  { addons: named = [], files, ...options }: WorkOptions,
): Promise<WorkPlan> {
  const { facts } = cluster;
  const { addons, ...others } = planPass(channels, facts, options);
  const isWanted = ({ entry }: PlannedAddon): boolean => named.length === 0 || named.includes(entry.name);
  const taken = typeof options.takeOver === 'object' ? options.takeOver : [];
  const unknown = [...named, ...taken].find((name) => !addons.some((one) => isWanted(one) && one.entry.name === name));
  if (unknown !== undefined) {
    throw new CurlewError('NOT_FOUND', `cannot apply ${unknown}: no channel has an entry of it for this cluster`, {
      hint: `curlew channel explain ${unknown} says why`,
    });
  }
  const wanted = await Promise.all(
    addons.filter(isWanted).map(async (one) => {
      const hash = await contentHash(one, files, cluster);
      return hash === undefined ? one : withContent(one, hash, { facts, options });
    }),
  );
  const still = wanted.flatMap(({ action, record }) => (action === 'none' && record !== undefined ? [record] : []));
  const looks = await observe(cluster, still);
  const look = async (one: PlannedAddon): Promise<Work> => {
    const live = looks.get(recordKey(one.entry.namespace, one.entry.name)) ?? UNSEEN;
    const work = { ...withLive(one, live), addon: addonOf(one, files, cluster) };
    if (one.action === 'none' && (await isChartChanged(work, cluster)))
      return { ...work, action: 'update', reason: 'another chart or other values' };
    if (work.action !== 'none' || !(await needsPki(cluster, one.entry))) return work;
    return { ...work, action: 'update', reason: 'its certificate authority is missing' };
  };
  const seen = new Map((await Promise.all(wanted.map(look))).map((one) => [one.entry, one]));
  const work = inOrder([...seen.keys()]).flatMap((entry) => seen.get(entry) ?? []);
  const rest = addons.filter(({ entry }) => !seen.has(entry));
  const left = rest.map((one) => ({ ...one, look: UNSEEN, addon: addonOf(one, files, cluster) }));
  return { ...others, work, tasks: [...work, ...left] };
}

const UNSEEN = { missing: [], changed: [] } as const;

/** The hash of the manifest of an unchanged entry that has none. */
async function contentHash(
  { channel, entry, action, installed }: PlannedAddon,
  files: ChannelFiles,
  cluster: ChannelCluster,
): Promise<string | undefined> {
  const isOpen = noticesContent(entry, channel.compat) && entry.source?.type === 'manifest';
  if (!isOpen || action !== 'none' || installed?.hash === undefined) return undefined;
  // A manifest that cannot be read now does not make an installed add-on fail.
  const content = await files.readManifest(channel, entry, cluster).catch(() => undefined);
  return content && hashOfManifest(content, channel);
}

function addonOf(
  { channel, entry }: PlannedAddon,
  files: ChannelFiles,
  { signal }: Pick<ChannelCluster, 'signal'>,
): Addon {
  return {
    ...entry,
    owner: channelOwner(channel),
    origin: channel.location,
    compat: channel.compat,
    read: async () => files.readManifest(channel, entry, { signal }),
    hashOf: (content) => (channel.compat === 'native' ? hashOfManifest(content, channel) : ''),
  };
}
