/** Plans the steps that fulfill a Manifest. Pure and JSON-safe. */
import { planRequests } from './directives.ts';
import type { Manifest } from './parse.ts';
import type { Step } from './step.ts';

/**
 * The same Manifest gives the same steps in the same order: images, assets, host packages (one step for each system and
 * output), container builds.
 */
export function planManifest(manifest: Manifest): readonly Step[] {
  return planRequests(manifest.requests);
}
