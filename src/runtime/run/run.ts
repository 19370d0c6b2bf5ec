/** A run in progress: what its phases share, and its result. */
import { join } from 'node:path';
import { INSTALL_SH, nodePath } from '../../core/layout.ts';
import { loadBalancerOf } from '../cluster/load-balancer.ts';
import { RunCluster } from '../cluster/run-cluster.ts';
import type { HostChecks } from '../host/host-checks.ts';
import type { HookShell } from '../hooks/hook-process.ts';
import { endOfLog } from '../hooks/log-tail.ts';
import { CLOSED, type Journal } from '../journal/journal.ts';
import { RunRecords } from '../node/run-records.ts';
import { actionId } from '../plan/action-id.ts';
import { withNodeActions } from '../plan/node-actions.ts';
import { recordOf, rollbackTarget } from '../plan/records.ts';
import { hookCall, leftByRemoval } from '../plan/hooks.ts';
import type { PlannedAddon, RunKind, RunPlan } from '../plan/run-plan.ts';
import type { RunView } from '../prepare/request.ts';
import { newRunId, runFolder, runsOf, type RunFolder } from '../prepare/run-folder.ts';
import type { FailedRemoval, RunOptions, RunResult } from './run-result.ts';

export interface Run extends RunView, RunOptions {
  /** The install folder. */
  readonly directory: string;
  readonly folder: RunFolder;
  /** {@link CLOSED} before its first entry. */
  journal: Journal<RunPlan>;
  /** The records of the node, with each change on disk. */
  readonly changes: RunRecords;
  readonly cluster: RunCluster;
  /** The settings that all hooks share. */
  readonly shell: HookShell;
  /** Ids of actions that this run, or the run that it resumes, has done. */
  readonly done: Set<string>;
  /** Undefined if this machine was not checked. */
  checks: HostChecks | undefined;
  /** Functions that the install.sh of the add-ons define. */
  functions: ReadonlySet<string>;
  /** Add-ons whose check failed, and why. */
  readonly refuted: Map<string, string>;
  readonly loaded: string[];
  /** Seconds of the hooks of each add-on. */
  readonly spent: Map<string, number>;
  readonly messages: { readonly addon: string; readonly text: string }[];
  readonly failed: FailedRemoval[];
  /** Names of images that were removed; undefined if that was not requested. */
  removedImages: readonly string[] | undefined;
  /** Start of the run in milliseconds of this process. */
  readonly started: number;
}

/** Changes nothing: its phases do. */
export async function beginRun(view: RunView, options: RunOptions): Promise<Run> {
  const { request, records } = view;
  const plan = withNodeActions(view.plan, options.node);
  const { place, variables, env } = request;
  const { directory } = place;
  const folder = runFolder(directory, newRunId(new Date(), (await runsOf(directory))[0]));
  const changes = new RunRecords(directory, folder.run, records);
  const scripts = plan.addons.filter(({ hasInstallScript }) => hasInstallScript);
  const run: Run = {
    ...view,
    ...options,
    plan,
    started: performance.now(),
    directory,
    folder,
    journal: CLOSED,
    changes,
    cluster: new RunCluster({
      request: request.cluster,
      view: view.view,
      plan,
      run: folder.run,
      directory,
      loadBalancer: loadBalancerOf(variables),
      records: changes,
      once: async (step, perform) => {
        const action = actionId('cluster', step);
        if (run.done.has(action)) return;
        await perform();
        await run.journal.append({ type: 'done', action, outcome: 'done' });
        run.done.add(action);
      },
      ...options,
    }),
    shell: {
      ...folder,
      place,
      folder: folder.path,
      installScripts: scripts.map(({ ref }) => join(directory, nodePath.addon(ref), INSTALL_SH)),
      env,
    },
    done: new Set(plan.continues?.done.map(({ action }) => action)),
    checks: undefined,
    functions: new Set(),
    refuted: new Map(),
    loaded: [],
    spent: new Map(),
    messages: [],
    failed: [],
    removedImages: undefined,
  };
  return run;
}

type Outcome = RunResult['addons'][number]['outcome'];

function outcomeOf(mode: PlannedAddon['mode'], kind: RunKind): Outcome {
  if (mode === 'join') return kind === 'upgrade' ? 'upgraded' : 'joined';
  return mode === 'already applied' ? mode : mode === 'install' ? 'installed' : 'removed';
}

export async function runResultOf(run: Run): Promise<RunResult> {
  const { plan, request, refuted, spent, functions, loaded, removedImages, failed, messages } = run;
  const isDefined = (called: string): boolean => functions.has(called);
  const addons = plan.addons.map(({ ref, mode, because, replaces, hasInstallScript }): RunResult['addons'][number] => {
    const again = refuted.get(ref.name);
    const outcome = again === undefined ? outcomeOf(mode, plan.kind) : 'installed';
    const leftovers = (): string | undefined => leftByRemoval(ref.name, isDefined);
    const leaves = outcome === 'removed' && hasInstallScript ? leftovers() : undefined;
    const idle = mode === 'join' && ![hookCall(ref.name, 'join'), hookCall(ref.name, 'upgrade')].some(isDefined);
    const seconds = spent.get(ref.name);
    const now = recordOf(run.changes.now.applied, ref.name);
    const back = replaces === undefined || now === undefined ? undefined : rollbackTarget(ref.name, now)?.version;
    return {
      name: ref.name,
      version: ref.version,
      outcome,
      because: again ?? (idle ? 'only files and images: it has no hook for this' : because),
      ...(replaces === undefined ? {} : { replaces }),
      ...(back === undefined ? {} : { back }),
      ...(seconds === undefined ? {} : { seconds }),
      ...(leaves === undefined ? {} : { leaves }),
    };
  });
  const removed = removedImages === undefined ? {} : { removed: removedImages };
  return {
    run: run.folder.run,
    addons,
    images: { loaded, skipped: request.skipImages, ...removed },
    messages: [...(await earlierMessages(run)), ...messages],
    ...(failed.length === 0 ? {} : { failed }),
    checks: run.checks?.counts,
    seconds: (performance.now() - run.started) / 1000,
  };
}

/** Messages of outro hooks that the resumed run has done, from their logs. */
async function earlierMessages({ directory, plan }: Run): Promise<RunResult['messages']> {
  const messages: RunResult['messages'][number][] = [];
  for (const { ref } of plan.addons) {
    const name = hookCall(ref.name, 'outro');
    const done = plan.continues?.done.find(({ action }) => action === actionId('hook', name));
    if (done === undefined) continue;
    const text = await endOfLog(join(runFolder(directory, done.run).path, `${name}.log`));
    if (text !== '') messages.push({ addon: ref.name, text });
  }
  return messages;
}
