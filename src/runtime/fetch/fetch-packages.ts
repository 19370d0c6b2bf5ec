/** The fetch phase of a run: the packages that are not on this machine, several at once. */
import { eachLimited } from '../../platform/limit/each.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { formatRef } from '../../core/ref.ts';
import type { Journal } from '../journal/journal.ts';
import type { NodePlace } from '../node/node-place.ts';
import type { SourcePackage } from '../node/source.ts';
import { openFetchFolder } from './remote-package.ts';
import type { RunPlan } from '../plan/run-plan.ts';

export interface FetchPhase {
  readonly place: NodePlace;
  /** By their labels in the actions of the plan. */
  readonly packages: readonly { readonly label: string; readonly source: SourcePackage }[];
  readonly journal: Journal;
  readonly report: Report;
  readonly signal: AbortSignal;
}

const AT_ONCE = 4;

/** Fetches the packages of the plan; one that an earlier run has fetched completely is not requested again. */
export async function fetchPackages(plan: RunPlan, phase: FetchPhase): Promise<void> {
  const { journal, report, signal } = phase;
  const { directory } = phase.place;
  const actions = plan.actions.flatMap(({ kind, id, addon }) => {
    const source = phase.packages.find(({ label }) => label === addon)?.source;
    return kind === 'fetch' && source?.remote !== undefined ? [{ id, source, remote: source.remote }] : [];
  });
  if (actions.length === 0) return;
  await openFetchFolder(
    directory,
    actions.map(({ source }) => source),
  );
  await eachLimited(
    actions,
    async ({ id, source, remote }, within) => {
      await journal.append({ type: 'started', action: id, attempt: 1 });
      const onBytes = (bytes: number): void => report({ type: 'step-progress', id, bytes });
      const outcome = await reportStep(
        report,
        { id, title: `fetch ${formatRef(source.ref)}`, bytes: remote.size },
        async () => remote.fetch(directory, { onBytes, report, signal: within.signal }),
        (how) => how,
      );
      await journal.append({ type: 'done', action: id, outcome });
    },
    { width: AT_ONCE, signal },
  );
}
