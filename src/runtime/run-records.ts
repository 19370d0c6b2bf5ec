/** What a run writes into the records, step by step. */
import type { PlannedAddon } from './plan.ts';
import { writeRecords, type AppliedRecord, type ExtractedRecord, type Records } from './records.ts';

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

  /** From here on nothing says that the folder of this package is complete. */
  async forgetExtracted(one: Omit<ExtractedRecord, 'digest'>): Promise<void> {
    await this.#write({ extracted: this.#others(one) });
  }

  async extracted(one: ExtractedRecord): Promise<void> {
    await this.#write({ extracted: [...this.#others(one), one] });
  }

  /** Hooks of these add-ons are about to run: until the end of the run none of them counts as finished. */
  async hooksBegin(addons: readonly PlannedAddon[]): Promise<void> {
    const names = new Set(addons.map(({ ref }) => ref.name));
    const rows = Object.entries(this.#records.applied).map(([name, record]) => {
      const touched = names.has(name) ? { ...record, run: this.#run, finished: false } : record;
      return [name, touched] as const;
    });
    await this.#write({ applied: Object.fromEntries(rows) });
  }

  async installing(addon: PlannedAddon): Promise<void> {
    await this.#write({ applied: { ...this.#records.applied, ...this.#row(addon, false) } });
  }

  async finished(addons: readonly PlannedAddon[]): Promise<void> {
    const rows = addons.map((addon) => this.#row(addon, true));
    await this.#write({ applied: Object.assign({}, this.#records.applied, ...rows) as Records['applied'] });
  }

  #row({ ref, digest, settings }: PlannedAddon, finished: boolean): Readonly<Record<string, AppliedRecord>> {
    return { [ref.name]: { version: ref.version, digest, settings, run: this.#run, finished } };
  }

  #others({ tree, name, version }: Omit<ExtractedRecord, 'digest'>): readonly ExtractedRecord[] {
    return this.#records.extracted.filter((one) => one.tree !== tree || one.name !== name || one.version !== version);
  }

  async #write(change: Partial<Records>): Promise<void> {
    this.#records = { ...this.#records, ...change };
    await writeRecords(this.#directory, this.#records);
  }
}
