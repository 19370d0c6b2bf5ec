/** Runs host preflights, from specs to results. */
import type { Report } from '../../core/events.ts';
import type { Host } from './host.ts';
import { ANALYZERS, COLLECTORS } from './checks.ts';
import { collectFacts } from './collect.ts';
import { FACTS_FORMAT, type CollectedFacts } from './facts.ts';
import { analyzeFacts, countsOf, analyzerTitle, type Counts, type PreflightResult } from './analyze.ts';
import type { HostPreflight } from './spec.ts';

export interface PreflightOutcome {
  readonly results: readonly PreflightResult[];
  readonly counts: Counts;
  readonly facts: CollectedFacts;
}

export interface PreflightContext {
  /** Root of the machine's files; `/` except in tests. */
  readonly root: string;
  readonly env: Host['env'];
  /** Version of curlew, for the facts. */
  readonly tool: string;
  /** Maximum milliseconds of any collector; by default each has its own limit. */
  readonly limitMs?: number | undefined;
}

/** Collects and evaluates facts, and leaves no changes on the machine. Throws only if it is canceled. */
export async function runPreflights(
  specs: readonly HostPreflight[],
  { root, env, tool, limitMs }: PreflightContext,
  { report, signal }: { readonly report: Report; readonly signal: AbortSignal },
): Promise<PreflightOutcome> {
  const facts = await collectFacts(specs, { root, env, limitMs, report, signal });
  return judged(specs, { format: FACTS_FORMAT, tool, time: new Date().toISOString(), facts });
}

/** Evaluates facts that were collected before, perhaps on another machine. */
export function judged(specs: readonly HostPreflight[], facts: CollectedFacts): PreflightOutcome {
  const results = analyzeFacts(specs, facts.facts);
  return { results, counts: countsOf(results), facts };
}

export interface ReadOnlySpecs {
  readonly specs: readonly HostPreflight[];
  /** Titles of the checks that were left out. */
  readonly leftOut: readonly string[];
}

/** Specs without the checks that change something. */
export function withoutChanges(specs: readonly HostPreflight[]): ReadOnlySpecs {
  const acts = (kind: string | undefined): boolean => kind !== undefined && COLLECTORS.get(kind)?.acts === true;
  const leftOut: string[] = [];
  const readOnly = specs.map((spec) => {
    const analyzers = spec.analyzers.map((one) => {
      if (one.excluded || !acts(ANALYZERS.get(one.kind)?.kind)) return one;
      leftOut.push(analyzerTitle(one));
      return { ...one, excluded: true };
    });
    const collectors = spec.collectors.map((one) => (acts(one.kind) ? { ...one, excluded: true } : one));
    return { ...spec, collectors, analyzers };
  });
  return { specs: readOnly, leftOut };
}
