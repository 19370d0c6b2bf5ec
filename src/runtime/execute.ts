/** Carries out a plan on an install folder, action by action, from the journal to the records. */
import { join } from 'node:path';
import { eachLimited } from '../core/each.ts';
import { CurlewError } from '../core/errors.ts';
import { reportStep, type Report } from '../core/events.ts';
import { INSTALL_SH, nodePath } from '../core/layout.ts';
import { formatRef } from '../core/ref.ts';
import { isContainerRuntime } from './hooks.ts';
import { findImageRuntime, loadImages } from './images.ts';
import { createJournal, type Journal } from './journal.ts';
import { endLastRun } from './last-run.ts';
import type { PlannedAction, RunPlan } from './plan.ts';
import type { PreparedRun, RunRequest } from './prepare.ts';
import { pruneRuns } from './prune-runs.ts';
import { clearStaging, renameIntoPlace, stagePackage } from './put-in-place.ts';
import type { Records } from './records.ts';
import { createRunFolder, dropShellFiles, type RunFolder } from './run-folder.ts';
import { checkApplied, installInstead, lookUp, runHookAction, type HookAction, type HookRun } from './run-hooks.ts';
import { RunRecords } from './run-records.ts';
import type { ShellVariable } from './settings.ts';
import type { SourcePackage } from './source.ts';

interface RunAddon {
  readonly name: string;
  readonly version: string;
  readonly outcome: 'installed' | 'already applied' | 'joined' | 'upgraded';
  readonly because: string;
}

export interface RunResult {
  readonly run: string;
  readonly addons: readonly RunAddon[];
  readonly images: { readonly loaded: readonly string[]; readonly skipped: string | undefined };
  /** What outros told the operator, in their order; those that said nothing are left out. */
  readonly messages: readonly { readonly addon: string; readonly text: string }[];
  readonly seconds: number;
}

export interface RunOptions {
  readonly report: Report;
  readonly signal: AbortSignal;
}

const HOST_PREFLIGHT = 'host-preflight.yaml';

/**
 * Carries out all actions of a plan. `HOOK_FAILED` when a hook fails; whatever the error, the same call goes on from a
 * consistent state.
 */
export async function execute(prepared: PreparedRun, plan: RunPlan, options: RunOptions): Promise<RunResult> {
  const started = performance.now();
  const { request, records, attempts } = prepared;
  const { directory } = request.place;
  await endLastRun(records, attempts, options);
  await pruneRuns(directory, records);
  notePreflights(request, options.report);
  await clearStaging(directory);
  const folder = await createRunFolder({
    directory,
    scripts: request.scripts,
    settings: request.variables,
    own: ownVariables(request),
  });
  await using journal = await createJournal(join(directory, nodePath.journal(folder.run)));
  const run = new ActiveRun({ request, options, plan, folder, journal, attempts, records });
  try {
    const result = await run.execute();
    await dropShellFiles(folder);
    return { ...result, run: folder.run, seconds: (performance.now() - started) / 1000 };
  } catch (error) {
    const outcome = options.signal.aborted ? 'cancelled' : 'failed';
    // The disk may be full: what went wrong first is what the caller must hear.
    await journal.append({ type: 'ended', outcome }).catch(() => undefined);
    throw error;
  }
}

/** Leaving checks out is said, never passed over. */
function notePreflights({ packages }: RunRequest, report: Report): void {
  const names = packages
    .filter(({ source }) => source.files.some(({ path }) => path === HOST_PREFLIGHT))
    .map(({ source }) => source.ref.name);
  if (names.length === 0) return;
  const text = `host preflights are not run by this version: ${names.join(', ')}`;
  report({ type: 'note', level: 'warning', text });
}

/** What every hook may expect to be set (kurl.md 6.6). */
function ownVariables({ kind, place }: RunRequest): readonly ShellVariable[] {
  return [
    ['DIR', '.'],
    ['KURL_INSTALL_DIRECTORY', place.seen],
    ['K8S_DISTRO', 'kubeadm'],
    // kURL sets it in install.sh only; scripts test whether it is 1.
    ['MASTER', kind === 'install' ? '1' : ''],
  ];
}

