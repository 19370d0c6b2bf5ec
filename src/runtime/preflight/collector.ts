/** What a collector is: settings it takes, facts it gives, and how facts from a file are checked. */
import type { Json } from '../../formats/yaml/yaml.ts';
import type { SettingForms, Settings } from './settings.ts';

/** The machine that is looked at. */
export interface Host {
  /** Where its files lie: `/`, or another folder in tests. */
  readonly root: string;
  /** For programs: where they are found, and what they see. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

export interface Collector<Facts extends Json> {
  /** The key in a spec. */
  readonly kind: string;
  /** The name of its facts when a spec gives none. */
  readonly defaultName: string;
  /** The facts are the machine's, whatever name a spec gives them. */
  readonly shared: boolean;
  readonly settings: SettingForms;
  /** Milliseconds after which it is given up. */
  readonly limitMs: (settings: Settings) => number;
  /** It starts a program, which takes a moment of this process: those that only wait come before. */
  readonly isProgram?: true;
  /** It does more than look: it writes, or runs what a spec names. Left out where nothing at all may happen. */
  readonly acts?: true;
  /** Two with the same key get in each other's way, and run one after the other. */
  readonly mutexKey?: (settings: Settings) => string;
  /** Looks and changes nothing that stays. What it throws is told, and its facts are missing. */
  readonly collect: (settings: Settings, host: Host) => Promise<Facts>;
  /** Whether a value from a file has the shape of its facts. */
  readonly isFacts: (value: unknown) => value is Facts;
}

/** Most collectors only read a few files. */
export const USUAL_LIMIT_MS = 30_000;

/** A collector whose type of facts is forgotten: whoever uses its facts checks them with the one that he names. */
export type AnyCollector = Collector<Json>;

/** Why there are no facts, for people. */
export class CollectProblem extends Error {}
