/** What the agent of a cluster does about the ClusterAddons of its hub. Pure. */
import type { LiveState } from '../../cluster/channel/pass.ts';
import { compareVersions } from '../../core/ref.ts';
import { convert, fits } from '../../core/schema.ts';
import { leaves } from '../rollout/leaving.ts';
import { parseTimeout } from '../rollout/limits.ts';
import { specHash } from '../rollout/spec-hash.ts';
import { objectVersion, type Live, type Version } from './observe.ts';
import {
  keptOf,
  seenSince,
  upkeepOf,
  withUpkeep,
  type AgentRecord,
  type AgentSpec,
  type Kept,
} from './agent-record.ts';
import { upkeepIn, type SeenObjects, type Upkeep } from './changed-by-others.ts';
import { HUB_KINDS, resolvedSource } from './hub-kinds.ts';

const { name: NAME, spec: SPEC } = HUB_KINDS.ClusterAddon;

/** A failure is tried again after one minute, and after five; then only another revision helps. */
const MAX_TRIES = 3;
const RETRY_S = [60, 300] as const;
/** What could not begin, such as while another command has the cluster, waits half as long as it has waited, within these. */
const LATER_S = [15, 300] as const;
/** All waits are ± 20 %. One that is longer is due: the clock was set back. */
const MAX_WAIT_S = 360;
/** Contents that were healthy: the present one, and the one before it. */
const MAX_GOOD = 2;
/** Add-ons that were removed and are remembered. */
const MAX_REMOVED = 1000;

/** A ClusterAddon of the hub. */
export interface Order {
  readonly at: Version;
  /** Undefined for one that this version cannot read. */
  readonly spec: AgentSpec | undefined;
  /** What is done about changes by others, and when. */
  readonly upkeep: Upkeep;
  /** The stored status. */
  readonly status: unknown;
}

export function readOrder(object: Live): Order {
  const at = objectVersion(object);
  const read = convert(SPEC, object['spec']);
  const spec = !('problems' in read) && fits(NAME, at.name) && isBound(read.value) ? read.value : undefined;
  return { at, spec, upkeep: upkeepIn(object.metadata.annotations), status: object['status'] };
}

/** True if hash and version are those of what would be installed: what is allowed depends on them. */
function isBound({ source, values, version, specHash: hash }: AgentSpec): boolean {
  if (specHash({ source, values }) !== hash || !fits(resolvedSource, source)) return false;
  const { package: packed, chart } = source;
  return (packed ?? chart ?? { version }).version === version;
}

function packageOf({ source }: AgentSpec): string | undefined {
  return fits(resolvedSource, source) ? source.package?.name : undefined;
}

export interface AgentJob {
  readonly addon: string;
  readonly spec: AgentSpec;
  /** `forget`: only its record goes, and its objects stay. */
  readonly act: 'install' | 'restore' | 'remove' | 'forget';
  /** The add-on of the fleet that has left its objects to this one. */
  readonly takesOver: string | undefined;
  /** A removal continues after what fails. */
  readonly keepGoing: boolean;
  /** How the objects are that are restored. */
  readonly live?: LiveState | undefined;
}

export interface Known {
  readonly now: number;
  /** Identifier of the one hub that is obeyed. */
  readonly hub: string;
  /** Also obeys lower revisions and versions than before, such as those of a hub that was restored. */
  readonly acceptOlder: boolean;
  /** How the objects of add-ons are, as far as they were looked at. */
  readonly seen?: ReadonlyMap<string, SeenObjects> | undefined;
}

export interface Decided {
  readonly record: AgentRecord;
  readonly jobs: readonly AgentJob[];
  /** Why orders are not followed, by add-on. */
  readonly refused: ReadonlyMap<string, OrderRefusal>;
  /** Add-ons that run without a ClusterAddon. */
  readonly detached: readonly string[];
  /** Seconds until time alone makes a difference; infinite if it does not. */
  readonly recheckAfter: number;
}