interface RunParts {
  readonly request: RunRequest;
  readonly options: RunOptions;
  readonly plan: RunPlan;
  readonly folder: RunFolder;
  readonly journal: Journal;
  readonly attempts: ReadonlyMap<string, number>;
  readonly records: Records;
}

const LOADS_AT_ONCE = 2;

const OUTCOMES = {
  install: 'installed',
  'already applied': 'already applied',
  join: 'joined',
  upgrade: 'upgraded',
} as const satisfies Record<string, RunAddon['outcome']>;

type Bringing = Extract<PlannedAction, { kind: 'fetch' | 'extract' }>;

/** Everything is on the node, and verified, before the first hook changes anything. */
function isBringing(action: PlannedAction): action is Bringing {
  return action.kind === 'fetch' || action.kind === 'extract';
}

/** Loads that follow each other are one group, everything else stands alone. */
function grouped(actions: readonly PlannedAction[]): readonly (readonly PlannedAction[])[] {
  const groups: PlannedAction[][] = [];
  for (const action of actions) {
    const last = groups.at(-1);
    if (action.kind === 'images' && last?.[0]?.kind === 'images') last.push(action);
    else groups.push([action]);
  }
  return groups;
}

/** A run that is under way: what has been recorded and found out so far. */
class ActiveRun {
  readonly #parts: RunParts;
  readonly #hooks: HookRun;
  readonly #records: RunRecords;
  readonly #because = new Map<string, string>();
  readonly #loaded: string[] = [];
  readonly #messages: { readonly addon: string; readonly text: string }[] = [];
  #skipped: string | undefined;

