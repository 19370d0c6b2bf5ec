/** Executes a prepared run, from the checks of the machine to the records of the node. */
import { asError, canceledOr } from '../../core/errors.ts';
import { requireHost } from '../host/host-plan.ts';
import { requireOwnSystem } from '../host/own-system.ts';
import { CLOSED } from '../journal/journal.ts';
import type { RunView } from '../prepare/request.ts';
import { enterCluster, leaveCluster, performActions, prepareHooks, sourceScripts } from './actions.ts';
import { beginJournal, beginFolder, endLastRun, endRun, requirePlanFit, warnOfRollbacks } from './begin.ts';
import { dropFormer, dropOlder } from './former-packages.ts';
import { uncordonOwnNode } from './node-steps.ts';
import { extractPackages, fetchPackages } from './packages.ts';
import { recordFinished, removeFiles, removeImages } from './remove.ts';
import { beginRun, runResultOf, type Run } from './run.ts';
import type { RunOptions, RunResult } from './run-result.ts';

type Phase = (run: Run) => Promise<void>;

/** A run in its order. Phases before {@link beginJournal} leave nothing behind that another run would resume. */
const PHASES: readonly Phase[] = [
  requireOwnSystem,
  requireHost,
  requirePlanFit,
  warnOfRollbacks,
  endLastRun,
  beginFolder,
  beginJournal,
  dropOlder,
  fetchPackages,
  extractPackages,
  sourceScripts,
  prepareHooks,
  enterCluster,
  performActions,
  leaveCluster,
  removeImages,
  uncordonOwnNode,
  dropFormer,
  recordFinished,
  removeFiles,
  endRun,
];

const CONTINUES = 'run the same command again, or curlew resume, to continue';

/** The state that a canceled run has left, and the next step. */
function stateHint({ plan }: Run, reached: Phase): string {
  const hasHooks = plan.continues !== undefined || PHASES.indexOf(reached) >= PHASES.indexOf(performActions);
  return hasHooks ? CONTINUES : `no hook has run yet; packages that are on the node stay: ${CONTINUES}`;
}

/**
 * Executes a run that was prepared. `UNSUPPORTED`, `NO_SPACE`, `PREFLIGHT_FAILED` and a missing container runtime occur before any change, `HOOK_FAILED` if a
 * hook fails. After any error the same call resumes from a consistent state.
 */
export async function execute(view: RunView, options: RunOptions): Promise<RunResult> {
  const run = await beginRun(view, options);
  let reached: Phase = requireOwnSystem;
  try {
    for (const phase of PHASES) {
      reached = phase;
      await phase(run);
    }
    return await runResultOf(run);
  } catch (error) {
    if (run.journal === CLOSED) throw error;
    const outcome = run.signal.aborted ? 'cancelled' : 'failed';
    // The disk may be full: report the first error, not that of the journal.
    const [message = ''] = asError(error).message.split('\n');
    await run.journal.append({ type: 'ended', outcome, message }).catch(() => undefined);
    throw canceledOr(error, run.signal, stateHint(run, reached));
  } finally {
    await run.journal[Symbol.asyncDispose]();
  }
}
