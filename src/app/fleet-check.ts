/** Checks the files of a fleet, without any cluster. */
import { useCase } from '../core/request.ts';
import { differencesIn } from '../fleet/differences.ts';
import { chartWarnings } from '../fleet/run/chart-addresses.ts';
import { openFleet, type OpenedFleet } from '../fleet/run/files.ts';
import { FLEET_CHECK } from '../requests/fleet.ts';

export interface CheckedFleet extends Pick<OpenedFleet, 'diagnostics' | 'errors' | 'warnings'> {
  readonly clusters: number;
  readonly addons: number;
}

/** Returns all findings, and how rules differ from those of the program that a document is from. `NOT_FOUND` if there is no fleet. */
export const checkFleet = useCase(FLEET_CHECK, async (request, context): Promise<CheckedFleet> => {
  const fleet = await openFleet({ files: request.files }, context, { isWhole: true });
  const { clusters, addons, errors } = fleet;
  const refused = await chartWarnings(fleet, request, context);
  const found = [...refused, ...differencesIn(addons)].map((one) => ({ ...one, source: undefined }));
  const diagnostics = [...fleet.diagnostics, ...found];
  const warnings = fleet.warnings + refused.length;
  return { clusters: clusters.length, addons: addons.length, diagnostics, errors, warnings };
});
