/**
 * What the commands of a fleet keep between passes: when a rollout began, failures that no cluster records, what people ordered, and
 * earlier contents to go back to. What a cluster records wins over it, so that a lost state is safe. Pure.
 */
import * as v from 'valibot';
import type { Entry } from '../cluster/channel/channel.ts';
import type { AddonRecord } from '../cluster/channel/record.ts';
import { CurlewError } from '../core/errors.ts';
import { exactJson, exactValue, isObject, mapped } from '../core/json.ts';
import { byKey, convert, finite, integer, type Read } from '../core/schema.ts';
import type { FleetAddon, FleetAddonStatus } from './rollout/fleet.ts';
import type { Look } from './fleet.ts';

const FORMAT = 1;
/** Earlier contents of an add-on that are kept. */
const MAX_KEPT = 5;

/** One content of an add-on for all clusters, and the entries that deliver it. */
export interface StateRevision {
  readonly revision: string;
  /** Only in a hub do sources differ by cluster. */
  readonly addon: Omit<FleetAddon, 'sourceOn' | 'refuses'>;
  /** One, or those of a channel. */
  readonly entries: readonly Entry[];
  /** It was healthy on a cluster. */
  readonly isGood?: boolean;
}

/** The own records are only objects to the schema: this program wrote them. */
function own<Type>() {
  return v.custom<Type>(isObject, 'not an object');
}

/** Times are seconds since 1970. */
const attempt = v.object({ hash: v.string(), since: finite });
const failure = v.object({ ...attempt.entries, reason: v.string(), asks: v.exactOptional(v.literal(true)) });

const addonState = v.object({
  status: v.exactOptional(own<FleetAddonStatus>()),
  /** When the rollout before the present one began: an older order was given before another content came. */
  previous: v.exactOptional(finite),
  /** By cluster: also what waits there for an approval (`asks`). They count until the cluster records something about the same content. */
  failures: byKey(failure),
  /** Removals that have begun, by cluster. */
  removing: byKey(finite),
  /** What has begun in a pass after which the cluster did not answer, by cluster. */
  begun: v.exactOptional(byKey(attempt)),
  /** The newest first. */
  kept: v.array(own<StateRevision>()),
});
export type AddonState = Read<typeof addonState>;

/** What a cluster said when it last answered. */
export interface Seen extends Pick<Extract<Look, { readonly server: string }>, 'server' | 'kubernetes' | 'ahead'> {
  readonly records: readonly Omit<AddonRecord, 'objects' | 'orphans'>[];
}

const passState = v.object({
  format: integer,
  /** By which orders know the state in which they were followed. */
  id: v.exactOptional(v.string()),
  /** When each began or ceased to answer. */
  clusters: byKey(v.object({ available: v.boolean(), since: finite, seen: v.exactOptional(own<Seen>()) })),
  addons: byKey(addonState),
});
export type FleetState = Read<typeof passState>;

const order = v.object({
  paused: v.exactOptional(v.boolean()),
  /** The content that the others are about; with another one, they are void. */
  revision: v.exactOptional(v.string()),
  at: v.exactOptional(finite),
  groups: v.exactOptional(v.array(v.string())),
  unproven: v.exactOptional(v.array(v.string())),
  removals: v.exactOptional(integer),
  deletions: v.exactOptional(v.boolean()),
  downgrade: v.exactOptional(v.boolean()),
  downgradeAt: v.exactOptional(finite),
  retry: v.exactOptional(finite),
  rollback: v.exactOptional(v.boolean()),
});
export type GivenOrder = Read<typeof order>;

const orders = v.object({
  format: integer,
  /** Id of the state in which they were followed. */
  state: v.exactOptional(v.string()),
  addons: byKey(order),
});
export type FleetOrders = Read<typeof orders>;

export const NO_STATE: FleetState = { format: FORMAT, clusters: {}, addons: {} };
export const NO_ORDERS: FleetOrders = { format: FORMAT, addons: {} };
export const NEW_ADDON: AddonState = { failures: {}, removing: {}, kept: [] };

export const readState = (text: string, path: string): FleetState => read(passState, text, path);
export const readOrders = (text: string, path: string): FleetOrders => read(orders, text, path);

/** `FILE_UNUSABLE` for what this version has not written. */
function read<Schema extends v.GenericSchema<unknown, { readonly format: number }>>(
  schema: Schema,
  text: string,
  path: string,
): Read<Schema> {
  const refuse = (what: string, hint: string): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `cannot read the state of the fleet in ${path}: ${what}`, { hint });
  const LOST = 'move it away: what is installed is read from the clusters, approvals and pauses must be given again';
  let value: unknown;
  try {
    value = exactValue(text);
  } catch {
    throw refuse('it is not JSON', LOST);
  }
  const format = isObject(value) ? value['format'] : undefined;
  if (typeof format === 'number' && format > FORMAT)
    throw refuse(`it has format ${format}, and this version reads ${FORMAT}`, 'use the newer curlew that wrote it');
  const checked = convert(schema, value);
  if ('problems' in checked) throw refuse(checked.problems[0].message, LOST);
  return checked.value;
}

