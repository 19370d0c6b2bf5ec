/** Whether this machine may download the charts of a fleet. */
import { chartPlace } from '../../cluster/deliver/helm.ts';
import type { Context } from '../../core/context.ts';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import type { WebRequest } from '../../requests/connection.ts';
import { webTrust } from '../../steps/open/network.ts';
import { channelEntries, type WrittenFleet } from '../fleet.ts';

/** A warning for each chart at an address that options and configuration do not allow: another machine may be allowed to. */
export async function chartWarnings(
  fleet: WrittenFleet,
  request: WebRequest,
  context: Pick<Context, 'env' | 'cwd'>,
): Promise<readonly Diagnostic[]> {
  const entries = new Set(fleet.addons.flatMap((addon) => addon.entry ?? channelEntries(addon, fleet)));
  const { allowHttp } = await webTrust(request, context);
  return [...entries].flatMap(({ source, place }): readonly Diagnostic[] => {
    if (source?.type !== 'chart' || source.chart.package !== undefined) return [];
    try {
      chartPlace(source.chart, { channel: '', allowHttp });
      return [];
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      const message = [error.message, error.hint].filter((text) => text !== undefined).join('; ');
      return [{ code: 'fleet/address', severity: 'warning', message, place, hint: undefined }];
    }
  });
}
