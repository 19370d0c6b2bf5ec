/** Order files of planned add-ons: `versions.json` next to their versions. */
import { dirname, join, resolve } from 'node:path';
import type { BuildPlan } from '../build/plan.ts';
import { readStateFile } from '../platform/files/state-file.ts';
import { parseOrderFile, type VersionOrders } from '../store/release/version-order.ts';

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
    signal.throwIfAborted();
    const text = await readStateFile(path, LIMIT);
    orders.set(ref.name, text === undefined ? [] : parseOrderFile(text, path));
  }
  return orders;
}