export interface OrderRefusal {
  readonly reason: 'AnotherHub' | 'Unreadable' | 'OlderRevision' | 'ChangedRevision' | 'Downgrade';
  readonly message: string;
  /** It has failed: the revision itself is good. */
  readonly isFailure: boolean;
}

/** `orders`: all of the hub, by name; undefined while they are not known, when the last ones are acted on. */
export function obey(orders: ReadonlyMap<string, Order> | undefined, before: AgentRecord, known: Known): Decided {
  const { now } = known;
  const addons = new Map(Object.entries(before.addons).map(([name, own]) => [name, onClock(own, now)] as const));
  const refused = new Map<string, OrderRefusal>();
  for (const [name, { spec, upkeep }] of orders ?? []) {
    const own = addons.get(name);
    const past = spec && before.removed?.[pastKey(name, packageOf(spec))];
    const refusal = spec === undefined ? UNREADABLE : refusalOf(spec, own, { ...known, past });
    if (refusal !== undefined) refused.set(name, refusal);
    else if (spec !== undefined && (own === undefined || isOther(spec, own.spec)))
      addons.set(name, begun(spec, own, now));
    const present = addons.get(name);
    if (refusal === undefined && present !== undefined) addons.set(name, withUpkeep(present, upkeep));
  }
  const heirs = new Map<string, string>();
  for (const [name, { spec }] of addons) {
    if (orders?.has(name) === true && spec.action === 'Install') heirs.set(spec.identity, name);
  }
  const [forgets, jobs, detached]: [AgentJob[], AgentJob[], string[]] = [[], [], []];
  let recheckAfter = Infinity;
  for (const [addon, own] of addons) {
    const isGone = orders !== undefined && !orders.has(addon);
    const isRemoved = own.spec.action === 'Remove';
    const heir = isGone ? heirs.get(own.spec.identity) : undefined;
    // The hub has given it up, or to another of its add-ons.
    const isLeft = isGone && (isRemoved || heir !== undefined);
    if (isGone && isRemoved && own.state === 'Succeeded') {
      addons.delete(addon);
      continue;
    }
    if (isGone && !isLeft) detached.push(addon);
    const seen = isGone ? undefined : known.seen?.get(addon);
    const live = seenSince(own, seen);
    const { differs, isDue } = upkeepOf(own, seen, now);
    // Others have restored what could not be.
    if (live !== undefined && !differs && own.tries > 0) addons.set(addon, restored(own));
    if (isGone ? !isLeft : !isPending(own) && !isDue) {
      if (differs) recheckAfter = Math.min(recheckAfter, 60 - (now % 60));
      continue;
    }
    const next = heir === undefined ? undefined : addons.get(heir);
    if (heir !== undefined && next !== undefined && isPending(next)) addons.set(heir, { ...next, takesOver: addon });
    if (own.next > now) {
      recheckAfter = Math.min(recheckAfter, own.next - now);
      continue;
    }
    const job = { addon, spec: own.spec, takesOver: undefined, keepGoing: false };
    if (isLeft) forgets.push({ ...job, act: 'forget' });
    else if (isDue) jobs.push({ ...job, act: 'restore', live });
    else if (!isRemoved) jobs.push({ ...job, act: 'install', takesOver: own.takesOver });
    else if (leaves(own.spec) || (isGivenUp(own, now) && !blocks(own))) jobs.push({ ...job, act: 'forget' });
    else jobs.push({ ...job, act: 'remove', keepGoing: own.spec.remove?.onFailure === 'Skip' && own.tries > 0 });
  }
  const record = { ...before, addons: Object.fromEntries(addons) };
  return { record, jobs: [...forgets, ...jobs], refused, detached: detached.toSorted(), recheckAfter };
}

function restored(own: Kept): Kept {
  return { ...own, reason: '', message: '', tries: 0, next: 0 };
}

/** After the clock was set back, nothing waits for the time that it was. */
function onClock(own: Kept, now: number): Kept {
  return { ...own, since: Math.min(own.since, now), next: own.next - now > MAX_WAIT_S ? now : own.next };
}

