/** The phases that change the machine and its cluster: hooks, and images that they need. */
import { offeredRollback, recordOf } from '../plan/records.ts';
import { join } from 'node:path';
import { CurlewError, fileError } from '../../core/errors.ts';
import { INSTALL_SH, nodePath } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import { NO_RUNTIME, noRuntime } from '../host/host-plan.ts';
import { adoptCarried, lookUpFunctions, runHook } from '../hooks/hook.ts';
import { withRollbackHint } from '../hooks/hook-failure.ts';
import { findImageRuntime, runtimeOrder } from '../images/find-runtime.ts';
import { placedFiles } from '../images/folder-files.ts';
import { loadPackages } from '../images/load-packages.ts';
import { packageImages } from '../images/required-images.ts';
import { LOOK_UP, hookActionId, parseActionId } from '../plan/action-id.ts';
import { installAfter } from '../plan/continue-plan.ts';
import { type HookKind, isContainerRuntime } from '../plan/hooks.ts';
import { isRemoved } from '../plan/order.ts';
import type { HookAction, PlannedAction, PlannedAddon } from '../plan/run-plan.ts';
import { whyUnavailable } from '../prepare/former-states.ts';
import { drainOwnNode } from './node-steps.ts';
import { sourceOf } from './packages.ts';
import { survive } from './remove.ts';
import type { Run } from './run.ts';
import { rm } from 'node:fs/promises';
import { type Report, reportStep } from '../../core/events.ts';
import type { HookOutcome } from '../hooks/hook-process.ts';
import { endOfLog } from '../hooks/log-tail.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

/** Sources every install.sh once, so that a broken one fails before any hook runs. */
export async function sourceScripts(run: Run): Promise<void> {
  const { plan, directory, shell, journal } = run;
  const isRemoval = plan.kind === 'uninstall' || plan.kind === 'reset';
  if (!isRemoval && !continuesHooks(run)) await emptyPatches(directory);
  if (shell.installScripts.length === 0) return;
  await journal.append({ type: 'started', action: LOOK_UP, attempt: 1 });
  run.functions = await lookUpFunctions(shell, run);
  await journal.append({ type: 'done', action: LOOK_UP, outcome: 'read' });
}

/** True if this run continues another one whose hooks have begun: the remaining hooks depend on what those did. */
function continuesHooks({ plan, done, last }: Run): boolean {
  if (plan.continues === undefined) return false;
  return [...done, ...(last?.attempts.keys() ?? [])].some((id) => parseActionId(id)?.kind === 'hook');
}

/** Images are loaded before a node stops taking pods. Those that are lost meanwhile are loaded again in their turn. */
export async function prepareHooks(run: Run): Promise<void> {
  const { plan, request, signal, node } = run;
  if (node?.drain === undefined) return;
  const images = plan.actions.filter(({ kind }) => kind === 'images');
  const runtime = await findImageRuntime({ env: request.env, order: runtimeOrder(plan.addons), signal });
  // Cut in the middle of its own upgrade, the runtime comes back with its hook.
  if (images.length > 0 && runtime !== undefined) await loadImages(images, run);
  await drainOwnNode(run);
}

/** The add-ons of the run count as unfinished, on the node and in the cluster. */
export async function enterCluster({ plan, request, changes, cluster, done }: Run): Promise<void> {
  await changes.hooksBegin(plan.addons, request.keepsPrevious !== false);
  await cluster.begin();
  // The resumed run may have died before it recorded its last hook.
  for (const addon of plan.addons) {
    const isDone = (['install', 'already_applied'] as const).some((hook) =>
      done.has(hookActionId(addon.ref.name, hook)),
    );
    if (isDone) await cluster.applied(addon);
  }
}

export async function performActions(run: Run): Promise<void> {
  for (const group of changing(run.plan.actions)) {
    const [first] = group;
    // Before uninstall hooks run on the node: one of them may remove kubernetes.
    if (first?.kind === 'hook' && first.hook === 'uninstall') await leaveCluster(run);
    if (first?.kind === 'hook') await performHook(first, run);
    else await loadImages(group, run);
  }
}

export async function leaveCluster({ cluster, plan }: Run): Promise<void> {
  await cluster.removed(plan.addons);
}

/**
 * The actions that change the machine, after all packages are on the node and verified. Consecutive image loads form one group;
 * each hook is its own group.
 */
function changing(actions: readonly PlannedAction[]): readonly (readonly PlannedAction[])[] {
  const groups: PlannedAction[][] = [];
  for (const action of actions) {
    if (action.kind !== 'images' && action.kind !== 'hook') continue;
    const last = groups.at(-1);
    if (action.kind === 'images' && last?.[0]?.kind === 'images') last.push(action);
    else groups.push([action]);
  }
  return groups;
}

