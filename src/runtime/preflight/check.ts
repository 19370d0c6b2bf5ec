/** The interface of checks: a collector of facts about a machine, and the analyzer that evaluates them. */
import type * as v from 'valibot';
import { parseDuration } from '../../core/units.ts';
import type { Json } from '../../formats/yaml/yaml.ts';
import { CollectProblem, type Host } from './host.ts';
import type { AnalyzerResult } from './outcome.ts';
import type { SettingForms, Settings } from './check-settings.ts';
import type { AnalyzerSpec } from './spec.ts';

export interface Check<Facts extends Json> {
  /** The key of its collector in a spec. */
  readonly kind: string;
  /** The key of its analyzer, if it is another. */
  readonly analyzerKind?: string;
  /** Default name of its facts, if it is not its kind. */
  readonly defaultName?: string;
  /** The facts are those of the machine, regardless of the name in a spec. */
  readonly shared?: true;
  /** Settings of the collector. */
  readonly settings?: SettingForms;
  /** Time limit in milliseconds; default: {@link DEFAULT_LIMIT_MS}. */
  readonly limitMs?: (settings: Settings) => number;
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
  /** Settings of the analyzer, in addition to `collectorName`, `outcomes` and the other common ones. */
  readonly analyzerSettings?: SettingForms;
  /** Default title of its results. */
  readonly title: string | ((collectorName: string) => string);
  /** All results; none if there is nothing to check. Throws `AnalyzerProblem` if the facts cannot be evaluated. Pure. */
  readonly analyze: (facts: Facts, spec: AnalyzerSpec) => readonly AnalyzerResult[];
  /** The results if there are no facts; undefined or absent: it fails. */
  readonly withoutFacts?: (spec: AnalyzerSpec) => readonly AnalyzerResult[] | undefined;
  /** The name of its facts, if it is not `collectorName`. */
  readonly factName?: (spec: AnalyzerSpec) => string | undefined;
}

/** A check with the type of its facts erased: it evaluates only facts that it has collected, or whose shape it has checked. */
export type AnyCheck = Check<Json>;

/** Most collectors only read a few files. */
export const DEFAULT_LIMIT_MS = 30_000;

/** The name of the facts that a spec calls `name`. */
export function factNameOf({ kind, defaultName = kind, shared }: AnyCheck, name: string | undefined): string {
  return shared === true ? defaultName : (name ?? defaultName);
}

/** Milliseconds of the setting `timeout`. Throws `CollectProblem` if it is not a duration. */
export function limitOf(settings: Settings, defaultMs: number): number {
  const text = settings.text('timeout');
  if (text === undefined) return defaultMs;
  const ms = parseDuration(text);
  if (ms === undefined || ms < 0)
    throw new CollectProblem(`timeout ${JSON.stringify(text)} is not a duration such as 30s`);
  return ms;
}
