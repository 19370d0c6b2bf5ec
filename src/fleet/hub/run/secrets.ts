/** Secrets of a hub. */
import { CurlewError } from '../../../core/errors.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import { getObject, type LiveObject } from '../../../cluster/kube/objects.ts';
import { SECRETS } from '../../../cluster/kube/core-kinds.ts';

interface SecretPlace {
  readonly namespace: string;
  readonly name: string;
}

/** For messages. */
export function titleOfSecret({ namespace, name }: SecretPlace): string {
  return `Secret ${namespace}/${name}`;
}

/**
 * Gets a Secret. What is returned reads it, and throws `CLUSTER_FAILED` if there is none: a server that is away is an error before, and
 * says nothing about the Secret.
 */
export async function getSecret(
  call: Call,
  { namespace, name }: SecretPlace,
): Promise<<Found>(read: (secret: LiveObject, title: string) => Found) => Found> {
  const object = await getObject(call, SECRETS, { namespace, name });
  const title = titleOfSecret({ namespace, name });
  return (read) => {
    if (object === undefined) throw new CurlewError('CLUSTER_FAILED', `there is no ${title}`);
    return read(object, title);
  };
}
