/** Who has been accepted at a hub, and who asks to be. */
import * as v from 'valibot';
import { CurlewError } from '../../../core/errors.ts';
import { convert, fits } from '../../../core/schema.ts';
import { clusterName } from '../../upstream/kinds.ts';
import { AGENT } from '../identity.ts';
import { rbacResource } from '../rbac.ts';
import { namespaceOf } from '../observe.ts';
import { decision, readAgentRequest, SIGNING_REQUESTS, type AgentRequest } from '../certificate-requests.ts';
import type { Call } from '../../../cluster/kube/call.ts';
import { getObject, mapObjects, patchObject, type LiveObject } from '../../../cluster/kube/objects.ts';

export const BINDINGS = rbacResource('RoleBinding', true);
const binding = v.object({ subjects: v.tuple([v.object({ kind: v.literal('User'), name: v.string() })]) });

/** The user that is the agent of a cluster; undefined if none is. */
export async function readAccepted(call: Call, cluster: string): Promise<string | undefined> {
  const read = convert(binding, await getObject(call, BINDINGS, { namespace: namespaceOf(cluster), name: AGENT }));
  return 'problems' in read ? undefined : read.value.subjects[0].name;
}

/** All requests of a cluster, the newest first. */
export async function requestsOf(call: Call, cluster: string): Promise<readonly AgentRequest[]> {
  const requests = (await mapObjects(call, SIGNING_REQUESTS, {}, readAgentRequest)) ?? [];
  return requests
    .flatMap((one) => (one?.cluster === cluster ? [one] : []))
    .toSorted((a, b) => (a.createdAt > b.createdAt ? -1 : 1));
}

/** Approves or denies a request as it was seen; `BUSY` if it has changed meanwhile. */
export async function decideRequest(
  call: Call,
  request: AgentRequest,
  type: 'Approved' | 'Denied',
  why: string,
): Promise<LiveObject> {
  const operations = decision(request, type, why);
  const changed = await patchObject(call, SIGNING_REQUESTS, request, { operations, subresource: 'approval' });
  if (changed !== undefined) return changed;
  throw new CurlewError('BUSY', `cannot decide about ${request.name}: it has changed meanwhile`, {
    hint: 'run the same command again',
  });
}

export function requireClusterName(name: string): void {
  const isName: boolean = fits(clusterName, name);
  if (isName) return;
  const shown = JSON.stringify(name.slice(0, 80));
  throw new CurlewError('USAGE', `${shown} is not the name of a cluster`, {
    hint: 'write at most 57 lower-case letters, digits and "-"',
  });
}
