/** Names by which a hub and the agents of its clusters know each other. Pure. */
import { namespaceOf } from './observe.ts';

/** The organization of all agents; it has no rights. */
export const ORGANIZATION = 'curlew:clusters';
const USER = 'curlew:cluster:';
/** The Role and RoleBinding of an agent, and the Lease that it renews, in the namespace of its cluster. */
export const AGENT = 'curlew-agent';

/** The user of an agent. The random part makes each registration another user, so that old certificates are of one without rights. */
export function agentUser(cluster: string, random: string): string {
  return `${USER}${cluster}:${random}`;
}

/** The cluster of an agent's user; undefined for other users. */
export function clusterOfUser(user: string): string | undefined {
  return /^curlew:cluster:([a-z0-9](?:[a-z0-9-]{0,55}[a-z0-9])?):[0-9a-f]{32}$/.exec(user)?.[1];
}

/** The Lease that an agent renews by `get` and `update`: `accept` has created it. */
export function agentLease(cluster: string): { readonly namespace: string; readonly name: string } {
  return { namespace: namespaceOf(cluster), name: AGENT };
}

/** Marks the tokens of a cluster. */
export function clusterLabel(cluster: string): Readonly<Record<string, string>> {
  return { 'fleet.curlew.dev/cluster': cluster };
}
