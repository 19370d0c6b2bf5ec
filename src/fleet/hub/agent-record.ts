/** What an agent keeps of the add-ons of its cluster. Pure. */
import * as v from 'valibot';
import type { LiveState } from '../../cluster/channel/pass.ts';
import { byKey, readJson, type Bad, type Read } from '../../core/schema.ts';
import { answerTo, UPKEEP, windowWaits, type SeenObjects, type Upkeep } from './changed-by-others.ts';
import type { AddonReport } from './addon-status.ts';
import { HUB_KINDS } from './hub-kinds.ts';

const { spec: SPEC } = HUB_KINDS.ClusterAddon;
export type AgentSpec = Read<typeof SPEC>;

const keptAddon = v.object({
  /** The last one that was obeyed: what is acted on while the hub is away. */
  spec: SPEC,
  state: v.picklist(['Progressing', 'Succeeded', 'Failed', 'Removing', 'TimedOut', 'Skipped']),
  /** Why, in one word, and for people. */
  reason: v.string(),
  message: v.string(),
  /** When the state began, in seconds since 1970, like all times here. */
  since: v.number(),
  tries: v.number(),
  /** When it may be tried again. */
  next: v.number(),
  /** Hashes of contents that were healthy here, the newest first. */
  good: v.array(v.string()),
  /** Objects that a removal has left. */
  orphans: v.array(v.string()),
  /** The version that was healthy last. */
  healthy: v.exactOptional(v.string()),
  /** The package that it has brought onto this node. */
  package: v.exactOptional(v.string()),
  /** The add-on of the fleet that has left its objects to this one. */
  takesOver: v.exactOptional(v.string()),
  ...UPKEEP,
});
export type Kept = Read<typeof keptAddon>;

/** What was healthy here before it was removed. */
const removed = v.object({ hub: v.exactOptional(v.string()), version: v.string() });

const agentRecord = v.object({
  format: v.literal(1),
  addons: byKey(keptAddon),
  /** By the package, or else the add-on; the last ones. */
  removed: v.exactOptional(byKey(removed)),
});
/** What an agent keeps on its disk. */
export type AgentRecord = Read<typeof agentRecord>;
export const NO_RECORD: AgentRecord = { format: 1, addons: {} };

/** `bad` makes the error for what another version has written. */
export function readAgentRecord(text: string, bad: Bad): AgentRecord {
  return readJson(agentRecord, text, { bad });
}

/** What is kept of an add-on. */
export function keptOf({ addons }: AgentRecord, name: string): Kept | undefined {
  // hasOwn: `constructor` is a valid name of an add-on.
  return Object.hasOwn(addons, name) ? addons[name] : undefined;
}

/** What was seen of what is here; what was seen before it was here says nothing about it. */
export function seenSince({ state, spec, since }: Kept, seen: SeenObjects | undefined): LiveState | undefined {
  return state === 'Succeeded' && spec.action === 'Install' && seen && seen.at > since ? seen.live : undefined;
}

/** A controller of an earlier version says nothing: then objects are not looked at. */
export function withUpkeep({ drift: _drift, windows: _windows, ...own }: Kept, said: Upkeep): Kept {
  return { ...own, ...said };
}

/** Does what was seen differ from what is to be here, is that to be restored now, and what is reported of it? */
export function upkeepOf(
  own: Kept,
  seen: SeenObjects | undefined,
  now: number,
): { readonly differs: boolean; readonly isDue: boolean; readonly report: Pick<AddonReport, 'reason' | 'message'> } {
  const answer = answerTo(seenSince(own, seen), own.drift ?? 'None');
  if (!('restores' in answer)) return { differs: false, isDue: false, report: answer };
  const report = windowWaits(answer.restores, own.windows ?? [], now);
  return { differs: true, isDue: report === undefined, report: report ?? {} };
}
