/** What becomes of objects that others have deleted or changed, where an agent or the controller looks at them. Pure. */
import { DRIFTS } from '../../cluster/channel/channel.ts';
import type { LiveState } from '../../cluster/channel/pass.ts';
import { returning } from '../drift.ts';
import type { Cluster, FleetAddon } from '../rollout/fleet.ts';
import { closedWindows } from '../rollout/windows.ts';
import type { AddonReport } from './addon-status.ts';
import type { HubAddon, HubCluster, HubClusterAddon, Version } from './observe.ts';

/** Annotation by which the controller says to an agent what it does. It is no part of a revision: it changes no content. */
const DRIFT = 'fleet.curlew.dev/drift';
/** `None`: objects are not looked at. */
export const AGENT_DRIFTS = [...DRIFTS, 'None'] as const;
export type AgentDrift = (typeof AGENT_DRIFTS)[number];

/** What the annotations of a ClusterAddon say. A controller of an earlier version says nothing. */
export function driftIn(annotations: Readonly<Record<string, string>>): AgentDrift | undefined {
  const { [DRIFT]: written } = annotations;
  return AGENT_DRIFTS.find((one) => one === written);
}

/** What an agent does about an add-on on its cluster. What is paused, or installed once, is left alone. */
function driftFor({ addon, drift = 'Warn' }: Pick<HubAddon, 'addon' | 'drift'>, { paused }: Cluster): AgentDrift {
  return paused === true || addon.paused === true || addon.mode === 'InstallOnce' ? 'None' : drift;
}

/** With which annotations a ClusterAddon is created, if an agent delivers it. */
export function firstAnnotations(from: HubAddon | undefined, own: HubCluster | undefined): object {
  if (from === undefined || own === undefined || own.secret !== undefined) return {};
  return { annotations: { [DRIFT]: driftFor(from, own.cluster) } };
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
    const wanted = driftFor(from, own.cluster);
    if (record?.spec.action !== 'Install' || driftIn(annotations) === wanted) return [];
    const value = { ...annotations, [DRIFT]: wanted };
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
  const closed = closedWindows(windows, now) ?? closedWindows(addon?.rollout?.windows, now);
  return closed === undefined ? undefined : { reason: 'Window', message: `${what}; ${closed}` };
}
