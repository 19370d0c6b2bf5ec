/** Runs one hook of a plan. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError, fileError } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { INSTALL_SH, nodePath } from '../../core/layout.ts';
import { adoptCarried, runHook } from '../hooks/hook.ts';
import type { HookOutcome } from '../hooks/hook-process.ts';
import { endOfLog } from '../hooks/log-tail.ts';
import type { Hook } from '../plan/hooks.ts';
import type { HookAction, PlannedAddon } from '../plan/run-plan.ts';
import type { Run } from './run.ts';

/** Runs one hook and records its start and end in the journal. Returns the message for the operator: the output of an outro. */
export async function runHookAction(action: HookAction, addon: PlannedAddon, run: Run): Promise<string> {
  const { shell, journal, report, last, directory } = run;
  const attempt = (last?.attempts.get(action.id) ?? 0) + 1;
  if (action.hook === 'install' || action.hook === 'join') {
    await emptyFolder(directory, nodePath.kustomize(action.addon));
  }
  await journal.append({ type: 'started', action: action.id, attempt });
  const own = action.hook === 'install' ? join(directory, nodePath.addon(addon.ref), INSTALL_SH) : undefined;
  const returnsOutput = action.hook === 'outro';
  const limitMs = action.limit === undefined ? undefined : action.limit * 1000;
  const { addon: name, function: called, words } = action;
  const request = { addon: name, function: called, args: words, own, attempt, returnsOutput, limitMs };
  const outcome = await reportStep(
    report,
    { id: action.id, title: title(action, addon) },
    async () => runHook(shell, request, run),
    () => 'done',
  );
  reportLeftOvers(report, action, outcome);
  await journal.append({ type: 'done', action: action.id, outcome: 'done', carried: outcome.carried });
  await adoptCarried(shell);
  return returnsOutput ? endOfLog(outcome.log) : '';
}

/** Step titles; hooks without a better title use the name that `curlew logs ADDON HOOK` takes. */
const TITLES: Readonly<Record<Hook, string>> = {
  pre_init: 'pre_init',
  install: 'install',
  already_applied: 'check that it is applied',
  join: 'join',
  upgrade: 'upgrade this node',
  around: 'prepare or finish kubernetes',
  post_init: 'post_init',
  outro: 'outro',
  pre_remove: 'remove from the cluster',
  leave: 'leave the cluster',
  uninstall: 'remove from this node',
};

function title({ hook }: HookAction, { ref }: PlannedAddon): string {
  return `${ref.name} ${ref.version}: ${TITLES[hook]}`;
}

/** Folders where add-ons write patches of kubeadm's configuration before Kubernetes is installed or joined. */
const PATCHES = ['kubeadm/init-patches', 'kubeadm/join-patches'];

/** Empties these folders before the first hook of a run, like kURL's setup_kubeadm_kustomize. */
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
    const names = [...new Set(ended)].join(', ');
    const text = `${addon}: ${name} left processes running, which were terminated: ${names}; a daemon needs systemd-run or setsid`;
    report({ type: 'note', level: 'warning', text });
  }
  if (daemons.length > 0) {
    const text = `${addon}: ${name} started processes that keep running: ${[...new Set(daemons)].join(', ')}`;
    report({ type: 'note', level: 'info', text });
  }
}

/** Runs the `already_applied` hook. Undefined if it succeeds; otherwise the reason to install the add-on again. */
export async function checkApplied(action: HookAction, addon: PlannedAddon, run: Run): Promise<string | undefined> {
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
