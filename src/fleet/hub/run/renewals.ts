/** What a controller decides about requests for certificates: of accepted agents for themselves and for add-ons, and whatever breaks the rules. */
import { CurlewError } from '../../../core/errors.ts';
import { signClient } from '../../../formats/signing/authority.ts';
import { readRequest } from '../../../formats/signing/certificate-request.ts';
import { KUBE_SIGNER } from '../../upstream/registration.ts';
import { signature, SIGNING_REQUESTS, type AgentRequest } from '../certificate-requests.ts';
import { resourceOfRight } from '../rbac.ts';
import { requestRole } from '../rights.ts';
import { Refused, type Call } from '../../../cluster/kube/call.ts';
import { mergeObject, patchObject } from '../../../cluster/kube/objects.ts';
import type { Watch } from '../../../cluster/kube/watch.ts';
import type { Backoff } from '../../../platform/limit/backoff.ts';
import { pause } from '../../../platform/limit/repeat.ts';
import type { Wake } from '../../../platform/limit/wake.ts';
import { decideRequest, readAccepted } from './accepted-agents.ts';
import type { AddonRights } from './addon-rights.ts';
import { eachJob } from './jobs.ts';

/** A sender of many requests holds neither the controller nor other senders: a pass decides about so many. */
const MAX_AT_A_TIME = 16;
const PASS_MS = 1000;
/** An agent reads the answers to its last requests. */
const MAX_READ = 50;
/** Even if nothing has changed. */
export const RESYNC_MS = 36_000_000;

export type Say = (level: 'info' | 'warning', text: string) => void;

export interface Renewing {
  readonly call: Call;
  readonly signal: AbortSignal;
  readonly requests: Pick<Watch<AgentRequest | undefined>, 'problem' | 'values' | 'put'>;
  /** For those that could not be decided, by name. */
  readonly backoff: Backoff;
  readonly say: Say;
  /** Rights of add-ons; undefined if none is taken. */
  readonly addons?: AddonRights | undefined;
}

/** Decides whenever `changes` is set, at most once a second, until the signal aborts, whose reason it throws. */
export async function decideRequests(hub: Renewing, changes: Wake): Promise<never> {
  for (let nextMs = RESYNC_MS; ;) {
    await changes.wait(Math.min(nextMs, RESYNC_MS), hub);
    changes.clear();
    const passed = await passRequests(hub);
    if (passed.problem !== undefined) hub.say('warning', passed.problem);
    ({ nextMs } = passed);
    await pause(PASS_MS, hub);
  }
}

/**
 * Writes the rights of add-ons, approves renewals and what add-ons ask for, signs what they ask of a signer of their own, and denies what
 * breaks a rule, what a newer request of the agent replaces, and requests of agents that were detached: 16 of them, in turn of their senders. A request by a token waits for a person. Returns why something could not be decided,
 * and after how many milliseconds there is more to do.
 */
export async function passRequests(
  hub: Renewing,
): Promise<{ readonly problem: string | undefined; readonly nextMs: number }> {
  const { requests, signal, backoff, addons } = hub;
  if (requests.problem !== undefined) return { problem: requests.problem, nextMs: Infinity };
  const rights = await addons?.pass(signal);
  const all = requests.values().flatMap((one) => one ?? []);
  const pending = all.filter(({ isPending }) => isPending);
  const seen = { all, newest: newestOf(pending) };
  const open = [...pending, ...all.filter((one) => isToSign(hub, one))];
  // Without all that is known of add-ons, nothing is decided about them.
  const isKnown = ({ kind }: AgentRequest): boolean => kind !== 'addon' || addons?.problem === undefined;
  const due = open.filter((one) => isOurs(one) && isKnown(one) && backoff.mayBegin(one.name));
  const jobs = inTurn(due, MAX_AT_A_TIME).map((one) => ({ key: one.name, run: async () => respond(hub, one, seen) }));
  const decided = await eachJob(jobs, { signal, backoff });
  const nextMs = backoff.keep(new Set(open.map(({ name }) => name)));
  const problem = rights?.problem ?? decided.problem;
  return { problem, nextMs: due.length > MAX_AT_A_TIME ? 0 : Math.min(nextMs, rights?.nextMs ?? Infinity) };
}

/** True for what no person decides about. */
function isOurs({ problem, kind }: AgentRequest): boolean {
  return problem !== undefined || kind === 'renewal' || kind === 'addon';
}

/** What a request is for: only the newest one counts. */
function purposeOf({ by, user, addon }: AgentRequest): string {
  return addon === undefined ? user : `${by} ${addon.name} ${addon.signer}`;
}

/** All requests, and the newest one of each {@link purposeOf}. */
interface Seen {
  readonly all: readonly AgentRequest[];
  readonly newest: ReadonlyMap<string, AgentRequest>;
}

function newestOf(pending: readonly AgentRequest[]): Seen['newest'] {
  const newest = new Map<string, AgentRequest>();
  for (const one of pending) {
    if (one.problem !== undefined || !isOurs(one)) continue;
    const before = newest.get(purposeOf(one));
    if (before === undefined || isLater(one, before)) newest.set(purposeOf(one), one);
  }
  return newest;
}

