/** Updates of the records during a run. */
import { isRemoved } from '../plan/order.ts';
import { writeRecords } from './records.ts';
import {
  type AppliedRecord,
  type ExtractedRecord,
  installedVersion,
  type PreviousRecord,
  type Records,
  recordOf,
} from '../plan/records.ts';
import type { PlannedAddon } from '../plan/run-plan.ts';

/** The records of an install folder during a run; each change is on disk when its call returns. */
export class RunRecords {
  readonly #directory: string;
  readonly #run: string;
  #records: Records;

  constructor(directory: string, run: string, records: Records) {
    this.#directory = directory;
    this.#run = run;
    this.#records = records;
  }

  get now(): Records {
    return this.#records;
  }

  async begin(): Promise<void> {
    await this.#write({ lastRun: this.#run });
  }

  /** Records the cluster that the add-ons are applied to. */
  async belongsTo(cluster: string): Promise<void> {
    await this.#write({ cluster });
  }

  /** The folder of this package no longer counts as complete. */
  async forgetExtracted(one: Omit<ExtractedRecord, 'digest'>): Promise<void> {
    await this.#write({ extracted: this.#others(one) });
  }

  async extracted(one: ExtractedRecord): Promise<void> {
    await this.#write({ extracted: [...this.#others(one), one] });
  }

  /**
   * Hooks of these add-ons are about to run: until the end of the run they do not count as finished. With `keepsPrevious`, a
   * later rollback restores their present state. Without it, a rollback keeps its own target, so that it can be repeated.
   */
  async hooksBegin(addons: readonly PlannedAddon[], keepsPrevious: boolean): Promise<void> {
    const rows = Object.entries(this.#records.applied).map(([name, record]) => {
      const addon = addons.find(({ ref }) => ref.name === name);
      if (addon === undefined) return [name, record] as const;
      const { previous, ...rest } = record;
      const touched = unfinished(record, { ...rest, run: this.#run });
      const goesBack = !keepsPrevious && previous !== undefined && isSame(previous, addon);
      return [name, withPrevious(touched, goesBack ? previous : previousOf(this.#records, addon))] as const;
    });
    await this.#write({ applied: Object.fromEntries(rows) });
  }

  async installing(addon: PlannedAddon): Promise<void> {
    await this.#write({ applied: { ...this.#records.applied, ...this.#row(addon, false) } });
  }

  /** With `keepsPrevious`, each can be rolled back to its former state. */
  async finished(addons: readonly PlannedAddon[], keepsPrevious: boolean): Promise<void> {
    const rows = addons.map((addon) => this.#row(addon, true, keepsPrevious));
    await this.#write({ applied: Object.assign({}, this.#records.applied, ...rows) as Records['applied'] });
  }

  /** The former states of these add-ons are no longer kept. */
  async forgetPrevious(names: ReadonlySet<string>): Promise<void> {
    const rows = Object.entries(this.#records.applied).map(([name, { previous: _previous, ...record }]) => {
      return [name, names.has(name) || _previous === undefined ? record : { ...record, previous: _previous }] as const;
    });
    await this.#write({ applied: Object.fromEntries(rows) });
  }

  /** Records that these add-ons are no longer installed here. Their `extracted` records stay until their files are removed. */
  async removed(names: ReadonlySet<string>): Promise<void> {
    const rows = Object.entries(this.#records.applied).filter(([name]) => !names.has(name));
    await this.#write({ applied: Object.fromEntries(rows) });
  }

  /** The files of these add-ons' packages are removed. */
  async forgetPackages(names: ReadonlySet<string>): Promise<void> {
    await this.#write({ extracted: this.#records.extracted.filter(({ name }) => !names.has(name)) });
  }

  #row(
    { ref, digest, settings, mode }: PlannedAddon,
    finished: boolean,
    keepsPrevious = true,
  ): Readonly<Record<string, AppliedRecord>> {
    const before = recordOf(this.#records.applied, ref.name);
    const by = mode === 'join' ? 'join' : mode === 'install' ? 'install' : before?.by;
    const state = { version: ref.version, digest, settings, run: this.#run, ...(by === undefined ? {} : { by }) };
    const row = finished ? { ...state, finished } : unfinished(before, state);
    const previous = keepsPrevious ? before?.previous : undefined;
    const isBack = previous !== undefined && isSame(previous, { ref, digest, settings });
    return { [ref.name]: finished && isBack ? row : withPrevious(row, previous) };
  }

  #others({ tree, name, version }: Omit<ExtractedRecord, 'digest'>): readonly ExtractedRecord[] {
    return this.#records.extracted.filter((one) => one.tree !== tree || one.name !== name || one.version !== version);
  }

  async #write(change: Partial<Records>): Promise<void> {
    this.#records = { ...this.#records, ...change };
    await writeRecords(this.#directory, this.#records);
  }
}

function isSame(
  record: Pick<AppliedRecord, 'version' | 'digest' | 'settings'>,
  { ref, digest, settings }: Pick<PlannedAddon, 'ref' | 'digest' | 'settings'>,
): boolean {
  return record.version === ref.version && record.digest === digest && record.settings === settings;
}

function withPrevious(record: AppliedRecord, previous: PreviousRecord | undefined): AppliedRecord {
  return previous === undefined ? record : { ...record, previous };
}

/** A row of a run that has not finished, with the version that `before` has as installed. */
export function unfinished(
  before: AppliedRecord | undefined,
  row: Omit<AppliedRecord, 'finished' | 'installed'>,
): AppliedRecord {
  const installed = before === undefined ? undefined : installedVersion(before);
  return { ...row, finished: false, ...(installed === undefined ? {} : { installed }) };
}

/** The new rollback target of an add-on: its last finished state or, if that is the same as planned, the target of that state. */
export function previousOf({ applied }: Records, addon: PlannedAddon): PreviousRecord | undefined {
  const { name } = addon.ref;
  const record = recordOf(applied, name);
  if (record === undefined || isRemoved(addon)) return undefined;
  if (!record.finished) return record.previous;
  if (isSame(record, addon)) return record.previous;
  // Without a known package it cannot be restored.
  if (record.digest === undefined) return undefined;
  return { version: record.version, digest: record.digest, settings: record.settings, run: record.run };
}
