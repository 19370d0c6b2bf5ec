/** Lets a cluster that has registered into a hub: its rights, then the approval of its request. */
import type { Context } from '../core/context.ts';
import { firstOf } from '../core/counted.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase, type RequestOf } from '../core/request.ts';
import { openClusterApi } from '../cluster/deliver/channel-cluster.ts';
import { agentLease } from '../fleet/hub/identity.ts';
import { resourceOfRight } from '../fleet/hub/rbac.ts';
import { agentRights } from '../fleet/hub/rights.ts';
import { namespaceOf } from '../fleet/hub/observe.ts';
import { requestToken, type AgentRequest } from '../fleet/hub/certificate-requests.ts';
import type { Call } from '../cluster/kube/call.ts';
import { LEASES } from '../cluster/kube/lease.ts';
import { applyObject, createNamespace, createObject } from '../cluster/kube/objects.ts';
import { decideRequest, readAccepted, requestsOf, requireClusterName } from '../fleet/hub/run/accepted-agents.ts';
import { identifyHub } from '../fleet/hub/run/identify.ts';
import { resourceOf } from '../fleet/hub/run/hub-pass.ts';
import { endToken, isIssued } from '../fleet/hub/run/token.ts';
import { FLEET_ACCEPT } from '../requests/registration.ts';

const SIGN_MS = 30_000;

/** A request that can be accepted, or was. */
export interface Acceptance {
  readonly cluster: string;
  /** Its name at the hub, when it was made, and the fingerprint of its key. */
  readonly request: string;
  readonly createdAt: string;
  readonly fingerprint: string;
  /** It comes from another site than what was accepted before, whose certificate ends to be one with rights. */
  readonly replaces: boolean;
  /** Requests of other sites for the name, which are denied. */
  readonly denied: readonly string[];
  readonly accepted: boolean;
}

/** What would be accepted. Errors as {@link acceptCluster}. */
export const planAcceptance = useCase(FLEET_ACCEPT, async (request, context): Promise<Acceptance> => {
  const { acceptance } = await choose(request, context);
  return acceptance;
});

/**
 * Accepts the one request of a cluster; repeated after an interruption, it continues. `NOT_FOUND` without a request, `CLUSTER_FAILED`
 * if there are several, one breaks the rules, or another site has the name.
 */
export const acceptCluster = useCase(FLEET_ACCEPT, async (request, context): Promise<Acceptance> => {
  const { api, call, chosen, others, acceptance } = await choose(request, context);
  const { signal } = context;
  const { cluster } = acceptance;
  await createParts(call, cluster);
  for (const right of agentRights({ ...chosen, request: chosen.name })) {
    const object = { ...right.metadata, value: right };
    await applyObject(call, resourceOfRight(right), object, { force: true });
  }
  for (const other of others) await decideRequest(call, other, 'Denied', 'another site was accepted under this name');
  const why = `accepted by curlew fleet accept ${cluster}`;
  if (chosen.isPending) await decideRequest(call, chosen, 'Approved', why);
  const token = requestToken(chosen.by);
  if (token !== undefined) await endToken(call, token, api.now());
  if (!chosen.isIssued && !(await isIssued(call, chosen.name, { signal, limitMs: SIGN_MS }))) {
    throw new CurlewError('CLUSTER_FAILED', `${cluster} is accepted, but the hub has not signed ${chosen.name}`, {
      hint: 'start kube-controller-manager of the hub: it signs what is approved',
    });
  }
  return { ...acceptance, accepted: true };
});

async function choose(request: Parameters<typeof planAcceptance>[0], context: Context) {
  const { cluster, fingerprint } = request;
  requireClusterName(cluster);
  const { api, call } = await openClusterApi(request, context);
  await identifyHub(call, `accept ${cluster}`);
  const all = (await requestsOf(call, cluster)).filter(({ kind }) => kind === 'join' || kind === 'rejoin');
  const present = await readAccepted(call, cluster);
  const pending = all.filter(({ isPending }) => isPending);
  // Without one that waits, what was accepted may not have been done to the end.
  const open = pending.length > 0 ? pending : all.filter(({ user }) => user === present);
  const fitting = open.filter((one) => fingerprint === undefined || one.fingerprint === fingerprint);
  const [chosen] = fitting;
  if (chosen === undefined) throw noRequest(request, present, all[0]);
  const sites = new Set(fitting.map(({ user }) => user));
  if (sites.size > 1) throw several(cluster, fitting);
  if (chosen.problem !== undefined) {
    throw refused(
      cluster,
      `${chosen.name} breaks a rule: ${chosen.problem}`,
      'deny it, and find out who holds the token',
    );
  }
  const isOther = present !== undefined && present !== chosen.user;
  if (isOther && chosen.kind !== 'rejoin') {
    const hint = `curlew fleet accept ${cluster} --rejoin makes a token by which a site may take its place`;
    throw refused(cluster, 'another site was accepted under this name', hint);
  }
  const others = pending.filter(({ user }) => user !== chosen.user);
  const { name, createdAt } = chosen;
  return {
    api,
    call,
    chosen,
    others,
    acceptance: {
      cluster,
      request: name,
      createdAt,
      fingerprint: chosen.fingerprint,
      replaces: isOther,
      denied: others.map((one) => one.name),
      accepted: false,
    },
  };
}

function refused(cluster: string, what: string, hint: string): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `cannot accept ${cluster}: ${what}`, { hint });
}

function noRequest(
  { cluster, fingerprint }: RequestOf<typeof FLEET_ACCEPT.fields>,
  present: string | undefined,
  last: AgentRequest | undefined,
): CurlewError {
  const which = fingerprint === undefined ? '' : ' with this key';
  const done = present === undefined ? '' : '; a site was accepted before';
  const why = last?.problem === undefined ? '' : `; ${last.name} was refused: ${last.problem}`;
  return new CurlewError('NOT_FOUND', `cannot accept ${cluster}: no request of it${which} waits${done}${why}`, {
    hint: `on the site, run curlew agent register with a token of curlew hub token ${cluster}`,
  });
}

function several(cluster: string, requests: readonly AgentRequest[]): CurlewError {
  const all = requests.map(({ name, fingerprint }) => `${name} with ${fingerprint || 'no valid key'}`);
  return refused(
    cluster,
    `several sites have asked: ${firstOf(all, 5)}`,
    'choose one by --fingerprint, as curlew agent register prints it on the site',
  );
}

/** The namespace of a cluster, the cluster, and the Lease of its agent; what there is stays. */
async function createParts(call: Call, cluster: string): Promise<void> {
  const namespace = namespaceOf(cluster);
  const value = { spec: {} };
  await createNamespace(call, namespace);
  await createObject(call, resourceOf('Cluster'), { namespace, name: cluster, value });
  await createObject(call, LEASES, { ...agentLease(cluster), value });
}
