/** Removes an add-on of a channel from a cluster: its objects, then its record. */
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { holdCluster, openChannelCluster } from '../cluster/deliver/channel-cluster.ts';
import { helmOf } from '../cluster/deliver/helm.ts';
import { removeDelivered, type AddonRemoval } from '../cluster/deliver/remove.ts';
import { useCase } from '../core/request.ts';
import { REMOVAL, type ChannelRemoveRequest } from '../requests/channel.ts';

export interface ChannelRemoval extends AddonRemoval {
  readonly addon: string;
  readonly namespace: string;
  readonly server: string;
}

/** The removal that {@link removeFromCluster} would do; changes nothing. */
export const planRemoval = useCase(REMOVAL, async (request, context): Promise<ChannelRemoval> =>
  removeAddon(request, context, false),
);

/** Namespaces and CustomResourceDefinitions stay unless they are asked for. `NOT_FOUND` if nothing is recorded. */
export const removeFromCluster = useCase(REMOVAL, async (request, context): Promise<ChannelRemoval> =>
  removeAddon(request, context, true),
);

async function removeAddon(request: ChannelRemoveRequest, context: Context, isReal: boolean): Promise<ChannelRemoval> {
  const { addon } = request;
  const first = await openChannelCluster(request, context);
  await using held = isReal ? await holdCluster(first, { doing: `remove ${addon}`, context }) : undefined;
  const cluster = held?.cluster ?? first;
  const { annotations, records } = cluster.facts;
  const keys = [...new Set([...records.keys(), ...annotations.keys()])];
  const own = keys.filter(
    (key) => key.endsWith(`:${addon}`) && (request.namespace ?? key.split(':')[0]) === key.split(':')[0],
  );
  const [key, second] = own;
  if (key === undefined) {
    const near = nearest(
      addon,
      keys.map((one) => one.split(':')[1] ?? ''),
    );
    throw new CurlewError('NOT_FOUND', `cannot remove ${addon}: the cluster has no record of it`, {
      hint: near === undefined ? 'curlew channel status lists the add-ons' : `did you mean "${near}"?`,
    });
  }
  const [namespace = ''] = key.split(':');
  if (second !== undefined) {
    throw new CurlewError('USAGE', `cannot remove ${addon}: several namespaces have a record of it`, {
      hint: `add --namespace with one of ${own.map((one) => one.split(':')[0]).join(', ')}`,
    });
  }
  const removal = await removeDelivered(
    { cluster, request, helm: helmOf(request, cluster, context) },
    { namespace, name: addon },
    { isReal },
  );
  return { addon, namespace, server: cluster.server, ...removal };
}
