/** `--since`: of a planned bundle only what a place lacks. */
import { resolve } from 'node:path';
import { planDelta } from '../bundle/delta/delta-plan.ts';
import { INVENTORY_LIMIT, parseInventory } from '../bundle/delta/inventory.ts';
import type { BundlePlan } from '../bundle/plan.ts';
import { CurlewError } from '../core/errors.ts';
import { readLimited } from '../platform/files/read-limited.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { toolVersion } from '../app/version.ts';

export const SINCE_OPTION = {
  since: { type: 'string', value: 'INVENTORY', help: 'leave out what that place has: a delta (see curlew inventory)' },
} satisfies OptionSpecs;

/** The plan itself, or the delta from the place of the inventory that the words name. */
export async function sincePlan(
  plan: BundlePlan,
  args: Arguments,
  { cwd, report }: Pick<CommandContext, 'cwd' | 'report'>,
): Promise<BundlePlan> {
  const path = args.text('since');
  if (path === undefined) return plan;
  if (plan.bundle.delta !== undefined) {
    throw new CurlewError('USAGE', 'curlew bundle: the saved plan is one of a delta: --since goes with whole bundles');
  }
  const inventory = parseInventory((await readLimited(resolve(cwd, path), INVENTORY_LIMIT)).toString('utf8'), path);
  if (inventory.tool !== toolVersion()) {
    report({ type: 'note', level: 'info', text: `${path}: made by curlew ${inventory.tool}` });
  }
  return planDelta(plan, inventory);
}
