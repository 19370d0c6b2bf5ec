/** Earlier runs on an install folder, read from their journals. Changes nothing and takes no lock. */
import { CurlewError, errnoOf } from '../../core/errors.ts';
import type { HookKind } from '../plan/hooks.ts';
import type { JournalEntry } from '../journal/journal.ts';
import { runInProgress } from '../node/lock.ts';
import { readRecords } from '../node/records.ts';
import type { Records } from '../plan/records.ts';
import { readRunJournal, runsOf } from '../prepare/run-folder.ts';
import { runName, type PlannedAction, type RunName, type RunPlan } from '../plan/run-plan.ts';

/** `interrupted`: it has not ended and is not running. */
export type RunState = 'finished' | 'failed' | 'cancelled' | 'at work' | 'interrupted';

/**
 * The state of an action. `not reached` also if the run ended before it; `not defined` for a hook that install.sh does not
 * define.
 */
export type ActionState = 'done' | 'failed' | 'begun' | 'not reached' | 'not defined';

export interface ActionHistory {
  readonly id: string;
  readonly kind: PlannedAction['kind'];
  readonly addon: string;
  readonly because: string;
  /** The function that is called, and its hook; undefined for actions that are not hooks. */
  readonly function: string | undefined;
  readonly hook: HookKind | undefined;
  readonly state: ActionState;
  /** Outcome or error message from the journal. */
  readonly outcome: string | undefined;
}

export interface RunHistory {
  readonly run: string;
  readonly kind: RunName | undefined;
  /** ISO 8601. */
  readonly began: string | undefined;
  /** ISO 8601; undefined if it has not ended. */
  readonly ended: string | undefined;
  readonly state: RunState;
  /** The error message. */
  readonly message: string | undefined;
  /** Actions in the order of the run. */
  readonly actions: readonly ActionHistory[];
  readonly plan: RunPlan | undefined;
}

/** Records and runs of an install folder. */
export interface NodeHistory {
  readonly records: Records;
  /** Process ID of the run in progress. */
  readonly busy: number | undefined;
  /** IDs, latest first. */
  readonly runs: readonly string[];
}

/** Empty if the folder does not exist. `FILE_UNUSABLE` if this user cannot read it or the records are damaged. */
export async function readHistory(directory: string): Promise<NodeHistory> {
  return readable(directory, async () => {
    const records = await readRecords(directory);
    return { records, busy: await runInProgress(directory), runs: await runsOf(directory) };
  });
}

/** Adds a hint to errors about files that only root can read. */
export async function readable<Result>(directory: string, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    const errno = errnoOf(error instanceof CurlewError ? error.cause : error);
    if (errno !== 'EACCES' && errno !== 'EPERM') throw error;
    throw new CurlewError('FILE_UNUSABLE', `cannot read ${directory}: permission denied`, {
      hint: 'run the command as root',
      cause: error,
    });
  }
}

/** One run; `busy` is true if a run is in progress. `FILE_UNUSABLE` if the journal is damaged. */
export async function readRun(
  directory: string,
  run: string,
  { busy }: { readonly busy: boolean },
): Promise<RunHistory> {
  const entries = await readable(directory, async () => readRunJournal(directory, run));
  return historyOf(run, entries, { busy });
}

function historyOf(
  run: string,
  entries: readonly JournalEntry<RunPlan>[],
  { busy }: { readonly busy: boolean },
): RunHistory {
  const plan = entries.find((entry) => entry.type === 'planned')?.plan;
  const end = entries.findLast((entry) => entry.type === 'ended');
  const open = busy ? 'at work' : 'interrupted';
  return {
    run,
    kind: plan === undefined ? undefined : runName(plan),
    began: entries[0]?.at,
    ended: end?.at,
    state: end?.outcome ?? open,
    message: end?.message,
    actions: actionsOf(plan?.actions ?? [], entries, end?.outcome ?? open),
    plan,
  };
}

/** A hook without an entry before one with an entry was passed over: a run goes through them in order. */
function actionsOf(
  planned: readonly PlannedAction[],
  entries: readonly JournalEntry<RunPlan>[],
  run: RunState,
): readonly ActionHistory[] {
  const actions = planned.map((action) => actionOf(action, entries, run));
  const reached = actions.findLastIndex(({ state }) => state !== 'not reached');
  return actions.map((one, at) =>
    at < reached && one.kind === 'hook' && one.state === 'not reached' ? { ...one, state: 'not defined' } : one,
  );
}

function actionOf(action: PlannedAction, entries: readonly JournalEntry<RunPlan>[], run: RunState): ActionHistory {
  const { id, kind, addon, because } = action;
  const own = entries.filter((entry) => 'action' in entry && entry.action === id);
  const last = own.at(-1);
  const called =
    action.kind === 'hook'
      ? { function: action.function, hook: action.hook }
      : { function: undefined, hook: undefined };
  const common = { id, kind, addon, because, ...called };
  if (last?.type === 'done') return { ...common, state: 'done', outcome: last.outcome };
  if (last?.type === 'failed') return { ...common, state: 'failed', outcome: last.message };
  if (last === undefined) {
    const state = run === 'finished' && kind === 'hook' ? 'not defined' : 'not reached';
    return { ...common, state, outcome: undefined };
  }
  return { ...common, state: run === 'at work' ? 'begun' : 'failed', outcome: undefined };
}
