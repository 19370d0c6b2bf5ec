/** The order files of planned add-ons: `versions.json` beside their versions. */
import { dirname, join, resolve } from 'node:path';
import type { BuildPlan } from '../build/plan.ts';
import { CurlewError, errnoOf } from '../core/errors.ts';
import { readLimited } from '../files/read-limited.ts';
import { parseOrderFile, type VersionOrders } from '../release/version-order.ts';

const LIMIT = 1 << 20;

/** An empty order for add-ons without such a file. */
export async function readVersionOrders(
  { addons }: BuildPlan,
  { cwd, signal }: { readonly cwd: string; readonly signal: AbortSignal },
): Promise<VersionOrders> {
  const orders = new Map<string, readonly string[]>();
  for (const { ref, root } of addons) {
    if (orders.has(ref.name)) continue;
    const path = join(dirname(resolve(cwd, root)), 'versions.json');
    orders.set(ref.name, await readOrder(path, signal));
  }
  return orders;
}

async function readOrder(path: string, signal: AbortSignal): Promise<readonly string[]> {
  signal.throwIfAborted();
  try {
    return parseOrderFile((await readLimited(path, LIMIT)).toString(), path);
  } catch (error) {
    if (error instanceof CurlewError && errnoOf(error.cause) === 'ENOENT') return [];
    throw error;
  }
}