  constructor(parts: RunParts) {
    const { request, options, plan, folder, journal, attempts, records } = parts;
    const { directory } = request.place;
    const scripts = plan.addons.filter(({ hasInstallScript }) => hasInstallScript);
    this.#parts = parts;
    this.#records = new RunRecords(directory, folder.run, records);
    this.#skipped = request.skipImages;
    this.#hooks = {
      shell: {
        place: request.place,
        run: folder.run,
        folder: folder.path,
        scripts: folder.scripts,
        settings: folder.settings,
        carried: folder.carried,
        installScripts: scripts.map(({ ref }) => join(directory, nodePath.addon(ref), INSTALL_SH)),
        env: request.env,
      },
      journal,
      attempts,
      ...options,
    };
  }

  async execute(): Promise<Omit<RunResult, 'run' | 'seconds'>> {
    const { plan, journal, attempts } = this.#parts;
    await journal.append({ type: 'planned', plan, earlier: [...attempts] });
    await this.#records.begin();
    const bringing = plan.actions.filter(isBringing);
    for (const action of bringing) await (action.kind === 'fetch' ? this.#fetch(action) : this.#extract(action));
    const functions = await lookUp(this.#hooks);
    await this.#records.hooksBegin(plan.addons);
    for (const group of grouped(plan.actions.filter((action) => !isBringing(action)))) {
      const [first] = group;
      if (first?.kind === 'hook') await this.#hook(first, functions);
      else await this.#loadAll(group);
    }
    await this.#records.finished(plan.addons);
    await journal.append({ type: 'ended', outcome: 'finished' });
    const addons = plan.addons.map(({ ref, mode, because }): RunAddon => {
      const again = this.#because.get(ref.name);
      const outcome = again === undefined ? OUTCOMES[mode === 'join' ? plan.kind : mode] : 'installed';
      return { name: ref.name, version: ref.version, outcome, because: again ?? because };
    });
    return { addons, images: { loaded: this.#loaded, skipped: this.#skipped }, messages: this.#messages };
  }

  async #fetch({ id, addon }: Extract<PlannedAction, { kind: 'fetch' }>): Promise<void> {
    const { options, journal } = this.#parts;
    const { report, signal } = options;
    const { ref, fetch } = this.#source(addon);
    if (fetch === undefined) return;
    await journal.append({ type: 'started', action: id, attempt: 1 });
    const progress = (bytes: number): void => report({ type: 'step-progress', id, bytes });
    await reportStep(
      report,
      { id, title: `fetch ${formatRef(ref)}` },
      async () => fetch({ report: progress, signal }),
      () => 'fetched',
    );
    await journal.append({ type: 'done', action: id, outcome: 'fetched' });
  }

  async #extract({ id, addon }: Extract<PlannedAction, { kind: 'extract' }>): Promise<void> {
    const { request, options, folder, journal } = this.#parts;
    const { report, signal } = options;
    const { directory } = request.place;
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
        await journal.append({ type: 'done', action: `stage ${formatRef(source.ref)}`, outcome: 'staged' });
        await this.#records.forgetExtracted({ tree, name, version });
        await renameIntoPlace(source.ref, { directory, run });
        await this.#records.extracted({ tree, name, version, digest: source.addon.digest });
      },
      () => 'extracted',
    );
    await journal.append({ type: 'done', action: id, outcome: 'extracted' });
    // A bundle that was unpacked on a disk which cannot be written to stays as it is.
    await source.discard?.().catch(() => undefined);
    await clearStaging(directory);
  }

  async #hook(action: HookAction, functions: ReadonlySet<string>): Promise<void> {
    const addon = this.#parts.plan.addons.find(({ ref }) => ref.name === action.addon);
    if (addon === undefined) throw new Error(`no add-on of this plan: ${action.addon}`);
    this.#hooks.signal.throwIfAborted();
    if (action.hook === 'already_applied') {
      const because = functions.has(action.function) ? await checkApplied(action, addon, this.#hooks) : undefined;
      if (because === undefined) return;
      this.#because.set(action.addon, because);
      await this.#hook(installInstead(action, because), functions);
      return;
    }
    if (action.hook === 'install') await this.#records.installing(addon);
    if (functions.has(action.function)) {
      const text = await runHookAction(action, addon, this.#hooks);
      if (text !== '') this.#messages.push({ addon: action.addon, text });
    } else if (action.hook === 'install') {
      const text = `${action.addon}: install.sh defines no function ${action.function}; nothing was installed`;
      this.#hooks.report({ type: 'note', level: 'warning', text });
    }
  }

  async #loadAll(actions: readonly PlannedAction[]): Promise<void> {
    const { request, options, plan, journal } = this.#parts;
    const { report, signal } = options;
    const runtime = await findImageRuntime({ env: request.env, signal });
    if (runtime === undefined) {
      if (plan.addons.some(({ ref }) => isContainerRuntime(ref))) {
        throw new CurlewError('IMAGE_LOAD_FAILED', 'load images: neither containerd nor docker answers', {
          hint: 'see that the container runtime is running, then run the same command again',
        });
      }
      this.#skipped = 'no container runtime answers, and the spec has none';
      report({ type: 'note', level: 'info', text: `images were not loaded: ${this.#skipped}` });
      return;
    }
    const load = async ({ id, addon }: PlannedAction, within: { readonly signal: AbortSignal }): Promise<void> => {
      const { ref, addon: json } = this.#source(addon);
      await journal.append({ type: 'started', action: id, attempt: 1 });
      const names = await reportStep(
        report,
        { id, title: `load images of ${formatRef(ref)}` },
        async () =>
          loadImages(runtime, { directory: request.place.directory, ref, addon: json, env: request.env }, within),
        ({ length }) => (length === 0 ? 'all there already' : `${length} loaded into ${runtime.name}`),
      );
      this.#loaded.push(...names);
      await journal.append({ type: 'done', action: id, outcome: `${names.length} loaded` });
    };
    await eachLimited(actions, load, { width: LOADS_AT_ONCE, signal });
  }

  #source(name: string): SourcePackage {
    const found = this.#parts.request.packages.find(({ source }) => source.ref.name === name);
    if (found === undefined) throw new Error(`no package of this run: ${name}`);
    return found.source;
  }
}
