/** Rolls an add-on back to its state before the last change. */
import type { Reporting } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { readRecords } from '../node/records.ts';
import { isFinal, NO_DOWNGRADE, rollbackTarget, recordOf } from '../plan/records.ts';
import { openPrevious } from './former-states.ts';
import type { RunRequest } from './request.ts';

interface RollbackOptions extends Reporting {
  /** True if the last run was this same rollback and did not end: it may have died after its last record. */
  readonly isAgain: () => Promise<boolean>;
}

type RollbackRequest = Pick<
  RunRequest,
  'kind' | 'isRollback' | 'packages' | 'variables' | 'reapply' | 'allowDowngrade' | 'keepsPrevious'
>;

/**
 * A request that installs the package and the settings of this add-on before its last change. `NOT_FOUND` if the add-on is not
 * installed, had no former state, or that is no longer available. `UNSUPPORTED` for a finished upgrade of Kubernetes.
 */
export async function rollbackRequest(
  directory: string,
  name: string,
  { isAgain, report, signal }: RollbackOptions,
): Promise<RollbackRequest> {
  const records = await readRecords(directory);
  const record = recordOf(records.applied, name);
  if (record === undefined) {
    const near = nearest(name, Object.keys(records.applied));
    throw refused(
      name,
      'it is not installed',
      near === undefined ? 'curlew status lists installed add-ons' : `did you mean "${near}"?`,
    );
  }
  const wasRolledBack = record.finished && record.run === records.lastRun && (await isAgain());
  if (isFinal(name, record) && !wasRolledBack) {
    throw new CurlewError('UNSUPPORTED', `cannot roll ${name} back: ${NO_DOWNGRADE}`, {
      hint: 'restore etcd from a backup of the former version, or upgrade to a newer one',
    });
  }
  const { digest } = record;
  const done = wasRolledBack && digest !== undefined ? { ...record, digest } : undefined;
  const previous = done ?? rollbackTarget(name, record);
  if (previous === undefined) {
    if (record.finished) {
      const hint = `to install an older version: curlew install --bundle FILE --allow-downgrade, with a bundle that has it; curlew uninstall ${name} removes it`;
      throw refused(name, 'it was installed only once, or its state before the last change was not kept', hint);
    }
    const hint = `curlew resume continues that run; curlew uninstall ${name} removes what that run installed`;
    throw refused(name, 'it was not installed before the unfinished run', hint);
  }
  const { source, asked } = await openPrevious(directory, name, previous, { ...records, report, signal });
  return {
    // A node that joined must not run install hooks: the primary applies add-ons to the cluster.
    kind: record.by === 'join' ? 'upgrade' : 'install',
    isRollback: true,
    keepsPrevious: false,
    packages: [{ source, settings: asked.settings[name] ?? {} }],
    variables: asked.variables,
    reapply: true,
    allowDowngrade: true,
  };
}

function refused(name: string, why: string, hint: string): CurlewError {
  return new CurlewError('NOT_FOUND', `cannot roll ${name} back: ${why}`, { hint });
}
