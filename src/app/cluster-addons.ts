/** Add-ons of channels around an upgrade of the machines of a cluster: which versions there are, and how one gets there. */
import { byName } from '../cluster/channel/channel.ts';
import { holdCluster, openClusterApi } from '../cluster/deliver/channel-cluster.ts';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import type { Step } from '../machine/cluster.ts';
import type { Choices } from '../machine/run/planned-cluster.ts';
import type { AddressRequest } from '../requests/connection.ts';
import { openPass } from '../steps/channel/pass.ts';
import { openChannels, type ChannelFiles } from '../steps/open/channel-files.ts';
import { refuseShared } from './channel-plan.ts';

/** Undefined without channels. */
export async function openAddons(
  { channel = [], ...address }: AddressRequest & { readonly channel?: readonly string[] | undefined },
  context: Context,
): Promise<ChannelFiles | undefined> {
  return channel.length === 0 ? undefined : openChannels({ ...address, channels: channel }, context);
}

/** Each channel must be usable, and each add-on in one of them only. */
export function channelsOf(files: ChannelFiles | undefined): Choices['channels'] {
  if (files === undefined) return undefined;
  for (const { error } of files.channels) if (error !== undefined) throw error;
  const channels = files.channels.flatMap(({ channel }) => channel ?? []);
  const entries = channels.flatMap((channel) => channel.entries);
  refuseShared(channels, byName(entries));
  return { entries, compat: channels[0]?.compat ?? 'native' };
}

/** The version of the step, whichever the channel has for the Kubernetes of now. `CLUSTER_FAILED` with what the delivery says. */
export async function moveAddon(
  files: ChannelFiles,
  { addon = '', to = '' }: Step,
  {
    address,
    kubeconfig,
    context,
  }: { readonly address: AddressRequest; readonly kubeconfig: string; readonly context: Context },
): Promise<void> {
  const channels = files.channels.map(({ channel, ...others }) => {
    const entries = channel?.entries.filter(({ name, version = '' }) => name !== addon || version === to);
    return { ...others, channel: channel && { ...channel, entries: entries ?? [] } };
  });
  const request = { ...address, kubeconfig, way: 'spec.access', channels: [], addons: [addon] } as const;
  const api = await openClusterApi(request, context);
  await using held = await holdCluster(api, { doing: `move ${addon} to ${to}`, context });
  const pass = await openPass({ ...files, channels }, held.cluster, { request, context });
  const failed = (await pass.apply()).addons.find(({ state }) => ['failed', 'refused', 'skipped'].includes(state));
  const [error] = failed?.errors ?? [];
  if (failed === undefined) return;
  const text = error?.message ?? `cannot apply ${addon} ${to}`;
  throw new CurlewError('CLUSTER_FAILED', [text, error?.hint ?? []].flat().join(': '));
}
