/** Going back to what an add-on was before a run that changed it. */
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { isFinal, NO_DOWNGRADE, readRecords, wayBack } from '../node/records.ts';
import { openKept } from './way-back.ts';
import type { RunRequest } from './request.ts';

interface RollbackOptions {
  /** Whether the last run was this very rollback, and came to no end: it may have died after its last record. */
  readonly isAgain: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

/**
 * What installs the package and the settings that this add-on had before it was changed last. `NOT_FOUND` when there is
 * nothing to go back to: the add-on is not installed, nothing was there before, or it is gone. Kubernetes that was upgraded to
 * the end is `UNSUPPORTED`.
 */
export async function rollbackRequest(
  directory: string,
  name: string,
  { isAgain, signal }: RollbackOptions,
): Promise<Pick<RunRequest, 'kind' | 'packages' | 'variables' | 'reapply' | 'allowDowngrade' | 'keepsPrevious'>> {
  const records = await readRecords(directory);
  const record = Object.hasOwn(records.applied, name) ? records.applied[name] : undefined;
  if (record === undefined) {
    const near = nearest(name, Object.keys(records.applied));
    throw refused(
      name,
      'it is not installed',
      near === undefined ? 'curlew status shows what is' : `did you mean "${near}"?`,
    );
  }
  const wasDone = record.finished && record.run === records.lastRun && (await isAgain());
  if (isFinal(name, record) && !wasDone) {
    throw new CurlewError('UNSUPPORTED', `roll ${name} back: ${NO_DOWNGRADE}`, {
      hint: 'restore etcd from a backup with the former version, or upgrade to a newer one',
    });
  }
  const { digest } = record;
  const done = wasDone && digest !== undefined ? { ...record, digest } : undefined;
  const previous = done ?? wayBack(name, record);
  if (previous === undefined) {
    if (record.finished) {
      throw refused(name, 'what it was before its last change is not kept', 'install the version that you want');
    }
    const hint = `curlew resume continues that run; curlew uninstall ${name} removes what it has installed`;
    throw refused(name, 'it was not installed before the run that did not finish', hint);
  }
  const { source, asked } = await openKept(directory, name, previous, { ...records, signal });
  return {
    // A node that joined runs no install hook: the cluster's part is not its own.
    kind: record.by === 'join' ? 'upgrade' : 'install',
    keepsPrevious: false,
    packages: [{ source, settings: asked.settings[name] ?? {} }],
    variables: asked.variables,
    reapply: true,
    allowDowngrade: true,
  };
}

function refused(name: string, why: string, hint: string): CurlewError {
  return new CurlewError('NOT_FOUND', `roll ${name} back: ${why}`, { hint });
}
