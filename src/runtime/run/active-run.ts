/** A run in progress, action by action: fetch, extract, hooks, images. The journal records the start and the end of each. */
import { join } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { INSTALL_SH, nodePath } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import { loadBalancerOf } from '../cluster/load-balancer.ts';
import { RunCluster } from '../cluster/run-cluster.ts';
import { actionId, hookActionId, parseActionId } from '../plan/action-id.ts';
import { installAfter } from '../plan/continue-plan.ts';
import { fetchPackages } from '../fetch/fetch-packages.ts';
import { closeFetchFolder } from '../fetch/remote-package.ts';
import { dropFormer, dropOlder, type FormerParts, isRollbackTarget } from '../node/former-packages.ts';
import { withRollbackHint } from '../hooks/hook-failure.ts';
import { type Hook, hookFunction, isContainerRuntime, leftByRemoval } from '../plan/hooks.ts';
import { NO_RUNTIME } from '../host/host-plan.ts';
import { findImageRuntime, runtimeOrder } from '../images/find-runtime.ts';
import { placedFiles } from '../images/folder-files.ts';
import { loadPackages } from '../images/load-packages.ts';
import { packageImages } from '../images/required.ts';
import type { Journal } from '../journal/journal.ts';
import { endOfLog } from '../hooks/log-tail.ts';
import { isRemoved } from '../plan/order.ts';
import type { PreparedRun } from '../prepare/prepare.ts';
import { recordPlaced } from '../node/placed-package.ts';
import { RunRemoval } from './run-removal.ts';
import { clearStaging, renameIntoPlace, stagePackage } from '../node/put-in-place.ts';
import { pruneRuns, runFolder, type RunFolder } from '../prepare/run-folder.ts';
import {
  checkApplied,
  emptyPatches,
  type HookAction,
  type HookRun,
  lookUp,
  runHookAction,
} from '../hooks/run-hooks.ts';
import { RunRecords } from '../node/run-records.ts';
import type { SourcePackage } from '../node/source.ts';
import { whyUnavailable } from '../prepare/rollback-targets.ts';
import type { RunOptions, RunResult } from './run-result.ts';
import type { PlannedAction, PlannedAddon, RunKind, RunPlan } from '../plan/run-plan.ts';

interface RunParts {
  readonly prepared: PreparedRun;
  readonly options: RunOptions;
  readonly plan: RunPlan;
  readonly folder: RunFolder;
  readonly journal: Journal<RunPlan>;
}

type Outcome = RunResult['addons'][number]['outcome'];

function outcomeOf(mode: PlannedAddon['mode'], kind: RunKind): Outcome {
  if (mode === 'join') return kind === 'upgrade' ? 'upgraded' : 'joined';
  return mode === 'already applied' ? mode : mode === 'install' ? 'installed' : 'removed';
}

/** The state of a run in progress. */
export class ActiveRun {
  readonly #parts: RunParts;
  readonly #hooks: HookRun;
  readonly #records: RunRecords;
  readonly #cluster: RunCluster;
  readonly #former: FormerParts;
  readonly #because = new Map<string, string>();
  readonly #loaded: string[] = [];
  readonly #messages: { readonly addon: string; readonly text: string }[] = [];
  readonly #removal: RunRemoval;
  /** Ids of actions that this run, or the run that it resumes, has done. */
  readonly #done: Set<string>;

