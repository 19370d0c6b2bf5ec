/** What becomes of objects that others have deleted or changed, where an agent or the controller looks at them. Pure. */
import * as v from 'valibot';
import { DRIFTS } from '../../cluster/channel/channel.ts';
import type { LiveState } from '../../cluster/channel/pass.ts';
import { canonicalJson } from '../../core/digest.ts';
import { jsonIn } from '../../core/json.ts';
import { fits } from '../../core/schema.ts';
import { returning } from '../drift.ts';
import type { Cluster, FleetAddon } from '../rollout/fleet.ts';
import { closedWindows, UNREADABLE, type Window } from '../rollout/windows.ts';
import type { AddonReport } from './addon-status.ts';
import type { HubAddon, HubCluster, HubClusterAddon, Version } from './observe.ts';

/** Annotations by which the controller says to an agent what it does, and when. They are no part of a revision: they change no content. */
const DRIFT = 'fleet.curlew.dev/drift';
const WINDOWS = 'fleet.curlew.dev/windows';
/** `None`: objects are not looked at. */
export const AGENT_DRIFTS = [...DRIFTS, 'None'] as const;
export type AgentDrift = (typeof AGENT_DRIFTS)[number];

type Windows = readonly (readonly Window[])[];
/** Maintenance windows of a cluster, and of an add-on: one of each must be open. Those that cannot be read ({@link UNREADABLE}) pass, and are closed. */
const windowsOfBoth = v.array(
  v.array(v.object({ cron: v.string(), duration: v.string(), timeZone: v.exactOptional(v.string()) })),
);

/** What an agent keeps of these annotations. */
export const UPKEEP = {
  /** What is done about changes by others. */
  drift: v.exactOptional(v.picklist(AGENT_DRIFTS)),
  /** When it is done; at any time by default. */
  windows: v.exactOptional(windowsOfBoth),
};
export interface Upkeep {
  readonly drift?: AgentDrift;
  readonly windows?: Windows;
}

/** What the annotations of a ClusterAddon say. A controller of an earlier version says nothing. */
export function upkeepIn(annotations: Readonly<Record<string, string>>): Upkeep {
  const { [DRIFT]: written, [WINDOWS]: windows } = annotations;
  const drift = AGENT_DRIFTS.find((one) => one === written);
  return { ...(drift && { drift }), ...(windows !== undefined && { windows: windowsIn(windows) }) };
}

/** None is open that cannot be read. */
function windowsIn(text: string): Windows {
  const value = jsonIn(text);
  return fits(windowsOfBoth, value) ? value : [[UNREADABLE]];
}

/** The windows of which one of each list must be open. */
function windowsOf(ofCluster: Cluster['windows'], addon: Pick<FleetAddon, 'rollout'> | undefined): Windows {
  return [ofCluster ?? [], addon?.rollout?.windows ?? []].filter((one) => one.length > 0);
}

/** What an agent does about an add-on on its cluster. What is paused, or installed once, is left alone. */
function driftFor({ addon, drift = 'Warn' }: Pick<HubAddon, 'addon' | 'drift'>, { paused }: Cluster): AgentDrift {
  return paused === true || addon.paused === true || addon.mode === 'InstallOnce' ? 'None' : drift;
}

/** What a ClusterAddon is to say. */
function annotationsFor(from: HubAddon, { cluster }: HubCluster): Readonly<Record<string, string>> {
  const windows = windowsOf(cluster.windows, from.addon);
  return { [DRIFT]: driftFor(from, cluster), ...(windows.length > 0 && { [WINDOWS]: canonicalJson(windows) }) };
}

/** With which annotations a ClusterAddon is created, if an agent delivers it. */
export function firstAnnotations(from: HubAddon | undefined, own: HubCluster | undefined): object {
  if (from === undefined || own === undefined || own.secret !== undefined) return {};
  return { annotations: annotationsFor(from, own) };
}

/** How the annotations of ClusterAddons are to change that agents deliver, by the keys of `records`. */
export function annotationChanges({
  clusters,
  all,
  records,
}: {
  readonly clusters: readonly HubCluster[];
  readonly all: ReadonlyMap<string, HubAddon>;
  readonly records: ReadonlyMap<string, HubClusterAddon>;
}): readonly { readonly key: string; readonly at: Version; readonly changes: readonly object[] }[] {
  const byName = new Map(clusters.map((one) => [one.cluster.name, one]));
  return [...records].flatMap(([key, { at, record, annotations }]) => {
    const [own, from] = [byName.get(record?.cluster ?? ''), all.get(record?.addon ?? '')];
    if (own === undefined || own.secret !== undefined || from === undefined) return [];
    const { [DRIFT]: drift, [WINDOWS]: windows, ...others } = annotations;
    const wanted = annotationsFor(from, own);
    const isSaid = drift === wanted[DRIFT] && windows === wanted[WINDOWS];
    if (record?.spec.action !== 'Install' || isSaid) return [];
    const value = { ...others, ...wanted };
    return [{ key, at, changes: [{ op: 'add', path: '/metadata/annotations', value }] }];
  });
}

/** How the objects of an add-on were at a time, in seconds since 1970. */
export interface SeenObjects {
  readonly live: LiveState;
  readonly at: number;
}

/** Which objects are restored, for people, or what is reported of them, if anything. */
export function answerTo(
  live: LiveState = { missing: [], changed: [] },
  drift: AgentDrift = 'Warn',
): { readonly restores: string } | Pick<AddonReport, 'reason' | 'message'> {
  if (drift === 'None') return {};
  const restores = returning(live, drift);
  if (restores !== undefined) return { restores };
  const { changed, added = [] } = live;
  if (added.length > 0 && drift === 'Revert')
    return { reason: 'Added', message: `added by others, and stays: ${added.join(', ')}` };
  if (changed.length === 0 || drift === 'Keep') return {};
  return { reason: 'Drift', message: `changed by others: ${changed.join(', ')}` };
}

/** Why the controller restores later, as a folder does: a pause, or maintenance windows; undefined if it does so now. */
export function restoreWaits(
  what: string,
  addon: Pick<FleetAddon, 'paused' | 'rollout'> | undefined,
  { now, windows }: { readonly now: number; readonly windows: Cluster['windows'] },
): Pick<AddonReport, 'reason' | 'message'> | undefined {
  if (addon?.paused === true) return { reason: 'Paused', message: what };
  return windowWaits(what, windowsOf(windows, addon), now);
}

/** Why an agent restores later. */
export function windowWaits(
  what: string,
  windows: Windows,
  now: number,
): Pick<AddonReport, 'reason' | 'message'> | undefined {
  const closed = windows.map((one) => closedWindows(one, now)).find((one) => one !== undefined);
  return closed === undefined ? undefined : { reason: 'Window', message: `${what}; ${closed}` };
}
