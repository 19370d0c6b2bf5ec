/** Events of objects in a hub. */
import { EVENTS } from '../../../cluster/kube/core-kinds.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import { createObject } from '../../../cluster/kube/objects.ts';
import type { Resource } from '../../../cluster/kube/resources.ts';
import type { Cancellable } from '../../../core/cancellable.ts';
import { timeOf } from '../../../core/time.ts';
import type { Version } from '../observe.ts';
import type { Happened } from '../write.ts';

/** What writes into a hub. */
interface Writer extends Cancellable {
  readonly call: Call;
  readonly report: (text: string) => void;
}

/** Writes an event of an object. One that cannot be written is no reason to stop. */
export async function tell(
  { call, report, signal }: Writer,
  { resource: { apiVersion, kind }, at: { name, uid } }: { readonly resource: Resource; readonly at: Version },
  { type, reason, message }: Happened,
): Promise<void> {
  report(`${name}: ${reason}: ${message}`);
  const at = timeOf(Math.floor(Date.now() / 1000));
  const value = {
    involvedObject: { apiVersion, kind, name, uid },
    type,
    reason,
    message,
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
    source: { component: 'curlew-controller' },
  };
  const own = { namespace: 'default', name: `${name}.${Date.now().toString(16)}.${reason.toLowerCase()}` };
  await createObject(call, EVENTS, { ...own, value }).catch(() => signal.throwIfAborted());
}
