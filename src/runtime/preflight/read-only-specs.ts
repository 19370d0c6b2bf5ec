/** Specs without the checks that change something. Pure. */
import { ANALYZERS } from './analyzers.ts';
import { COLLECTORS } from './collectors.ts';
import { titleOf } from './analyze.ts';
import type { HostPreflight } from './spec.ts';

export interface ReadOnlySpecs {
  readonly specs: readonly HostPreflight[];
  /** Titles of the checks that were left out. */
  readonly leftOut: readonly string[];
}

export function withoutChanges(specs: readonly HostPreflight[]): ReadOnlySpecs {
  const acts = (kind: string | undefined): boolean => kind !== undefined && COLLECTORS.get(kind)?.acts === true;
  const leftOut: string[] = [];
  const kept = specs.map((spec) => {
    const analyzers = spec.analyzers.map((one) => {
      if (one.excluded || !acts(ANALYZERS.get(one.kind)?.collector.kind)) return one;
      leftOut.push(titleOf(one));
      return { ...one, excluded: true };
    });
    const collectors = spec.collectors.map((one) => (acts(one.kind) ? { ...one, excluded: true } : one));
    return { ...spec, collectors, analyzers };
  });
  return { specs: kept, leftOut };
}
