/** What a run leaves on the node though its spec no longer has it. Pure. */
import { compareText } from '../core/ref.ts';
import type { RunView } from './prepare.ts';

export interface StayingAddon {
  readonly name: string;
  readonly version: string;
}

/** Add-ons that are applied and are none of those that the run is about, by name. */
export function stayingAddons({ records, request }: Pick<RunView, 'records' | 'request'>): readonly StayingAddon[] {
  const wanted = new Set(request.packages.map(({ source }) => source.ref.name));
  return Object.entries(records.applied)
    .filter(([name]) => !wanted.has(name))
    .map(([name, { version }]) => ({ name, version }))
    .toSorted((a, b) => compareText(a.name, b.name));
}
