/** Installer specs of choices, made in the planning thread: writing and reading YAML takes milliseconds for each. */
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { createSharedWork } from './bundles.ts';
import { type Choice, type ChosenSpec, formatChoice } from './page/choice.ts';
import type { Planner } from './planner.ts';

/** The installer spec of a choice. `SPEC_INVALID` for settings that no spec can have. The signal is that of the client. */
export type ChosenSpecs = (choice: Choice, options: Cancellable) => Promise<ChosenSpec>;

/** Number of cached specs: a visitor requests the page, the spec, the script and the bundle of one choice. */
const MAX_CACHED = 256;

export function createChosenSpecs(planner: Planner): ChosenSpecs {
  const made = createSingleFlightCache<ChosenSpec>({ most: MAX_CACHED });
  const shared = createSharedWork({ onEmpty: (key) => made.drop(key) });
  return async ({ versions, settings }, { signal: gone }) => {
    const choice: Choice = { release: undefined, arch: 'amd64', versions, settings };
    const key = formatChoice(choice);
    return shared(key, gone, async (signal) =>
      made.get(key, async () => planner.run({ kind: 'choice', choice }, { signal })),
    );
  };
}

/** What an address without a choice would install: nothing, which no client means. */
export function requireAddons({ installer }: ChosenSpec['spec']): void {
  if (installer.addons.length > 0) return;
  throw new CurlewError('SPEC_INVALID', 'this address chooses no add-on', {
    hint: 'name add-ons with their versions in its query, such as ?flannel=0.26.1, or choose them on the page at /',
  });
}
