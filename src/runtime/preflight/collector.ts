/** The interface of collectors: their settings, their facts, and the validation of facts from a file. */
import type * as v from 'valibot';
import type { Json } from '../../formats/yaml/yaml.ts';
import type { SettingForms, Settings } from './settings.ts';

/** The machine that is inspected. */
export interface Host {
  /** Root of its files: `/`, or another folder in tests. */
  readonly root: string;
  /** Environment of programs, including PATH. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

export interface Collector<Facts extends Json> {
  /** The key in a spec. */
  readonly kind: string;
  /** Default name of its facts. */
  readonly defaultName: string;
  /** The facts are those of the machine, regardless of the name in a spec. */
  readonly shared: boolean;
  readonly settings: SettingForms;
  /** Time limit in milliseconds. */
  readonly limitMs: (settings: Settings) => number;
  /** It starts a program, which blocks this process for a moment, so it starts after collectors that only wait. */
  readonly isProgram?: true;
  /** It writes, or runs a program of the spec's choice. Left out if nothing may be changed. */
  readonly acts?: true;
  /** Collectors with the same key interfere with each other and run one after the other. */
  readonly mutexKey?: (settings: Settings) => string;
  /** Collects facts and leaves no changes. If it throws, the error is reported and its facts are missing. */
  readonly collect: (settings: Settings, host: Host) => Promise<Facts>;
  /** For facts from a file. */
  readonly facts: v.GenericSchema<unknown, Facts>;
}

/** Most collectors only read a few files. */
export const DEFAULT_LIMIT_MS = 30_000;

/** A collector with the type of its facts erased: analyzers get facts only from the collector that they name. */
export type AnyCollector = Collector<Json>;

/** The reason why there are no facts, for operators. */
export class CollectProblem extends Error {}