function pastKey(addon: string, packageName: string | undefined): string {
  return packageName === undefined ? addon : `package/${packageName}`;
}

/** A removal is no way to an older version. */
function remembered(
  record: AgentRecord,
  addon: string,
  { spec: { hub }, healthy, package: brought }: Kept,
): AgentRecord {
  if (healthy === undefined) return record;
  const key = pastKey(addon, brought);
  const others = Object.entries(record.removed ?? {}).filter(([one]) => one !== key);
  const all = [...others, [key, { ...(hub !== undefined && { hub }), version: healthy }] as const];
  return { ...record, removed: Object.fromEntries(all.slice(-MAX_REMOVED)) };
}

const UNREADABLE: OrderRefusal = {
  reason: 'Unreadable',
  message:
    'this version of curlew cannot read it, or its hash or version is not that of its source: update agent and controller',
  isFailure: false,
};

function refusalOf(
  spec: AgentSpec,
  own: Kept | undefined,
  { hub, acceptOlder, past }: Known & { readonly past: NonNullable<AgentRecord['removed']>[string] | undefined },
): OrderRefusal | undefined {
  const refuse = (reason: OrderRefusal['reason'], message: string): OrderRefusal => {
    return { reason, message, isFailure: reason === 'Downgrade' };
  };
  if (spec.hub !== hub) return refuse('AnotherHub', 'another hub has written it');
  const hint = 'curlew agent run --accept-older accepts it';
  const before = past?.hub === hub ? past.version : undefined;
  if (own === undefined) {
    if (acceptOlder || spec.action === 'Remove' || !isLower(spec.version, before)) return undefined;
    return refuse('Downgrade', `${before} was here before it was removed, and ${spec.version} is older; ${hint}`);
  }
  // The first order of a hub that has taken the place of another one.
  if (own.spec.hub !== hub) return undefined;
  const { revision } = own.spec;
  if (spec.revision === revision) {
    const isSame = spec.specHash === own.spec.specHash && spec.action === own.spec.action;
    return isSame
      ? undefined
      : refuse('ChangedRevision', `another revision ${revision} was obeyed; change its add-on: the next one is obeyed`);
  }
  if (acceptOlder) return undefined;
  if (spec.revision < revision) {
    return refuse('OlderRevision', `revision ${revision} was obeyed, and ${spec.revision} is older; ${hint}`);
  }
  const all = own.spec.action === 'Remove' ? [own.healthy, before] : [own.spec.version];
  const was = all.find((one) => isLower(spec.version, one));
  if (spec.action === 'Remove' || was === undefined || spec.specHash === goalOf(own)) return undefined;
  return refuse('Downgrade', `${was} is here, and ${spec.version} is not what was healthy before it; ${hint}`);
}

function isLower(version: string | undefined, than: string | undefined): boolean {
  return version !== undefined && than !== undefined && compareVersions(version, than) < 0;
}

/** The content that may be gone back to, whatever its version. */
function goalOf({ good, spec }: Kept): string | undefined {
  return good.find((hash) => hash !== spec.specHash);
}

function isOther(spec: AgentSpec, before: AgentSpec): boolean {
  return spec.revision !== before.revision || spec.hub !== before.hub;
}

function begun(spec: AgentSpec, own: Kept | undefined, now: number): Kept {
  const state = spec.action === 'Remove' ? 'Removing' : 'Progressing';
  return { good: [], ...UNTRIED, ...(own && lasting(own)), spec, state, since: now };
}

/** What one revision leaves to the next: nothing is tried of that yet. */
function lasting({ takesOver: _takesOver, ...own }: Kept): Kept {
  return { ...own, ...UNTRIED };
}

const UNTRIED = { reason: '', message: '', tries: 0, next: 0, orphans: [] };

function isPending({ state, tries }: Kept): boolean {
  return state === 'Progressing' || state === 'Removing' || (state === 'Failed' && tries < MAX_TRIES);
}

function blocks({ spec: { remove } }: Kept): boolean {
  return (remove?.onFailure ?? 'Block') === 'Block';
}

