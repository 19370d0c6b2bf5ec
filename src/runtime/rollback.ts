/** Going back to what an add-on was before a run that failed. */
import { CurlewError } from '../core/errors.ts';
import { formatRef } from '../core/ref.ts';
import { readAsked } from './asked.ts';
import { keptPackage } from './kept-package.ts';
import type { RunRequest } from './prepare.ts';
import { readRecords } from './records.ts';

interface RollbackOptions {
  /** Whether the last run was this very rollback, and came to no end: it may have died after its last record. */
  readonly isAgain: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

/**
 * What installs the package and the settings that this add-on had when its last run finished. `NOT_FOUND` when there is
 * nothing to go back to: the add-on is not installed, its last run finished, or what it was before is gone.
 */
export async function rollbackRequest(
  directory: string,
  name: string,
  { isAgain, signal }: RollbackOptions,
): Promise<Pick<RunRequest, 'kind' | 'packages' | 'variables' | 'reapply' | 'allowDowngrade'>> {
  const records = await readRecords(directory);
  const record = Object.hasOwn(records.applied, name) ? records.applied[name] : undefined;
  if (record === undefined) throw refused(name, 'it is not installed', 'curlew status shows what is');
  const wasDone = record.finished && record.run === records.lastRun && (await isAgain());
  if (record.finished && !wasDone) throw refused(name, 'its last run finished', 'install the version that you want');
  const previous = wasDone ? record : record.previous;
  if (previous?.digest === undefined) {
    throw refused(name, 'it was nothing else before its last run', 'curlew resume goes on with that run');
  }
  const known = records.extracted.find((one) => one.name === name && one.version === previous.version);
  const ref = { tree: known?.tree ?? 'addons', name, version: previous.version } as const;
  const asked = await readAsked(directory, previous.run);
  if (asked === undefined) throw refused(name, `the settings of ${formatRef(ref)} are gone`, 'install it again');
  const source = await keptPackage(directory, ref, previous.digest, { signal });
  return {
    kind: 'install',
    packages: [{ source, settings: asked.settings[name] ?? {} }],
    variables: asked.variables,
    reapply: true,
    allowDowngrade: true,
  };
}

function refused(name: string, why: string, hint: string): CurlewError {
  return new CurlewError('NOT_FOUND', `roll ${name} back: ${why}`, { hint });
}
