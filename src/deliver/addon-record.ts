/** What a pass writes about an add-on. */
import { entryTitle, type Entry } from '../channel/channel.ts';
import type { PlannedAddon } from '../channel/pass.ts';
import { channelOwner } from '../channel/pass.ts';
import { encodeRecords, readRecords, recordKey, type AddonRecord, type Revision } from '../channel/record.ts';
import { CurlewError, redact } from '../core/errors.ts';
import { CHANNEL_RECORDS } from '../core/layout.ts';
import type { Data } from '../kube/config-map.ts';
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

/**
 * Notes that a pass has failed in the record of the add-on, which also has what was begun. Nothing is in the cluster of an add-on
 * without a record, and it gets none; the record of another owner stays.
 */
export async function recordFailure(
  { maps }: Pick<ChannelCluster, 'maps'>,
  { channel, entry: { namespace, name } }: Pick<PlannedAddon, 'channel' | 'entry'>,
  error: CurlewError,
): Promise<void> {
  const own = (data: Data = {}): AddonRecord | undefined => {
    const record = readRecords(data).records.get(recordKey(namespace, name));
    return record?.owner === channelOwner(channel) ? record : undefined;
  };
  if (own((await maps.read(CHANNEL_RECORDS))?.data) === undefined) return;
  await maps.change(CHANNEL_RECORDS, (data = {}) => {
    const record = own(data);
    if (record === undefined) return data;
    return { ...data, ...encodeRecords([{ ...record, ...failedState(error), since: new Date().toISOString() }]) };
  });
}

/** `CLUSTER_FAILED` if the record of an add-on, or one of its objects, has a namespace that does not exist. */
export function requireNamespaces(
  entry: Pick<Entry, 'name' | 'version' | 'id' | 'namespace'>,
  objects: readonly { readonly namespace?: string | undefined }[],
  known: ReadonlySet<string>,
): void {
  const wanted = new Set([entry.namespace, ...objects.flatMap(({ namespace }) => namespace ?? [])]);
  const missing = [...wanted].filter((namespace) => !known.has(namespace));
  if (missing.length === 0) return;
  const what =
    missing.length === 1 ? `namespace ${missing[0]} does not exist` : `namespaces ${missing.join(', ')} do not exist`;
  throw new CurlewError('CLUSTER_FAILED', `cannot apply ${entryTitle(entry)}: ${what}`, {
    hint: 'create them (kubectl create namespace), add them to the manifest, or correct namespace in the channel',
  });
}
