/** The result of `install`, `join` and `upgrade`. Pure. */
import type { DryRun } from '../runtime/run/dry-run.ts';
import { stayingAddons, type StayingAddon } from '../runtime/plan/plan.ts';
import type { RunView } from '../runtime/prepare/request.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { NotCurrent } from '../ship/release/signed-release.ts';
import type { NodeUpgrade } from '../machine/run/upgrade.ts';
import type { InstallSource } from '../steps/sources/install-source.ts';

/** The result of a run or a dry run. */
export type NodeResult = (RunResult | DryRun) & {
  /** Add-ons that stay installed although they are no longer in the spec; absent if there are none. */
  readonly stays?: readonly StayingAddon[] | undefined;
  /** Set if the named release is not the current one of the store. */
  readonly notCurrent?: NotCurrent | undefined;
  /** The part of a dry run about an upgrade of Kubernetes or its container runtime on this node; absent without one. */
  readonly upgrade?: Pick<NodeUpgrade, 'node' | 'steps'> | undefined;
  /** The next steps after such an upgrade. */
  readonly next?: string | undefined;
};

/** The parts of a result besides the run. */
export function extrasOf(
  { records, plan }: Pick<RunView, 'records' | 'plan'>,
  { notCurrent }: InstallSource,
): Pick<NodeResult, 'stays' | 'notCurrent'> {
  const about = plan.addons.map(({ ref }) => ref.name);
  const stays = stayingAddons(about, records);
  return { ...(stays.length > 0 && { stays }), ...(notCurrent !== undefined && { notCurrent }) };
}
