/** Charts without a version that follow the newest one, by the rules of the Helm add-on provider. */
import type { Chart, ChartAccess } from '../../cluster/channel/channel.ts';
import { chartPlace, helmOf } from '../../cluster/deliver/helm.ts';
import type { Context } from '../../core/context.ts';
import { requireRefusal } from '../../core/errors.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import type { WebRequest } from '../../requests/connection.ts';
import type { FleetApplyRequest } from '../../requests/fleet.ts';
import { webTrust } from '../../steps/open/network.ts';
import type { WrittenAddon } from '../fleet.ts';

const AT_ONCE = 8;

/** Asks the repository or the registry of a chart which version is the newest. */
export type FindNewest = (
  chart: Pick<Chart, 'repoURL' | 'oci' | 'name'>,
  access: ChartAccess | undefined,
) => Promise<string>;

export function findNewest(
  request: Pick<FleetApplyRequest, 'helm' | keyof WebRequest>,
  context: Pick<Context, 'env' | 'cwd' | 'signal'>,
): FindNewest {
  const { signal } = context;
  const open = helmOf(request, { kubeconfig: '', kubeContext: undefined, signal, guard: undefined }, context);
  return async (chart, access) => {
    const { caFile, allowHttp } = await webTrust(request, context);
    await using helm = await open();
    return await helm.newest(chartPlace(chart, { channel: '', allowHttp }), { caFile, ...access });
  };
}

/** The add-ons with the newest versions of their charts. One whose version cannot be found stays as it is. */
export async function withNewest(
  addons: readonly WrittenAddon[],
  find: FindNewest,
  signal: AbortSignal,
): Promise<readonly WrittenAddon[]> {
  const follow = async (one: WrittenAddon): Promise<WrittenAddon> => {
    const { entry, compat, access } = one;
    if (compat !== 'caaph' || entry?.source?.type !== 'chart' || entry.version !== undefined) return one;
    const { chart } = entry.source;
    try {
      const version = await find(chart, access);
      return { ...one, entry: { ...entry, version, source: { type: 'chart', chart: { ...chart, version } } } };
    } catch (error) {
      requireRefusal(error, signal);
      return { ...one, problem: error.message };
    }
  };
  return mapLimited(addons, follow, { width: AT_ONCE, signal });
}
