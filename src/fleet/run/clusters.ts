/** What the clusters of a fleet record, and what its add-ons deliver. */
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { entryFile, type Entry } from '../../cluster/channel/channel.ts';
import { isUrl } from '../../cluster/channel/location.ts';
import type { Context } from '../../core/context.ts';
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { openChannelCluster, type OpenRequest } from '../../cluster/deliver/channel-cluster.ts';
import { observe } from '../../cluster/deliver/deliver.ts';
import { channelEntries, type Look, type FleetCluster, type WrittenFleet } from '../fleet.ts';
import { settledRecords } from '../observe.ts';
import { readLimited } from '../../platform/files/read-limited.ts';
import { namelessFile } from '../../platform/files/nameless-file.ts';
import { makeTemporary } from '../../platform/files/temporary.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { FleetPlanRequest } from '../../requests/fleet.ts';

/** Clusters that are contacted at the same time. */
export const CLUSTERS_AT_ONCE = 20;
const TIMEOUT_MS = 20_000;
/** Largest file that an add-on delivers. */
export const MAX_BYTES = 64 << 20;

type Patience = Pick<FleetPlanRequest, 'timeout' | 'allowExec'>;
type Accessible = Pick<FleetCluster, 'name' | 'kubeconfig' | 'secret'>;

/** Asks each cluster, by default for at most 20 seconds. One that does not answer holds no other. */
export async function lookAtClusters(
  clusters: readonly Accessible[],
  { timeout, allowExec }: Patience,
  context: Context,
): Promise<ReadonlyMap<string, Look>> {
  const look = async (cluster: Accessible): Promise<readonly [string, Look]> => {
    const answer = await askCluster(cluster, { timeout, allowExec }, context, async (from, own): Promise<Look> => {
      const opened = await openChannelCluster(from, own);
      const { server, kubernetes, facts, warnings, api } = opened;
      const ahead = Math.round((api.now().getTime() - Date.now()) / 1000);
      const live = await observe(opened, settledRecords([...facts.records.values()]));
      return { server, kubernetes, ahead, facts, live, warnings };
    });
    return [cluster.name, answer];
  };
  return new Map(await mapLimited(clusters, look, { width: CLUSTERS_AT_ONCE, signal: context.signal }));
}

/** What a cluster answers, by default within 20 seconds, or why it does not. */
export async function askCluster<T>(
  cluster: Accessible,
  { timeout: timeoutMs = TIMEOUT_MS, allowExec }: Patience,
  context: Context,
  ask: (from: OpenRequest, own: Context) => Promise<T>,
): Promise<T | { readonly problem: string }> {
  const late = AbortSignal.timeout(timeoutMs);
  let slow = '';
  // The result says which clusters do not answer.
  const report: Context['report'] = (event) => (slow = event.type === 'note' ? `: ${event.text}` : slow);
  const own = { ...context, signal: AbortSignal.any([context.signal, late]), report };
  try {
    using access = accessTo(cluster);
    return await ask({ kubeconfig: access.kubeconfig, isForeign: allowExec !== true, way: 'spec.access' }, own);
  } catch (error) {
    context.signal.throwIfAborted();
    if (late.aborted) return { problem: `no answer within ${timeoutMs / 1000} s${slow}` };
    if (!(error instanceof CurlewError)) throw error;
    return { problem: error.message };
  }
}

/** The path of its kubeconfig. One from a Secret is in a private file until this is disposed of. */
export function accessTo({
  kubeconfig,
  secret,
}: Omit<Accessible, 'name'>): Disposable & { readonly kubeconfig: string } {
  if (secret === undefined) return { kubeconfig, [Symbol.dispose]: () => undefined };
  const folder = makeTemporary('kubeconfig');
  const file = namelessFile(folder, 'kubeconfig', secret);
  return {
    kubeconfig: file.path,
    [Symbol.dispose]: () => {
      file[Symbol.dispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Hashes of all entries, in hex; empty for what is no file. `SPEC_INVALID` for a file elsewhere without a hash. */
export async function hashContents(fleet: WrittenFleet, context: Context): Promise<(entry: Entry) => string> {
  const entries = fleet.addons.flatMap((addon) => addon.entry ?? channelEntries(addon, fleet));
  const hash = async (entry: Entry): Promise<readonly [Entry, string]> => {
    const location = entryFile(entry);
    if (entry.hash !== '' || location === undefined) return [entry, entry.hash];
    if (isUrl(location)) {
      const shown = redact(location);
      throw new CurlewError('SPEC_INVALID', `cannot deliver ${entry.name} to a fleet: ${shown} has no hash`, {
        hint: 'add hash to its entry in the channel, or copy the file into the folder',
      });
    }
    return [entry, hexOf(digestOf(await readLimited(resolve(context.cwd, location), MAX_BYTES, context)))];
  };
  const hashes = new Map(await mapLimited(entries, hash, { width: CLUSTERS_AT_ONCE, signal: context.signal }));
  return (entry) => hashes.get(entry) ?? entry.hash;
}
