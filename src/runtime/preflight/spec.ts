/** A Troubleshoot spec of kind HostPreflight, as data. */
import type { Place } from '../../core/diagnostic.ts';
import type { Settings } from './check-settings.ts';

export type Verdict = 'pass' | 'warn' | 'fail';

export interface OutcomeRule {
  readonly verdict: Verdict;
  /** Empty: always true. */
  readonly when: string;
  readonly message: string;
  readonly uri: string | undefined;
  readonly place: Place;
}

export interface CollectorSpec {
  readonly kind: string;
  readonly name: string | undefined;
  readonly excluded: boolean;
  readonly settings: Settings;
  readonly place: Place;
}

export interface AnalyzerSpec extends Pick<CollectorSpec, 'kind' | 'excluded' | 'settings' | 'place'> {
  readonly checkName: string | undefined;
  readonly collectorName: string | undefined;
  readonly strict: boolean;
  readonly outcomes: readonly OutcomeRule[];
}

export interface HostPreflight {
  readonly name: string | undefined;
  readonly collectors: readonly CollectorSpec[];
  readonly analyzers: readonly AnalyzerSpec[];
}
