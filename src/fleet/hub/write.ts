/** What a step writes into a hub: contents of clusters, and how far each add-on is. Pure. */
import type { ClusterAddonSpec, FleetAddonStatus, Values } from '../rollout/fleet.ts';
import { mapped } from '../../core/json.ts';
import { timeOf } from '../../core/time.ts';
import type { HubAddon } from './observe.ts';
import type { Condition } from './hub-kinds.ts';

/** Bytes of JSON: a text of more characters would be refused, and a letter may have several. */
const MAX_TEXT = 1024;

/** `hub`: the identifier of this hub, which an agent obeys. `config` is what people wrote. */
export function specObject({ startedAt, ...spec }: ClusterAddonSpec, hub: string, config: Values | undefined): Values {
  return { hub, ...spec, startedAt: timeOf(startedAt), ...(config && { config }) };
}

/** The status of an add-on with its conditions; `now` is when those began that have changed. */
export function statusObject(status: FleetAddonStatus, object: HubAddon, now: number): Values {
  const { addon, conditions } = object;
  const { since, soaking, retry, removals, removed, stopped, wentBack, asks, failed, waiting, ...others } = status;
  return {
    ...others,
    since: timeOf(since),
    ...(soaking && { soaking: mapped(soaking, (at) => (at === 0 ? '' : timeOf(at))) }),
    ...(failed && { failed: { ...failed, retry: timeOf(failed.retry) } }),
    ...(retry && { retry: { at: timeOf(retry.at), seen: timeOf(retry.seen) } }),
    ...(removals && { removals: { ...removals, at: timeOf(removals.at) } }),
    ...(removed && { removed: removed.map((one) => ({ ...one, at: timeOf(one.at) })) }),
    ...(stopped !== undefined && { stopped: textOf(stopped) }),
    ...(wentBack !== undefined && { wentBack: textOf(wentBack) }),
    ...(asks !== undefined && { asks: textOf(asks) }),
    waiting: waiting.map((one) => ({ ...one, message: textOf(one.message), since: timeOf(one.since) })),
    conditions: conditionsAt(conditionsOf(status, problemOf(object)), conditions, now).map((one): Condition => {
      return { ...one, observedGeneration: addon.generation };
    }),
  };
}

/** What is deleted goes, whatever else of it cannot be read. */
function problemOf({ addon, problem, closed }: HubAddon): string | undefined {
  return addon.deleting === true ? closed : problem;
}

/** Conditions at `now`; one whose status is as `before` keeps the time at which it began. */
export function conditionsAt(
  present: readonly Omit<Condition, 'lastTransitionTime'>[],
  before: readonly Condition[] = [],
  now: number,
): readonly Condition[] {
  return present.map(({ message, ...one }) => {
    const same = before.find(({ type, status }) => type === one.type && status === one.status);
    const lastTransitionTime = same?.lastTransitionTime ?? timeOf(now);
    return { ...one, ...(message !== undefined && { message: textOf(message) }), lastTransitionTime };
  });
}

/** The part of a text that has room, with a mark that there is more. */
export function textOf(text: string, most = MAX_TEXT): string {
  if (contentBytes(text) <= most) return text;
  let [end, bytes] = [0, contentBytes('…')];
  for (const letter of text) {
    bytes += contentBytes(letter) - 2;
    if (bytes > most) break;
    end += letter.length;
  }
  return `${text.slice(0, end)}…`;
}

/** Length as JSON. */
export function contentBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

type Plain = Pick<Condition, 'type' | 'status' | 'reason'> & { readonly message: string };

function conditionsOf({ counts, stopped, asks }: FleetAddonStatus, problem: string | undefined): readonly Plain[] {
  const { Succeeded = 0, Failed = 0, TimedOut = 0, ToApply = 0, Progressing = 0, Removing = 0 } = counts;
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const [failed, moving] = [Failed + TimedOut, ToApply + Progressing + Removing];
  const why = problem ?? stopped;
  const trouble = problem !== undefined ? 'Invalid' : stopped !== undefined ? 'Stopped' : 'ClustersFailed';
  const isDegraded = why !== undefined || failed > 0;
  const isMoving = why === undefined && moving > 0;
  const isAvailable = problem === undefined && total > 0 && Succeeded === total;
  const reason = isMoving ? 'RollingOut' : isDegraded ? trouble : total === 0 ? 'NoClusters' : 'Waiting';
  const done = `${Succeeded} of ${total} clusters have it${asks === undefined ? '' : `; ${asks}`}`;
  return [
    { type: 'Available', ...either(isAvailable, 'AllSucceeded', reason), message: why ?? done },
    { type: 'Progressing', ...either(isMoving, 'RollingOut', isAvailable ? 'AllSucceeded' : reason), message: done },
    {
      type: 'Degraded',
      ...either(isDegraded, trouble, 'AsExpected'),
      message: why ?? `${failed} clusters have failed`,
    },
  ];
}

function either(is: boolean, yes: string, no: string): Pick<Plain, 'status' | 'reason'> {
  return is ? { status: 'True', reason: yes } : { status: 'False', reason: no };
}

/** What happened to an add-on, for people who read events. */
export interface Happened {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** From one status to the next. */
export function happened(before: FleetAddonStatus | undefined, object: HubAddon, after: FleetAddonStatus) {
  const { addon, conditions } = object;
  const all: Happened[] = [];
  const problem = problemOf(object);
  const was = conditions.find(({ type }) => type === 'Degraded');
  if (problem !== undefined) {
    if (was?.reason !== 'Invalid') all.push({ type: 'Warning', reason: 'Invalid', message: problem });
    return all;
  }
  const { stopped, rolledBack, revision } = after;
  if (revision !== before?.revision) {
    const message = `rolling out generation ${addon.generation}`;
    all.push({ type: 'Normal', reason: addon.deleting === true ? 'Removing' : 'RolloutStarted', message });
  }
  if (rolledBack && before?.rolledBack !== true) {
    all.push({ type: 'Warning', reason: 'RolledBack', message: 'going back to what was known as good' });
  }
  if (stopped !== undefined && before?.stopped !== stopped) {
    all.push({ type: 'Warning', reason: 'Stopped', message: textOf(stopped) });
  }
  const held = after.waiting.find(({ reason }) => reason === 'Content');
  if (held !== undefined && !before?.reasons['Content'])
    all.push({ type: 'Warning', reason: 'Content', message: textOf(`${held.cluster}: ${held.message}`) });
  return all;
}
