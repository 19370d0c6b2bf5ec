/** Add-ons that channels have brought to the cluster of this machine. */
import { decodeRecords } from '../../cluster/channel/record.ts';
import type { KubeApi } from '../../cluster/kube/api.ts';
import { Refused } from '../../cluster/kube/call.ts';
import { configMapClient } from '../../cluster/kube/config-map.ts';
import { CHANNEL_RECORDS } from '../../core/layout.ts';
import type { SeenAddon } from '../cluster.ts';

const PATIENCE_MS = 60_000;
const OWNER = 'channel:';

export interface RecordedAddon extends SeenAddon {
  readonly name: string;
}

/** Add-ons of fleets are moved by their hub, and add-ons of installs with the bundle: neither is here. None where they may not be read. */
export async function recordedAddons(api: KubeApi, signal: AbortSignal): Promise<readonly RecordedAddon[]> {
  const client = configMapClient(api, { patienceMs: PATIENCE_MS, signal });
  const map = await client.read(CHANNEL_RECORDS).catch((error: unknown) => {
    if (error instanceof Refused) return undefined;
    throw error;
  });
  return [...decodeRecords(map?.data ?? {}).records.values()].flatMap(({ addon: name, owner, applied }) => {
    if (applied === undefined || !owner.startsWith(OWNER)) return [];
    const { version, id, hash, channel } = applied;
    return [{ name, version, id, hash, channel }];
  });
}
