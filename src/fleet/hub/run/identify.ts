/** Which hub it is. */
import { CurlewError } from '../../../core/errors.ts';
import { CONTROLLER_LEASE, REGISTRATION } from '../manifests.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import { getObject } from '../../../cluster/kube/objects.ts';
import { rbacResource } from '../rbac.ts';
import { NAMESPACES } from '../../../cluster/kube/core-kinds.ts';

const BINDINGS = rbacResource('ClusterRoleBinding', false);

/** The uid of its namespace kube-system. `CLUSTER_FAILED` if `curlew hub manifests` has not been applied. `doing` begins messages. */
export async function identifyHub(call: Call, doing: string): Promise<string> {
  const { namespace: name } = CONTROLLER_LEASE;
  if ((await getObject(call, NAMESPACES, { name })) === undefined) throw unprepared(doing, `namespace ${name}`);
  return (await getObject(call, NAMESPACES, { name: 'kube-system' }))?.metadata.uid ?? '';
}

/** A hub of an earlier version has no rights for agents that register. */
export async function requireRegistration(call: Call, doing: string): Promise<void> {
  const name = REGISTRATION;
  if ((await getObject(call, BINDINGS, { name })) === undefined) throw unprepared(doing, `ClusterRoleBinding ${name}`);
}

function unprepared(doing: string, what: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `cannot ${doing}: it has no ${what}`, {
    hint: 'curlew hub manifests | kubectl apply -f - creates it, with all else that a hub needs',
  });
}
