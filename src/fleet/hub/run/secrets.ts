/** Secrets and ConfigMaps of a hub. */
import { CurlewError } from '../../../core/errors.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import { getObject, titleOf, type LiveObject } from '../../../cluster/kube/objects.ts';
import { SECRETS } from '../../../cluster/kube/core-kinds.ts';

interface Place {
  readonly namespace: string;
  readonly name: string;
}

/** Reads an object that has been got, with its title for messages. Throws `CLUSTER_FAILED` if there is none. */
export type Reader = <Found>(read: (object: LiveObject, title: string) => Found) => Found;

/** Gets a Secret, or an object of another kind: a server that is away is an error here, and says nothing about the object. */
export async function getSecret(call: Call, { namespace, name }: Place, resource = SECRETS): Promise<Reader> {
  const object = await getObject(call, resource, { namespace, name });
  const title = titleOf(resource, { namespace, name });
  return (read) => {
    if (object === undefined) throw new CurlewError('CLUSTER_FAILED', `there is no ${title}`);
    return read({ ...object, kind: resource.kind }, title);
  };
}
