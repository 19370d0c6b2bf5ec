/** What a run removes in addition to calling hooks: images, records, files. */
import { hostname } from 'node:os';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { KUBERNETES } from '../plan/hooks.ts';
import { requireOwnLinks } from '../hooks/confine.ts';
import { pruneImages } from '../images/prune.ts';
import { FAILED, type Journal } from '../journal/journal.ts';
import { isRemoved } from '../plan/order.ts';
import type { PreparedRun } from '../prepare/prepare.ts';
import { unfinishedRemovals } from '../prepare/removal.ts';
import { removeAddonFiles } from '../node/remove-files.ts';
import type { HookAction } from '../hooks/run-hooks.ts';
import type { RunRecords } from '../node/run-records.ts';
import type { FailedRemoval, RunResult } from './run-result.ts';
import type { RunPlan } from '../plan/run-plan.ts';

interface RemovalParts {
  readonly prepared: PreparedRun;
  readonly plan: RunPlan;
  readonly journal: Journal;
  readonly records: RunRecords;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** Every call does nothing if the request removes nothing. */
export class RunRemoval {
  readonly #parts: RemovalParts;
  readonly #failed: FailedRemoval[] = [];

  constructor(parts: RemovalParts) {
    this.#parts = parts;
  }

  /** Lets the run continue after a hook of a removed add-on failed if `keepGoing` is requested; throws otherwise. */
  async survive(error: unknown, { id, addon, function: called }: HookAction): Promise<string> {
    const { prepared, journal, report } = this.#parts;
    const { removal } = prepared.request;
    if (removal?.keepGoing !== true || !(error instanceof CurlewError) || error.code !== 'HOOK_FAILED') throw error;
    // Files are removed next: they must not be reached through a link that the hook created.
    const { place } = prepared.request;
    if (place.confined) await requireOwnLinks(place.directory);
    await journal.append({ type: 'done', action: id, outcome: FAILED });
    this.#failed.push({ addon, function: called, message: error.message });
    report({ type: 'note', level: 'warning', text: error.message });
    return '';
  }

  /** Hooks that have failed. */
  failures(): Pick<RunResult, 'failed'> {
    return this.#failed.length === 0 ? {} : { failed: this.#failed };
  }

  /** What remains to be done elsewhere: this node may have no right to remove its own Node. */
  messages(): RunResult['messages'] {
    const { plan } = this.#parts;
    const leaves = plan.addons.some(({ ref, mode }) => ref.name === KUBERNETES && mode === 'leave');
    const command = `kubectl delete node ${hostname().toLowerCase()}`;
    const text = `The cluster keeps the Node of this machine. Delete it on a control plane: ${command}`;
    return leaves ? [{ addon: KUBERNETES, text }] : [];
  }

  /** Names of the removed images; undefined if that was not requested. */
  async removeImages(): Promise<readonly string[] | undefined> {
    const { prepared, plan, records, report, signal } = this.#parts;
    const { place, packages, removal, env } = prepared.request;
    if (removal?.pruneImages !== true) return undefined;
    return pruneImages({
      directory: place.directory,
      gone: removal.packages.map(({ source }) => source),
      required: packages.map(({ source }) => source),
      addons: plan.addons,
      records: records.now,
      env,
      report,
      signal,
    });
  }

  /**
   * Removes the `applied` records, then the files, then the `extracted` records: if the run dies in between, `curlew status`
   * shows the remaining packages and the next run removes them.
   */
  async finish(): Promise<void> {
    const { prepared, plan, records } = this.#parts;
    const { request, last } = prepared;
    const stays = new Set(plan.addons.filter((addon) => !isRemoved(addon)).map(({ ref }) => ref.name));
    const names = new Set([
      ...plan.addons.filter(isRemoved).map(({ ref }) => ref.name),
      ...(request.removal?.forgotten ?? []),
      ...unfinishedRemovals(last, prepared.records).filter((name) => !stays.has(name)),
    ]);
    if (names.size === 0) return;
    await records.removed(names);
    for (const name of names) await removeAddonFiles(request.place.directory, name);
    await records.forgetPackages(names);
  }
}
