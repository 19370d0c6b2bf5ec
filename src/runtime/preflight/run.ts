/** Host preflights from specs to results. */
import type { Report } from '../../core/events.ts';
import type { Host } from './collector.ts';
import { collectFacts } from './collect.ts';
import { FACTS_FORMAT, type HostFacts } from './facts.ts';
import { countsOf, judgeFacts, type Counts, type PreflightResult } from './judge.ts';
import type { HostPreflight } from './spec.ts';

export interface PreflightOutcome {
  readonly results: readonly PreflightResult[];
  readonly counts: Counts;
  readonly facts: HostFacts;
}

export interface PreflightContext {
  /** Where the machine's files lie; `/` but in tests. */
  readonly root: string;
  readonly env: Host['env'];
  /** Version of curlew, for the facts. */
  readonly tool: string;
  /** Most milliseconds for any collector; without it each has its own limit. */
  readonly limitMs?: number | undefined;
}

/** Collects and judges. Nothing on the machine is changed. Throws only when it is cancelled. */
export async function runPreflights(
  specs: readonly HostPreflight[],
  { root, env, tool, limitMs }: PreflightContext,
  { report, signal }: { readonly report: Report; readonly signal: AbortSignal },
): Promise<PreflightOutcome> {
  const facts = await collectFacts(specs, { root, env, limitMs, report, signal });
  return judged(specs, { format: FACTS_FORMAT, tool, time: new Date().toISOString(), facts });
}

/** Judges facts that were collected before, maybe elsewhere. */
export function judged(specs: readonly HostPreflight[], facts: HostFacts): PreflightOutcome {
  const results = judgeFacts(specs, facts.facts);
  return { results, counts: countsOf(results), facts };
}