async function performHook(action: HookAction, run: Run): Promise<void> {
  const { plan, functions, changes, cluster, refuted, messages } = run;
  const addon = plan.addons.find(({ ref }) => ref.name === action.addon);
  if (addon === undefined) throw new Error(`not an add-on of this plan: ${action.addon}`);
  run.signal.throwIfAborted();
  const isDefined = functions.has(action.function);
  if (action.hook === 'already_applied') {
    const because =
      (await cluster.whyNotApplied(addon)) ?? (isDefined ? await checkApplied(action, addon, run) : undefined);
    if (because === undefined) {
      await cluster.applied(addon);
      return;
    }
    refuted.set(action.addon, because);
    await performHook(installAfter(action, because), run);
    return;
  }
  // What fails from here on is removed by a reset, too.
  if (action.hook === 'install' || action.hook === 'join') await changes.installing(addon);
  if (action.hook === 'install') await cluster.installing(addon);
  if (isDefined) {
    const text = await runHookAction(action, addon, run).catch(async (error: unknown) =>
      afterFailure(error, addon, action, run),
    );
    if (text !== '') messages.push({ addon: action.addon, text });
  } else if (action.hook === 'install') {
    const text = `${action.addon}: install.sh defines no function ${action.function}; nothing was installed`;
    run.report({ type: 'note', level: 'warning', text });
  }
  if (action.hook === 'install') await cluster.applied(addon);
}

/** Throws, unless the run continues without the hook. */
async function afterFailure(error: unknown, addon: PlannedAddon, action: HookAction, run: Run): Promise<string> {
  if (isRemoved(addon)) return survive(error, action, run);
  throw withRollbackHint(error, action.addon, await rollbackVersion(action.addon, run));
}

/** The version that an add-on can be rolled back to after its hook failed. */
async function rollbackVersion(
  name: string,
  { directory, changes, request, signal }: Run,
): Promise<string | undefined> {
  if (request.keepsPrevious === false) return undefined;
  const { applied, extracted } = changes.now;
  const record = recordOf(applied, name);
  const back = record && offeredRollback(name, record);
  if (back === undefined || signal.aborted) return undefined;
  const lost = await whyUnavailable(directory, name, back, { extracted, signal });
  return lost === undefined ? back.version : undefined;
}

async function loadImages(actions: readonly PlannedAction[], run: Run): Promise<void> {
  const { plan, request, directory, journal, report, signal } = run;
  const runtime = await findImageRuntime({ env: request.env, order: runtimeOrder(plan.addons), signal });
  if (runtime === undefined) {
    const isPlanned = plan.addons.some(({ ref }) => isContainerRuntime(ref));
    throw noRuntime(isPlanned ? 'neither containerd nor docker responds' : NO_RUNTIME);
  }
  const packages = actions.map(({ id, addon }) => {
    const { ref, addon: json, files: listed } = sourceOf(run, addon);
    const files = placedFiles(join(directory, nodePath.addon(ref)), listed);
    return { id, title: formatRef(ref), images: packageImages(files, json) };
  });
  const loaded = await loadPackages(runtime, packages, {
    report,
    signal,
    around: async ({ id }, load) => {
      await journal.append({ type: 'started', action: id, attempt: 1 });
      const result = await load();
      await journal.append({ type: 'done', action: id, outcome: `${result.references.length} loaded` });
      return result;
    },
  });
  run.loaded.push(...loaded.flatMap(({ references }) => references));
}

/** Runs one hook and records its start and end in the journal. Returns the message for the operator: the output of an outro. */
async function runHookAction(action: HookAction, addon: PlannedAddon, run: Run): Promise<string> {
  const { shell, journal, report, last, directory, spent } = run;
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
  const began = performance.now();
  const outcome = await reportStep(
    report,
    { id: action.id, title: title(action, addon) },
    async () => runHook(shell, request, run),
    () => 'done',
  ).finally(() => spent.set(name, (spent.get(name) ?? 0) + (performance.now() - began) / 1000));
  reportLeftOvers(report, action, outcome);
  await journal.append({ type: 'done', action: action.id, outcome: 'done', carried: outcome.carried });
  await adoptCarried(shell);
  return returnsOutput ? endOfLog(outcome.log) : '';
}

/** Step titles; hooks without a better title use the name that `curlew logs ADDON HOOK` takes. */
const TITLES: Readonly<Record<HookKind, string>> = {
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
async function emptyPatches(directory: string): Promise<void> {
  for (const name of PATCHES) await emptyFolder(directory, nodePath.kustomize(name));
}

async function emptyFolder(directory: string, below: string): Promise<void> {
  const folder = join(directory, below);
  try {
    await rm(folder, { recursive: true, force: true });
    await makeMissing(folder, 0o755);
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
async function checkApplied(action: HookAction, addon: PlannedAddon, run: Run): Promise<string | undefined> {
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