function isGivenUp(own: Kept, now: number): boolean {
  return own.tries >= MAX_TRIES || (own.tries > 0 && isLate(own, now));
}

function isLate({ spec: { remove }, since }: Kept, now: number): boolean {
  return now - since >= parseTimeout(remove?.timeout ?? '30m');
}

/** What came of a job. `later`: nothing has begun; `asks`: nor will it before a person approves it. `bad`: the content is at fault, which is not known of what has `failed`. */
export interface AgentDone {
  readonly result: 'done' | 'failed' | 'bad' | 'later' | 'asks';
  readonly reason: string;
  readonly message: string;
  readonly orphans?: readonly string[] | undefined;
}

/** The record of the package that an add-on is about to bring. */
export function withPackage(record: AgentRecord, addon: string, name: string): AgentRecord {
  const own = keptOf(record, addon);
  return own === undefined ? record : { ...record, addons: { ...record.addons, [addon]: { ...own, package: name } } };
}

/** The record after a job; unchanged for one about a revision that is no longer obeyed. `random`: from 0 to 1, for waits. */
export function afterJob(
  record: AgentRecord,
  { addon, spec, act }: AgentJob,
  done: AgentDone,
  { now, random }: { readonly now: number; readonly random: number },
): AgentRecord {
  const { [addon]: own, ...others } = record.addons;
  if (own === undefined || isOther(spec, own.spec)) return record;
  const isRemoved = spec.action === 'Remove';
  const past = done.result === 'done' && act !== 'install' ? remembered(record, addon, own) : record;
  // The hub no longer has the add-on: nothing is left of it.
  if (act === 'forget' && done.result === 'done' && !(isRemoved && own.state === 'Removing')) {
    return { ...past, addons: others };
  }
  const wait = (s: number): number => now + Math.round(s * (0.8 + 0.4 * random));
  return { ...past, addons: { ...others, [addon]: after(own, { act, ...done }, { now, wait }) } };
}

function after(
  own: Kept,
  { act, result, reason, message, orphans = [] }: AgentDone & Pick<AgentJob, 'act'>,
  { now, wait }: { readonly now: number; readonly wait: (seconds: number) => number },
): Kept {
  const { spec, tries, state, since } = own;
  const [least, most] = LATER_S;
  if (act === 'restore' && result === 'done') return restored(own);
  if (result === 'later') {
    // What is restored has succeeded, and still counts as that.
    const why = act === 'restore' ? {} : { reason, message };
    return { ...own, ...why, next: wait(Math.max(least, Math.min(most, (now - since) / 2))) };
  }
  if (result === 'asks') return { ...own, state: 'Skipped', reason, message, tries: 0, since: now };
  if (result === 'done') {
    const { specHash: hash, version } = spec;
    const isGood = spec.action === 'Install';
    const why =
      act === 'forget'
        ? { reason: 'Orphaned', message: own.message }
        : { reason: act === 'remove' && orphans.length > 0 ? 'Orphaned' : '', message };
    const present = {
      ...lasting(own),
      spec,
      state: 'Succeeded' as const,
      since: now,
      ...why,
      orphans: [...orphans],
    };
    if (!isGood) {
      const { package: _gone, ...others } = present;
      return others;
    }
    const good = [hash, ...own.good.filter((one) => one !== hash)].slice(0, MAX_GOOD);
    return { ...present, good, ...(version !== undefined && { healthy: version }) };
  }
  const failed = {
    ...own,
    reason,
    message,
    tries: tries + 1,
    next: wait(RETRY_S[tries] ?? RETRY_S[1]),
    orphans: [...orphans],
  };
  if (spec.action === 'Install') {
    if (result === 'failed' && failed.tries < MAX_TRIES) return failed;
    return { ...failed, state: 'Failed', since: state === 'Failed' ? since : now };
  }
  if (!isGivenUp(failed, now)) return failed;
  if (!blocks(own)) return act === 'forget' ? failed : { ...failed, next: now };
  return { ...failed, state: isLate(own, now) ? 'TimedOut' : 'Failed', tries: MAX_TRIES, since: now };
}
