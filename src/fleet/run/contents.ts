/** What the jobs of a pass deliver. Pure. */
import { driftOn } from '../fleet.ts';
import { deliverable, type Deliverable, type Job } from '../pass.ts';
import type { FleetState, StateRevision } from '../state.ts';
import type { ObservedFleet } from './observed-fleet.ts';

/** Undefined for content that is not known any more. */
export type Contents = (job: Job) => Deliverable | undefined;

/** From the files, or from what the state keeps of earlier ones. */
export function contentsOf(
  { fleet, observed }: Pick<ObservedFleet, 'fleet' | 'observed'>,
  state: FleetState,
  revisions: ReadonlyMap<string, StateRevision>,
): Contents {
  const clusters = new Map(observed.clusters.map((one) => [one.name, one]));
  return (job) => {
    const seen = clusters.get(job.cluster);
    const now = revisions.get(job.addon);
    const candidates = [...(now ? [now] : []), ...(state.addons[job.addon]?.kept ?? [])];
    const content = seen && deliverable(job.hash, seen, candidates);
    const present = fleet.addons.find((one) => one.name === job.addon);
    const { access: logins } = present ?? {};
    // What becomes of changes by others is no content: an earlier one follows what is written now.
    const drift = present && driftOn(present, fleet, seen?.kubernetes ?? '');
    const entry = content && { ...content.entry, ...(drift && { drift }) };
    return content && entry && { ...content, entry, ...(logins && { access: logins }) };
  };
}
