/** What an agent may do at a hub, as objects. Pure. */
import { AGENT } from './identity.ts';
import { CONTROLLER_ACCOUNT, GROUP, REGISTRATION } from './manifests.ts';
import { namespaceOf } from './observe.ts';
import { bound, granted, may, RBAC, role, type Right } from './rbac.ts';
import { SIGNING_REQUESTS } from './certificate-requests.ts';

export interface Accepted {
  readonly cluster: string;
  /** The user of the agent. */
  readonly user: string;
  /** The user of its token, which also may read the request. */
  readonly by: string;
  /** The name of its request. */
  readonly request: string;
}

/** Names of the cluster-wide ones of an agent: it may make requests, and read that one; the controller may say which. */
function namesOf(cluster: string) {
  return {
    create: `curlew:agent:${cluster}`,
    read: `curlew:agent-request:${cluster}`,
    renew: `curlew:agent-renewal:${cluster}`,
  };
}

/** All rights of an agent. The first one is the RoleBinding, without which it may do nothing. */
export function agentRights({ cluster, user, by, request }: Accepted): readonly Right[] {
  const own = { namespace: namespaceOf(cluster), name: AGENT };
  const names = namesOf(cluster);
  const agent = { apiGroup: RBAC, kind: 'User', name: user };
  return [
    bound('RoleBinding', own, { kind: 'Role', name: AGENT }, [agent]),
    role('Role', own, [
      may(GROUP, ['clusteraddons'], ['get', 'list', 'watch']),
      may(GROUP, ['clusteraddons/status'], ['patch']),
      may(GROUP, ['clusters'], ['get'], [cluster]),
      may(GROUP, ['clusters/status'], ['patch'], [cluster]),
      // A Lease is updated from the version that was read.
      may('coordination.k8s.io', ['leases'], ['get', 'update'], [AGENT]),
    ]),
    bound('ClusterRoleBinding', { name: names.create }, { kind: 'ClusterRole', name: REGISTRATION }, [agent]),
    requestRole(cluster, [request]),
    bound('ClusterRoleBinding', { name: names.read }, { kind: 'ClusterRole', name: names.read }, [
      agent,
      { ...agent, name: by },
    ]),
    ...granted(
      'ClusterRole',
      { name: names.renew },
      [may(RBAC, ['clusterroles'], ['patch'], [names.read])],
      [CONTROLLER_ACCOUNT],
    ),
  ];
}

/** Which requests an agent may read: the name is made by the API server, so each request needs its own. */
export function requestRole(cluster: string, requests: readonly string[]): Right {
  const rule = may('certificates.k8s.io', [SIGNING_REQUESTS.plural], ['get'], requests);
  return role('ClusterRole', { name: namesOf(cluster).read }, [rule]);
}
