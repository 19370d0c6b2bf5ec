/** Takes all rights at a hub from the agent of a cluster. */
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase, type RequestOf } from '../core/request.ts';
import { openClusterApi } from '../cluster/deliver/channel-cluster.ts';
import { agentLease, clusterLabel } from '../fleet/hub/identity.ts';
import { resourceOfRight } from '../fleet/hub/rbac.ts';
import { agentRights } from '../fleet/hub/rights.ts';
import { ADDON_LABEL, decision, SIGNING_REQUESTS } from '../fleet/hub/certificate-requests.ts';
import type { Call } from '../cluster/kube/call.ts';
import { LEASES } from '../cluster/kube/lease.ts';
import { deleteObject, listObjects, patchObject, type LiveObject } from '../cluster/kube/objects.ts';
import { BINDINGS, readAccepted, requestsOf, requireClusterName } from '../fleet/hub/run/accepted-agents.ts';
import { deleteToken, tokensOf } from '../fleet/hub/run/token.ts';
import { FLEET_DETACH } from '../requests/registration.ts';

export interface Detachment {
  readonly cluster: string;
  /** The user whose certificate has rights; undefined if none has. */
  readonly user: string | undefined;
  /** Its tokens, which are deleted, and its requests, which are denied. */
  readonly tokens: readonly string[];
  readonly requests: readonly string[];
  /** RoleBindings of its add-ons, with their namespaces, which are deleted. */
  readonly bindings: readonly string[];
  readonly detached: boolean;
}

/** What would be taken. `NOT_FOUND` if the cluster has nothing. */
export const planDetachment = useCase(FLEET_DETACH, async (request, context): Promise<Detachment> =>
  detach(request, context, false),
);

/** Certificates are valid until they expire, but of nobody: the next agent of the name is another user. */
export const detachCluster = useCase(FLEET_DETACH, async (request, context): Promise<Detachment> =>
  detach(request, context, true),
);

/** What add-ons on the cluster may do at the hub. */
async function addonBindings(call: Call, cluster: string): Promise<readonly LiveObject[]> {
  const [label = ''] = Object.entries(clusterLabel(cluster)).map((one) => one.join('='));
  const options = { labelSelector: `${label},${ADDON_LABEL}`, onlyMetadata: true };
  return (await listObjects(call, BINDINGS, options)) ?? [];
}

async function detach(
  request: RequestOf<typeof FLEET_DETACH.fields>,
  context: Context,
  isFor: boolean,
): Promise<Detachment> {
  const { cluster } = request;
  requireClusterName(cluster);
  const { call } = await openClusterApi(request, context);
  const user = await readAccepted(call, cluster);
  const tokens = await tokensOf(call, cluster);
  const pending = (await requestsOf(call, cluster)).filter(({ isPending }) => isPending);
  const bindings = (await addonBindings(call, cluster)).map(
    ({ metadata: { namespace, name } }) => `${namespace}/${name}`,
  );
  const detachment = { cluster, user, tokens, requests: pending.map(({ name }) => name), bindings, detached: isFor };
  if (user === undefined && tokens.length + pending.length + bindings.length === 0) {
    throw new CurlewError('NOT_FOUND', `cannot detach ${cluster}: no agent of it was accepted or asks to be`, {
      hint: 'kubectl get clusters.fleet.curlew.dev -A lists the clusters',
    });
  }
  if (!isFor) return detachment;
  for (const right of agentRights({ cluster, user: '', by: '', request: '' }))
    await deleteObject(call, resourceOfRight(right), right.metadata);
  // A controller makes no others any more, but may have done so meanwhile.
  for (const { metadata } of await addonBindings(call, cluster)) await deleteObject(call, BINDINGS, metadata);
  // An agent without rights is not silent, but gone.
  await deleteObject(call, LEASES, agentLease(cluster));
  for (const name of tokens) await deleteToken(call, name);
  for (const one of pending) {
    const operations = decision(one, 'Denied', `${cluster} was detached`);
    await patchObject(call, SIGNING_REQUESTS, one, { operations, subresource: 'approval' });
  }
  return detachment;
}
