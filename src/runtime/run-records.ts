/** What a run writes into the records, step by step. */
import type { PlannedAddon } from './plan.ts';
import { isRemoved } from './plan-phases.ts';
import {
  writeRecords,
  type AppliedRecord,
  type ExtractedRecord,
  type PreviousRecord,
  type Records,
} from './records.ts';

/** The records of an install folder while a run changes them; each change is on disk when its call returns. */
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

  /** What was applied is about this cluster. */
  async belongsTo(cluster: string): Promise<void> {
    await this.#write({ cluster });
  }

  /** From here on nothing says that the folder of this package is complete. */
  async forgetExtracted(one: Omit<ExtractedRecord, 'digest'>): Promise<void> {
    await this.#write({ extracted: this.#others(one) });
  }

  async extracted(one: ExtractedRecord): Promise<void> {
    await this.#write({ extracted: [...this.#others(one), one] });
  }

  /** Hooks of these add-ons are about to run: until the end of the run none of them counts as finished. */
  async hooksBegin(addons: readonly PlannedAddon[]): Promise<void> {
    const rows = Object.entries(this.#records.applied).map(([name, record]) => {
      const addon = addons.find(({ ref }) => ref.name === name);
      const touched = { ...record, run: this.#run, finished: false };
      return [name, addon === undefined ? record : withPrevious(touched, previousOf(record, addon))] as const;
    });
    await this.#write({ applied: Object.fromEntries(rows) });
  }

  async installing(addon: PlannedAddon): Promise<void> {
    await this.#write({ applied: { ...this.#records.applied, ...this.#row(addon, false) } });
  }

  async finished(addons: readonly PlannedAddon[]): Promise<void> {
    const rows = addons.filter((addon) => !isRemoved(addon)).map((addon) => this.#row(addon, true));
    await this.#write({ applied: Object.assign({}, this.#records.applied, ...rows) as Records['applied'] });
  }

  /** These add-ons are not on this node any more. */
  async removed(names: ReadonlySet<string>): Promise<void> {
    const rows = Object.entries(this.#records.applied).filter(([name]) => !names.has(name));
    const extracted = this.#records.extracted.filter(({ name }) => !names.has(name));
    await this.#write({ applied: Object.fromEntries(rows), extracted });
  }

  #row({ ref, digest, settings, mode }: PlannedAddon, finished: boolean): Readonly<Record<string, AppliedRecord>> {
    const before = Object.hasOwn(this.#records.applied, ref.name) ? this.#records.applied[ref.name] : undefined;
    const by = mode === 'join' ? 'join' : mode === 'install' ? 'install' : before?.by;
    const row = {
      version: ref.version,
      digest,
      settings,
      run: this.#run,
      finished,
      ...(by === undefined ? {} : { by }),
    };
    return { [ref.name]: finished ? row : withPrevious(row, before?.previous) };
  }

  #others({ tree, name, version }: Omit<ExtractedRecord, 'digest'>): readonly ExtractedRecord[] {
    return this.#records.extracted.filter((one) => one.tree !== tree || one.name !== name || one.version !== version);
  }

  async #write(change: Partial<Records>): Promise<void> {
    this.#records = { ...this.#records, ...change };
    await writeRecords(this.#directory, this.#records);
  }
}

function withPrevious(record: AppliedRecord, previous: PreviousRecord | undefined): AppliedRecord {
  return previous === undefined ? record : { ...record, previous };
}

/** What can be gone back to when this add-on fails: the last that finished, unless it is the very same. */
function previousOf(record: AppliedRecord, { ref, digest, settings }: PlannedAddon): PreviousRecord | undefined {
  if (!record.finished) return record.previous;
  const same = record.version === ref.version && record.digest === digest && record.settings === settings;
  // Without its package there is no way back.
  if (same || record.digest === undefined) return undefined;
  return { version: record.version, digest: record.digest, settings: record.settings, run: record.run };
}