/** Equal states have equal bytes. */
export function encodeState(state: FleetState | FleetOrders): string {
  return `${exactJson(state)}\n`;
}

/**
 * With the time since when each cluster answers, or does not, and what it said last. No time is ahead: a clock that has been set back
 * since then lets it begin now.
 */
export function withLooks(state: FleetState, looks: ReadonlyMap<string, Look>, now: number): FleetState {
  const clusters = [...looks].map(([name, look]) => {
    const available = !('problem' in look);
    const known = state.clusters[name];
    // A cluster that always answered has no such time.
    const since = known?.available === available ? known.since : known === undefined && available ? 0 : now;
    const seen = seenIn(look) ?? known?.seen;
    return [name, { available, since: Math.min(since, now), ...(seen && { seen }) }] as const;
  });
  const addons = mapped(state.addons, (one) => notAhead(one, now));
  return { ...state, clusters: Object.fromEntries(clusters), addons };
}

/** What an answer says; undefined if there is none. */
export function seenIn(look: Look): Seen | undefined {
  if ('problem' in look) return undefined;
  const { server, kubernetes, ahead = 0, facts } = look;
  const records = [...facts.records.values()].map(({ objects: _objects, orphans: _orphans, ...record }) => record);
  return { server, kubernetes, ...(ahead !== 0 && { ahead }), records };
}

function notAhead({ status, previous, failures, removing, begun, ...own }: AddonState, now: number): AddonState {
  const limited = <T extends { readonly since: number }>(one: T): T => ({ ...one, since: Math.min(one.since, now) });
  return {
    ...own,
    ...(status && { status: limited({ ...status, waiting: status.waiting.map(limited) }) }),
    ...(previous !== undefined && { previous: Math.min(previous, now) }),
    failures: mapped(failures, limited),
    removing: mapped(removing, (since) => Math.min(since, now)),
    ...(begun && { begun: mapped(begun, limited) }),
  };
}

/**
 * The orders that count. With another state than the one in which they were followed, how much they have let pass is not known: then
 * only pauses do.
 */
export function ordersFor({ id }: Pick<FleetState, 'id'>, orders: FleetOrders): FleetOrders {
  const { state, addons, ...others } = orders;
  if (state === undefined || state === id) return orders;
  return { ...others, addons: mapped(addons, ({ paused }): GivenOrder => (paused === undefined ? {} : { paused })) };
}

/**
 * Is an order about the present content? It may come before the rollout that it is about, but not before the one that preceded that: a
 * content that comes again after another one needs a new order.
 */
export function isPresent({ revision: meant, at = 0 }: GivenOrder, revision: string, own?: AddonState): boolean {
  return meant === revision && at >= presentSince(revision, own);
}

/** The time before which an order is about something else. */
export function presentSince(revision: string, { status, previous = 0 }: AddonState = NEW_ADDON): number {
  return status?.revision === revision ? previous : (status?.since ?? 0);
}

/** An add-on with what the state and people say about it. */
export function withState(addon: FleetAddon, { revision, now, own, order }: Known): FleetAddon {
  const { status } = own ?? NEW_ADDON;
  const { paused, revision: meant, at = 0, retry, rollback, ...orders } = order ?? {};
  const isCurrent = order !== undefined && isPresent(order, revision, own);
  const since = status?.revision === revision ? status.since : now;
  // An order about the present content may have come before its rollout began.
  const timeOf = (time: number): number => (isCurrent ? Math.max(time, since) : time);
  const { downgradeAt: _at, ...approval } = orders;
  const isLapsed = meant !== undefined && meant !== revision && Object.keys(approval).length > 0;
  return {
    ...addon,
    ...(status && { status }),
    ...(paused === true && { paused }),
    ...(isLapsed && { lapsed: { at, ...approval } }),
    ...(meant === revision && {
      orders: {
        ...orders,
        generation: addon.generation,
        at: timeOf(at),
        ...(retry !== undefined && { retry: timeOf(retry), retryGiven: retry }),
        ...(rollback === true && { rollback: timeOf(at) }),
      },
    }),
  };
}

interface Known {
  /** Revision of the present content. */
  readonly revision: string;
  readonly now: number;
  readonly own: AddonState | undefined;
  readonly order: GivenOrder | undefined;
}

/** Keeps the contents of these add-ons; the newest one that was good stays, however old. */
export function keep(state: AddonState, { revision, addon, entries }: StateRevision): AddonState {
  const { status: _status, orders: _orders, lapsed: _lapsed, paused: _paused, ...plain } = addon;
  const before = state.kept.find((one) => one.revision === revision);
  const first = { revision, addon: plain, entries, isGood: before?.isGood === true };
  const all = [first, ...state.kept.filter((one) => one !== before)];
  const good = all.find(({ isGood }) => isGood);
  return { ...state, kept: all.filter((one, at) => at < MAX_KEPT || one === good) };
}
