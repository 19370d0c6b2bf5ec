/** Orders of people at a hub: annotations of a FleetAddon, written as it was read. */
import { CurlewError } from '../../../core/errors.ts';
import { getObject, patchObject } from '../../../cluster/kube/objects.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import { ORDER, readFleetAddon, type HubAddon, type HubOrder } from '../observe.ts';
import { resourceOf } from './hub-pass.ts';

const ADDONS = resourceOf('FleetAddon');
/** A controller that writes the status changes the object, too. */
const TRIES = 5;

/** By verb; undefined takes one back. */
export type HubOrders = Readonly<Record<string, HubOrder | 'true' | undefined>>;

/**
 * Writes orders about an add-on, and returns it as they found it. `NOT_FOUND` without it, `BUSY` if others change it all the time, and
 * `CLUSTER_FAILED` without the right to it.
 */
export async function orderAtHub(
  call: Call,
  name: string,
  ordersFor: (addon: HubAddon) => HubOrders,
): Promise<HubAddon> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const live = await getObject(call, ADDONS, { name });
    if (live === undefined) {
      throw new CurlewError('NOT_FOUND', `the hub has no FleetAddon ${name}`, {
        hint: 'kubectl get fleetaddons lists them; --kubeconfig names the hub',
      });
    }
    const addon = readFleetAddon(live);
    const { annotations, resourceVersion } = live.metadata;
    const value: Record<string, string> = { ...annotations };
    for (const [verb, order] of Object.entries(ordersFor(addon))) {
      if (order === undefined) delete value[ORDER + verb];
      else value[ORDER + verb] = typeof order === 'string' ? order : JSON.stringify(order);
    }
    const operations = [
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'add', path: '/metadata/annotations', value },
    ];
    if ((await patchObject(call, ADDONS, { name }, { operations })) !== undefined) return addon;
  }
  throw new CurlewError('BUSY', `cannot order anything about ${name}: others change it all the time`, {
    hint: 'run the same command again',
  });
}