/** The first of each sender, then the second of each, up to `most`. */
function inTurn(all: readonly AgentRequest[], most: number): readonly AgentRequest[] {
  const rounds: AgentRequest[][] = [];
  const counts = new Map<string, number>();
  for (const one of all) {
    const round = counts.get(one.by) ?? 0;
    if (round >= most) continue;
    counts.set(one.by, round + 1);
    (rounds[round] ??= []).push(one);
  }
  return rounds.flat().slice(0, most);
}

async function respond(hub: Renewing, one: AgentRequest, seen: Seen): Promise<void> {
  try {
    await (one.isPending ? decide(hub, one, seen) : sign(hub, one, seen));
  } catch (error) {
    throw error instanceof Refused ? (hub.addons?.refused(one, error) ?? error) : error;
  }
}

async function decide(hub: Renewing, one: AgentRequest, seen: Seen): Promise<void> {
  const { call } = hub;
  if (one.problem !== undefined) return answer(hub, one, 'Denied', one.problem);
  const { by, cluster, kind } = one;
  const older = seen.newest.get(purposeOf(one)) === one ? undefined : 'the agent has made a newer request';
  if (kind !== 'addon' && older !== undefined) return answer(hub, one, 'Denied', older);
  if ((await readAccepted(call, cluster)) !== by)
    return answer(hub, one, 'Denied', `this is not the accepted agent of ${cluster}`);
  const why = kind === 'addon' ? (addonProblem(hub, one, seen) ?? older ?? (await signerProblem(hub, one))) : undefined;
  // The agent may read the request before its certificate is there, and cannot get it otherwise.
  const role = requestRole(cluster, namesOf(one, seen));
  const changed = await mergeObject(call, resourceOfRight(role), role.metadata, { rules: role['rules'] });
  if (changed === undefined) {
    throw new CurlewError(
      'CLUSTER_FAILED',
      `cannot renew the certificate of ${cluster}: ClusterRole ${role.metadata.name} is gone`,
      {
        hint: `curlew fleet detach ${cluster}, and register it again`,
      },
    );
  }
  if (why !== undefined) return answer(hub, one, 'Denied', why);
  return answer(hub, one, 'Approved', one.addon ? `for ${one.addon.name}` : 'a renewal by the accepted agent');
}

function addonProblem({ addons }: Renewing, one: AgentRequest, { all }: Seen): string | undefined {
  const { fingerprint, name } = one;
  const used = all.find((other) => other.fingerprint === fingerprint && other.name !== name);
  if (used !== undefined) return `its key is also that of ${used.name}`;
  return addons === undefined ? 'the controller takes no add-ons of Open Cluster Management' : addons.problemOf(one);
}

/** Why what asks for a signer of its own would not be signed. */
async function signerProblem({ addons }: Renewing, one: AgentRequest): Promise<string | undefined> {
  if (addons === undefined || one.addon?.signer === KUBE_SIGNER) return undefined;
  const found = await addons.authorityOf(one);
  return 'problem' in found ? found.problem : undefined;
}

/** True for what was approved for a signer that is no program of its own. */
function isToSign({ addons }: Renewing, { addon, problem }: AgentRequest): boolean {
  return addons !== undefined && addon?.unsigned !== undefined && problem === undefined && addon.signer !== KUBE_SIGNER;
}

/** Whoever has approved it: what would be refused is not signed. */
async function sign(hub: Renewing, one: AgentRequest, seen: Seen): Promise<void> {
  const { call, addons, requests, say } = hub;
  const { cluster, by, name, addon } = one;
  const request = readRequest(addon?.unsigned ?? '');
  if (addons === undefined || addon === undefined || request === undefined) return;
  const isAccepted = (await readAccepted(call, cluster)) === by;
  const why = isAccepted ? addonProblem(hub, one, seen) : `this is not the accepted agent of ${cluster}`;
  const found = why === undefined ? await addons.authorityOf(one) : { problem: why };
  const isFound = !('problem' in found);
  const answered = isFound
    ? { certificate: signClient(found, request, { lifeS: addon.lifeS, now: addons.now() }) }
    : found;
  const operations = signature(one, answered);
  const changed = await patchObject(call, SIGNING_REQUESTS, one, { operations, subresource: 'status' });
  if (changed === undefined) throw new CurlewError('BUSY', `cannot sign ${name}: it has changed meanwhile`);
  requests.put(changed);
  if (isFound) addons.signed(one);
  say('info', `${name} of ${cluster}: ${isFound ? `signed for ${addon.name}` : `not signed: ${found.problem}`}`);
}

/** This one and the last ones of its sender that count, so that one answer does not hide another. */
function namesOf({ by, name }: AgentRequest, { all, newest }: Seen): readonly string[] {
  const counts = (one: AgentRequest): boolean =>
    one.isApproved || one.kind === 'addon' || newest.get(purposeOf(one)) === one;
  const own = all.filter((one) => one.by === by && one.name !== name && counts(one));
  const last = own.toSorted((a, b) => (isLater(a, b) ? -1 : 1)).slice(0, MAX_READ - 1);
  return [name, ...last.map((one) => one.name)];
}

function isLater(a: AgentRequest, b: AgentRequest): boolean {
  return a.createdAt === b.createdAt ? a.name > b.name : a.createdAt > b.createdAt;
}

async function answer(hub: Renewing, one: AgentRequest, type: 'Approved' | 'Denied', why: string): Promise<void> {
  const { call, requests, say } = hub;
  requests.put(await decideRequest(call, one, type, why));
  say('info', `${one.name} of ${one.cluster}: ${type.toLowerCase()}: ${why}`);
}
