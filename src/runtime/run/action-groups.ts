/** How the actions of a plan are carried out together. Pure. */
import type { PlannedAction } from './run-plan.ts';

/**
 * What changes the machine: everything is on the node, and verified, before. Loads of images that follow each other are one
 * group, every hook stands alone.
 */
export function changing(actions: readonly PlannedAction[]): readonly (readonly PlannedAction[])[] {
  const groups: PlannedAction[][] = [];
  for (const action of actions) {
    if (action.kind === 'fetch' || action.kind === 'extract') continue;
    const last = groups.at(-1);
    if (action.kind === 'images' && last?.[0]?.kind === 'images') last.push(action);
    else groups.push([action]);
  }
  return groups;
}
