/** Earlier runs on an install folder, as their journals tell them. Nothing is changed, no lock is taken. */
import { join } from 'node:path';
import { CurlewError, errnoOf } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import type { Hook } from '../hooks/hooks.ts';
import { readJournal, type JournalEntry } from './journal.ts';
import { lockOwner } from './lock.ts';
import { readRecords, type Records } from '../node/records.ts';
import { runsOf } from './run-folder.ts';
import type { PlannedAction, RunKind, RunPlan } from './run-plan.ts';

/** `interrupted`: it neither came to an end nor is it at work. */
export type RunState = 'finished' | 'failed' | 'cancelled' | 'at work' | 'interrupted';

/**
 * How far an action came; `not reached` also when the run ended before it, `not defined` for a hook that the install.sh of a
 * finished run does not have.
 */
export type ActionState = 'done' | 'failed' | 'begun' | 'not reached' | 'not defined';

export interface ActionHistory {
  readonly id: string;
  readonly kind: PlannedAction['kind'];
  readonly addon: string;
  readonly because: string;
  /** What is called and which of the hooks that is; undefined for what is no hook. */
  readonly function: string | undefined;
  readonly hook: Hook | undefined;
  readonly state: ActionState;
  /** What the journal says of its end. */
  readonly outcome: string | undefined;
}

export interface RunHistory {
  readonly run: string;
  readonly kind: RunKind | undefined;
  /** ISO 8601. */
  readonly began: string | undefined;
  /** ISO 8601; undefined when it came to no end. */
  readonly ended: string | undefined;
  readonly state: RunState;
  /** What went wrong. */
  readonly message: string | undefined;
  /** In the order of the run. */
  readonly actions: readonly ActionHistory[];
  readonly plan: RunPlan | undefined;
}

/** What an install folder says of itself. */
export interface NodeHistory {
  readonly records: Records;
  /** Process id of the run that is at work. */
  readonly busy: number | undefined;
  /** Ids, the latest first. */
  readonly runs: readonly string[];
}

/** A folder that is not there has no history. One that this user may not read is `FILE_UNUSABLE`, as damaged records are. */
export async function readHistory(directory: string): Promise<NodeHistory> {
  return readable(directory, async () => {
    const records = await readRecords(directory);
    return { records, busy: await lockOwner(directory), runs: await runsOf(directory) };
  });
}

/** Says what to do about files that only root may read. */
export async function readable<Result>(directory: string, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    const errno = errnoOf(error instanceof CurlewError ? error.cause : error);
    if (errno !== 'EACCES' && errno !== 'EPERM') throw error;
    throw new CurlewError('FILE_UNUSABLE', `read ${directory}: this user may not`, {
      hint: 'run it as root',
      cause: error,
    });
  }
}

/** One run; `busy` says whether some run is at work. A damaged journal is `FILE_UNUSABLE`. */
export async function readRun(
  directory: string,
  run: string,
  { busy }: { readonly busy: boolean },
): Promise<RunHistory> {
  const entries = await readable(directory, async () => readJournal(join(directory, nodePath.journal(run))));
  return historyOf(run, entries, { busy });
}

/** Pure. */
function historyOf(run: string, entries: readonly JournalEntry[], { busy }: { readonly busy: boolean }): RunHistory {
  const plan = entries.find((entry) => entry.type === 'planned')?.plan;
  const end = entries.findLast((entry) => entry.type === 'ended');
  const open = busy ? 'at work' : 'interrupted';
  return {
    run,
    kind: plan?.kind,
    began: entries[0]?.at,
    ended: end?.at,
    state: end?.outcome ?? open,
    message: end?.message,
    actions: (plan?.actions ?? []).map((action) => actionOf(action, entries, end?.outcome ?? open)),
    plan,
  };
}

function actionOf(action: PlannedAction, entries: readonly JournalEntry[], run: RunState): ActionHistory {
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
