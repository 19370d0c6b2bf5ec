/** What a pass writes about an add-on. */
import type { PlannedAddon } from '../../channel/pass.ts';
import { channelOwner } from '../../channel/pass.ts';
import type { AddonRecord, Revision } from '../../channel/record.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { writeRecord, type ChannelCluster } from './cluster.ts';

/** The entry as it is installed. */
export function revisionOf(
  { kubernetes }: Pick<ChannelCluster, 'kubernetes'>,
  { channel, entry: { version, id } }: PlannedAddon,
  hash: string,
): Revision {
  return {
    channel: redact(channel.location),
    ...(version === undefined ? {} : { version }),
    ...(id === '' ? {} : { id }),
    ...(hash === '' ? {} : { hash }),
    kubernetes,
  };
}

/** Changes the full record; what was applied before goes to its history. */
export async function recordState(
  cluster: Pick<ChannelCluster, 'maps'>,
  { channel, entry, record }: PlannedAddon,
  change: Partial<AddonRecord> & Pick<AddonRecord, 'state' | 'reason'>,
): Promise<void> {
  const now = new Date().toISOString();
  const before = record?.applied;
  const isNew = change.applied !== undefined && before !== undefined && before.hash !== change.applied.hash;
  const history = [...(isNew ? [{ revision: before, until: now }] : []), ...(record?.history ?? [])];
  const { name: addon, namespace } = entry;
  await writeRecord(
    cluster,
    { namespace, addon },
    { ...record, addon, namespace, owner: channelOwner(channel), since: now, ...change, history },
  );
}

/** Only the first line of the reason: the others may be logs of pods, which whoever reads the record may not read. */
export function failedState({ message }: Pick<CurlewError, 'message'>): Pick<AddonRecord, 'state' | 'reason'> {
  return { state: 'Failed', reason: message.split('\n')[0] ?? '' };
}

export function requireNamespace(cluster: Pick<ChannelCluster, 'namespaces'>, namespace: string): void {
  if (cluster.namespaces.has(namespace)) return;
  throw new CurlewError('CLUSTER_FAILED', `cannot record the add-on: namespace ${namespace} does not exist`, {
    hint: 'create the namespace, add it to the manifest, or correct namespace in the channel',
  });
}
