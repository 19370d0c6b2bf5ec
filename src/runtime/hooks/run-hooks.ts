/** The hook actions of a plan: which functions exist, in which shell they run, what happens when one fails. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError, fileError } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { INSTALL_SH, nodePath } from '../../core/layout.ts';
import { adoptCarried, lookUpFunctions, runHook } from './hook.ts';
import type { HookOutcome, HookShell } from './hook-process.ts';
import type { Hook } from './hooks.ts';
import type { Journal } from '../run/journal.ts';
import { endOfLog } from './log-tail.ts';
import type { Ask } from './questions.ts';
import type { PlannedAction, PlannedAddon } from '../run/run-plan.ts';

export type HookAction = Extract<PlannedAction, { kind: 'hook' }>;

export interface HookRun {
  readonly shell: HookShell;
  readonly journal: Journal;
  /** Attempts of earlier runs that did not finish, by id of the action. */
  readonly attempts: ReadonlyMap<string, number>;
  readonly report: Report;
  readonly ask?: Ask | undefined;
  readonly signal: AbortSignal;
}

const LOOK_UP = 'look-up';

/** Reads every install.sh once, so that none with a mistake is met in the middle of a run, and lists the functions. */
export async function lookUp({ shell, journal, report, signal }: HookRun): Promise<ReadonlySet<string>> {
  if (shell.installScripts.length === 0) return new Set();
  await journal.append({ type: 'started', action: LOOK_UP, attempt: 1 });
  const found = await lookUpFunctions(shell, { report, signal });
  await journal.append({ type: 'done', action: LOOK_UP, outcome: 'read' });
  return found;
}

/** Runs one hook between two entries of the journal. Returns what it told the operator: an outro, all that it printed. */
export async function runHookAction(action: HookAction, addon: PlannedAddon, run: HookRun): Promise<string> {
  const { shell, journal, report, ask, signal } = run;
  const attempt = (run.attempts.get(action.id) ?? 0) + 1;
  if (action.hook === 'install' || action.hook === 'join') {
    await emptyFolder(shell.place.directory, nodePath.kustomize(action.addon));
  }
  await journal.append({ type: 'started', action: action.id, attempt });
  const own =
    action.hook === 'install' ? join(shell.place.directory, nodePath.addon(addon.ref), INSTALL_SH) : undefined;
  const toldAtEnd = action.hook === 'outro';
  const limitMs = action.limit === undefined ? undefined : action.limit * 1000;
  const { addon: name, function: called, words } = action;
  const request = { addon: name, function: called, words, own, attempt, toldAtEnd, limitMs };
  const outcome = await reportStep(
    report,
    { id: action.id, title: title(action, addon) },
    async () => runHook(shell, request, { report, ask, signal }),
    () => 'done',
  );
  reportLeftOvers(report, action, outcome);
  await journal.append({ type: 'done', action: action.id, outcome: 'done', carried: outcome.carried });
  await adoptCarried(shell);
  return toldAtEnd ? endOfLog(outcome.log) : '';
}

/** Where no other words say more, those of `curlew logs ADDON HOOK`. */
const TITLES: Readonly<Record<Hook, string>> = {
  pre_init: 'pre_init',
  install: 'install',
  already_applied: 'check what is applied already',
  join: 'join',
  upgrade: 'upgrade this node',
  around: 'take part in kubernetes',
  post_init: 'post_init',
  outro: 'outro',
  pre_remove: 'remove from the cluster',
  leave: 'leave the cluster',
  uninstall: 'remove from this node',
};

function title({ hook }: HookAction, { ref }: PlannedAddon): string {
  return `${ref.name} ${ref.version}: ${TITLES[hook]}`;
}

/** Patches of kubeadm's configuration, which add-ons put there before Kubernetes is installed or joined. */
const PATCHES = ['kubeadm/init-patches', 'kubeadm/join-patches'];

/** As kURL does before the first hook of a run (its setup_kubeadm_kustomize). */
export async function emptyPatches(directory: string): Promise<void> {
  for (const name of PATCHES) await emptyFolder(directory, nodePath.kustomize(name));
}

async function emptyFolder(directory: string, below: string): Promise<void> {
  const folder = join(directory, below);
  try {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true, mode: 0o755 });
  } catch (error) {
    throw fileError(`empty ${folder}`, error);
  }
}

function reportLeftOvers(report: Report, { addon, function: name }: HookAction, { ended, daemons }: HookOutcome): void {
  if (ended.length > 0) {
    const text = `${addon}: ${name} left processes behind, which were ended: ${[...new Set(ended)].join(', ')}`;
    report({ type: 'note', level: 'warning', text });
  }
  if (daemons.length > 0) {
    const text = `${addon}: ${name} started what goes on running: ${[...new Set(daemons)].join(', ')}`;
    report({ type: 'note', level: 'info', text });
  }
}

/** How an add-on that is applied already came out: undefined when that is so, or why it has to be installed after all. */
export async function checkApplied(action: HookAction, addon: PlannedAddon, run: HookRun): Promise<string | undefined> {
  try {
    await runHookAction(action, addon, run);
    return undefined;
  } catch (error) {
    if (!(error instanceof CurlewError) || error.code !== 'HOOK_FAILED') throw error;
    const [because = ''] = error.message.split('\n');
    await run.journal.append({ type: 'failed', action: action.id, message: because });
    run.report({ type: 'note', level: 'warning', text: `${because}; it is installed again` });
    return because;
  }
}
