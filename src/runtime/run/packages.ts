/** The phases that bring packages onto the node. */
import { rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { reportStep } from '../../core/events.ts';
import { nodePath } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { recordPlaced } from '../node/placed-package.ts';
import { clearStaging, renameIntoPlace, stagePackage } from '../node/put-in-place.ts';
import type { SourcePackage } from '../node/source.ts';
import { actionId } from '../plan/action-id.ts';
import type { PlannedAction } from '../plan/run-plan.ts';
import { isRollbackTarget } from './former-packages.ts';
import type { Run } from './run.ts';

const FETCHES_AT_ONCE = 4;

/** The package of an action, by its label. */
export function sourceOf({ sources }: Pick<Run, 'sources'>, label: string): SourcePackage {
  const entry = sources.find((one) => one.label === label);
  if (entry === undefined) throw new Error(`not a package of this run: ${label}`);
  return entry.source;
}

/** Fetches the packages that are not on this machine; one that an earlier run has fetched completely is not requested again. */
export async function fetchPackages(run: Run): Promise<void> {
  const { plan, directory, journal, report, signal } = run;
  const actions = plan.actions.flatMap(({ kind, id, addon }) => {
    const source = kind === 'fetch' ? sourceOf(run, addon) : undefined;
    return source?.remote === undefined ? [] : [{ id, source, remote: source.remote }];
  });
  if (actions.length === 0) return;
  const { openFetchFolder } = await import('../node/remote-package.ts');
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
    { width: FETCHES_AT_ONCE, signal },
  );
}

export async function extractPackages(run: Run): Promise<void> {
  for (const action of run.plan.actions) if (action.kind === 'extract') await extract(action, run);
  // An earlier run may have left it.
  await rmdir(join(run.directory, nodePath.fetched)).catch(() => undefined);
}

async function extract({ id, addon }: PlannedAction, run: Run): Promise<void> {
  const { directory, folder, journal, changes, report, signal } = run;
  const source = sourceOf(run, addon);
  const { tree, name, version } = source.ref;
  const bytes = source.files.reduce((sum, { size }) => sum + size, 0);
  await journal.append({ type: 'started', action: id, attempt: 1 });
  await reportStep(
    report,
    { id, title: `extract ${formatRef(source.ref)}`, bytes },
    async () => {
      await stagePackage(source, { directory, run: folder.run, signal });
      await journal.append({ type: 'done', action: actionId('stage', formatRef(source.ref)), outcome: 'staged' });
      await changes.forgetExtracted({ tree, name, version });
      const keep = await isRollbackTarget(source, directory, changes.now);
      await renameIntoPlace(source.ref, { directory, run: folder.run, keep });
      await recordPlaced(directory, source, { signal });
      const whole = { tree, name, version, digest: source.addon.digest };
      await changes.extracted(source.omitted.length === 0 ? whole : { ...whole, omitted: source.omitted });
    },
    () => 'extracted',
  );
  await journal.append({ type: 'done', action: id, outcome: 'extracted' });
  // Fails if the bundle was unpacked on a read-only disk; it stays as it is.
  await source.discard?.().catch(() => undefined);
  await clearStaging(directory);
}