  constructor(parts: RunParts) {
    const { prepared, options, plan, folder, journal } = parts;
    const { request, records, last } = prepared;
    const { directory } = request.place;
    const scripts = plan.addons.filter(({ hasInstallScript }) => hasInstallScript);
    this.#parts = parts;
    this.#records = new RunRecords(directory, folder.run, records);
    this.#former = {
      directory,
      plan,
      run: folder.run,
      steps: prepared.companions.flatMap(({ isStep, ref }) => (isStep ? [ref] : [])),
      keepsPrevious: request.keepsPrevious !== false,
      records: this.#records,
    };
    const { cluster } = request;
    const { view } = prepared;
    this.#cluster = new RunCluster({
      request: cluster,
      view,
      plan,
      run: folder.run,
      directory,
      loadBalancer: loadBalancerOf(request.variables),
      records: this.#records,
      once: async (step, perform) => this.#once(actionId('cluster', step), perform),
      ...options,
    });
    this.#removal = new RunRemoval({ prepared, plan, journal, records: this.#records, ...options });
    this.#done = new Set(plan.continues?.done.map(({ action }) => action));
    this.#hooks = {
      shell: {
        place: request.place,
        run: folder.run,
        folder: folder.path,
        exchange: folder.exchange,
        scripts: folder.scripts,
        settings: folder.settings,
        carried: folder.carried,
        installScripts: scripts.map(({ ref }) => join(directory, nodePath.addon(ref), INSTALL_SH)),
        env: request.env,
      },
      journal,
      attempts: last?.attempts ?? new Map(),
      ...options,
    };
  }

  async execute(): Promise<Omit<RunResult, 'run' | 'checks' | 'seconds'>> {
    const { prepared, options, plan, folder, journal } = this.#parts;
    const { last, fingerprint, carried } = prepared;
    const earlier = [...(last?.attempts ?? [])];
    await journal.append({ type: 'planned', plan, earlier, ...fingerprint, carried: carried?.digest });
    await this.#records.begin();
    await pruneRuns(prepared.request.place.directory, this.#records.now, folder.run);
    await dropOlder(this.#former);
    const { place } = prepared.request;
    await fetchPackages(plan, { place, packages: this.#sources(), journal, ...options });
    for (const action of plan.actions) if (action.kind === 'extract') await this.#extract(action);
    await closeFetchFolder(prepared.request.place.directory);
    const isRemoval = plan.kind === 'uninstall' || plan.kind === 'reset';
    if (!isRemoval && !this.#continuesHooks()) await emptyPatches(prepared.request.place.directory);
    const functions = await lookUp(this.#hooks);
    await this.#records.hooksBegin(plan.addons, prepared.request.keepsPrevious !== false);
    await this.#cluster.begin();
    await this.#noteDone();
    for (const group of changing(plan.actions)) {
      const [first] = group;
      // Before uninstall hooks run on the node: one of them may remove kubernetes.
      if (first?.kind === 'hook' && first.hook === 'uninstall') await this.#cluster.removed(plan.addons);
      if (first?.kind === 'hook') await this.#hook(first, functions);
      else await this.#loadAll(group);
    }
    await this.#cluster.removed(plan.addons);
    const removed = await this.#removal.removeImages();
    await this.#finish();
    await journal.append({ type: 'ended', outcome: 'finished' });
    const isDefined = (called: string): boolean => functions.has(called);
    const addons = plan.addons.map(({ ref, mode, because, hasInstallScript }): RunResult['addons'][number] => {
      const again = this.#because.get(ref.name);
      const outcome = again === undefined ? outcomeOf(mode, plan.kind) : 'installed';
      const leaves = outcome === 'removed' && hasInstallScript ? leftByRemoval(ref.name, isDefined) : undefined;
      const row = { name: ref.name, version: ref.version, outcome, because: again ?? because };
      return leaves === undefined ? row : { ...row, leaves };
    });
    const messages = [...(await this.#earlierMessages()), ...this.#messages, ...this.#removal.messages()];
    const images = {
      loaded: this.#loaded,
      skipped: prepared.request.skipImages,
      ...(removed === undefined ? {} : { removed }),
    };
    return { addons, images, messages, ...this.#removal.failures() };
  }

  /** True if this run continues another one whose hooks have begun: the remaining hooks depend on what those did. */
  #continuesHooks(): boolean {
    if (this.#parts.plan.continues === undefined) return false;
    return [...this.#done, ...this.#hooks.attempts.keys()].some((id) => parseActionId(id)?.kind === 'hook');
  }

  /** Messages of outro hooks that the resumed run has done, from their logs. */
  async #earlierMessages(): Promise<RunResult['messages']> {
    const { prepared, plan } = this.#parts;
    const messages: RunResult['messages'][number][] = [];
    for (const { ref } of plan.addons) {
      const name = hookFunction(ref.name, 'outro');
      const done = plan.continues?.done.find(({ action }) => action === actionId('hook', name));
      if (done === undefined) continue;
      const folder = runFolder(prepared.request.place.directory, done.run);
      const text = await endOfLog(join(folder.path, `${name}.log`));
      if (text !== '') messages.push({ addon: ref.name, text });
    }
    return messages;
  }

  async #once(action: string, perform: () => Promise<void>): Promise<void> {
    if (this.#done.has(action)) return;
    await perform();
    await this.#parts.journal.append({ type: 'done', action, outcome: 'done' });
    this.#done.add(action);
  }

  /** Records hooks of the resumed run in the cluster: that run may have died before it did. */
  async #noteDone(): Promise<void> {
    const { plan } = this.#parts;
    const isDone = ({ ref }: PlannedAddon, hook: Hook): boolean => this.#done.has(hookActionId(ref.name, hook));
    for (const addon of plan.addons) {
      if (isDone(addon, 'install') || isDone(addon, 'already_applied')) await this.#cluster.applied(addon);
    }
  }

  async #extract({ id, addon }: Extract<PlannedAction, { kind: 'extract' }>): Promise<void> {
    const { prepared, options, folder, journal } = this.#parts;
    const { report, signal } = options;
    const { directory } = prepared.request.place;
    const { run } = folder;
    const source = this.#source(addon);
    const { tree, name, version } = source.ref;
    const bytes = source.files.reduce((sum, { size }) => sum + size, 0);
    await journal.append({ type: 'started', action: id, attempt: 1 });
    await reportStep(
      report,
      { id, title: `extract ${formatRef(source.ref)}`, bytes },
      async () => {
        await stagePackage(source, { directory, run, signal });
        await journal.append({ type: 'done', action: actionId('stage', formatRef(source.ref)), outcome: 'staged' });
        await this.#records.forgetExtracted({ tree, name, version });
        const keep = await isRollbackTarget(source, directory, this.#records.now);
        await renameIntoPlace(source.ref, { directory, run, keep });
        await recordPlaced(directory, source, { signal });
        const whole = { tree, name, version, digest: source.addon.digest };
        await this.#records.extracted(source.omitted.length === 0 ? whole : { ...whole, omitted: source.omitted });
      },
      () => 'extracted',
    );
    await journal.append({ type: 'done', action: id, outcome: 'extracted' });
    // Fails if the bundle was unpacked on a read-only disk; it stays as it is.
    await source.discard?.().catch(() => undefined);
    await clearStaging(directory);
  }

  async #finish(): Promise<void> {
    const { prepared, plan } = this.#parts;
    await dropFormer(this.#former);
    const addons = plan.addons.filter((addon) => !isRemoved(addon));
    await this.#cluster.finished(addons);
    await this.#records.finished(addons, prepared.request.keepsPrevious !== false);
    await this.#removal.finish();
  }

  async #hook(action: HookAction, functions: ReadonlySet<string>): Promise<void> {
    const addon = this.#parts.plan.addons.find(({ ref }) => ref.name === action.addon);
    if (addon === undefined) throw new Error(`not an add-on of this plan: ${action.addon}`);
    this.#hooks.signal.throwIfAborted();
    if (action.hook === 'already_applied') {
      const check = async (): Promise<string | undefined> =>
        functions.has(action.function) ? checkApplied(action, addon, this.#hooks) : undefined;
      const because = (await this.#cluster.whyNotApplied(addon)) ?? (await check());
      if (because === undefined) {
        await this.#cluster.applied(addon);
        return;
      }
      this.#because.set(action.addon, because);
      await this.#hook(installAfter(action, because), functions);
      return;
    }
    if (action.hook === 'install') {
      await this.#records.installing(addon);
      await this.#cluster.installing(addon);
    }
    if (functions.has(action.function)) {
      const text = await runHookAction(action, addon, this.#hooks).catch(async (error: unknown) => {
        if (isRemoved(addon)) return this.#removal.survive(error, action);
        throw withRollbackHint(error, action.addon, await this.#rollbackTarget(action.addon));
      });
      if (text !== '') this.#messages.push({ addon: action.addon, text });
    } else if (action.hook === 'install') {
      const text = `${action.addon}: install.sh defines no function ${action.function}; nothing was installed`;
      this.#hooks.report({ type: 'note', level: 'warning', text });
    }
    if (action.hook === 'install') await this.#cluster.applied(addon);
  }

  /** The version that an add-on can be rolled back to after its hook failed. */
  async #rollbackTarget(name: string): Promise<string | undefined> {
    const { prepared, options } = this.#parts;
    const { applied, extracted } = this.#records.now;
    const back = Object.hasOwn(applied, name) ? applied[name]?.previous : undefined;
    if (back === undefined || options.signal.aborted) return undefined;
    const lost = await whyUnavailable(prepared.request.place.directory, name, back, { ...options, extracted });
    return lost === undefined ? back.version : undefined;
  }

  async #loadAll(actions: readonly PlannedAction[]): Promise<void> {
    const { prepared, options, plan, journal } = this.#parts;
    const { request } = prepared;
    const { report, signal } = options;
    const order = runtimeOrder(plan.addons);
    const runtime = await findImageRuntime({ env: request.env, order, signal });
    if (runtime === undefined) {
      const isPlanned = plan.addons.some(({ ref }) => isContainerRuntime(ref));
      const why = isPlanned ? 'neither containerd nor docker responds' : NO_RUNTIME;
      throw new CurlewError('IMAGE_LOAD_FAILED', `cannot load images: ${why}`, {
        hint: 'start the container runtime, then run the same command again; --skip-images installs without them',
      });
    }
    const packages = actions.map(({ id, addon }) => {
      const { ref, addon: json, files: listed } = this.#source(addon);
      const files = placedFiles(join(request.place.directory, nodePath.addon(ref)), listed);
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
    this.#loaded.push(...loaded.flatMap(({ references }) => references));
  }

  #source(name: string): SourcePackage {
    const found = this.#sources().find(({ label }) => label === name);
    if (found === undefined) throw new Error(`not a package of this run: ${name}`);
    return found.source;
  }

  /** All packages of the run, with the labels that the actions of its plan use. */
  #sources(): readonly { readonly label: string; readonly source: SourcePackage }[] {
    const { request, companions } = this.#parts.prepared;
    return [...request.packages.map(({ source }) => ({ label: source.ref.name, source })), ...companions];
  }
}

/**
 * The actions that change the machine, after all packages are on the node and verified. Consecutive image loads form one group;
 * each hook is its own group.
 */
function changing(actions: readonly PlannedAction[]): readonly (readonly PlannedAction[])[] {
  const groups: PlannedAction[][] = [];
  for (const action of actions) {
    if (action.kind === 'fetch' || action.kind === 'extract') continue;
    const last = groups.at(-1);
    if (action.kind === 'images' && last?.[0]?.kind === 'images') last.push(action);
    else groups.push([action]);
  }
  return groups;
}
