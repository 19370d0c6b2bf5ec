/** Lists the payloads of a place in a small file that deltas are created from. */
import { resolve } from 'node:path';
import { joinBases, openBase, type BasePayload } from '../ship/bundle/delta/base.ts';
import { formatInventory, makeInventory, type Inventory } from '../ship/bundle/delta/inventory.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { reportStep } from '../core/events.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { hashFile } from '../platform/files/hash-file.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import type { Context } from '../core/context.ts';
import { toolVersion } from '../own/version.ts';
import { INVENTORY } from '../requests/bundle.ts';
import { useCase, type RequestOf } from '../core/request.ts';

export interface CreatedInventory {
  /** Undefined if the inventory itself is returned. */
  readonly file: string | undefined;
  /** Identity of the inventory. */
  readonly digest: Digest;
  readonly packages: readonly string[];
  readonly payloads: number;
  /** Unpacked bytes of all payloads. */
  readonly bytes: number;
  /** Without `output`. */
  readonly inventory?: Inventory;
}

/** Smaller files in a delta take little more space than their line in an inventory. */
const SMALL = 4096;

/** The step that reads what is unpacked. */
const READ = 'unpacked packages';

export const inventory = useCase(INVENTORY, async (request, context): Promise<CreatedInventory> => {
  const { places = [], output, force = false } = request;
  const file = output === undefined ? undefined : resolve(context.cwd, output);
  if (file !== undefined) await refuseExisting(file, force);
  const made = await inventoryOf(places.length === 0 ? [INSTALL_DIRECTORY] : places, request, context);
  const { digest, packages } = made;
  const bytes = made.payloads.reduce((sum, [, size]) => sum + size, 0);
  const counts = { digest, packages, payloads: made.payloads.length, bytes };
  if (file === undefined) return { file, ...counts, inventory: made };
  await writeText(file, formatInventory(made), { force });
  return { file, ...counts };
});

/** Reads only the tables of contents of bundles and packages; hashes files in folders. */
export async function inventoryOf(
  places: readonly string[],
  { compact = false, withTool = false }: Pick<RequestOf<typeof INVENTORY.fields>, 'compact' | 'withTool'>,
  { cwd, program, report, signal }: Context,
): Promise<Inventory> {
  const bases = [];
  for (const place of places) bases.push(await openBase(resolve(cwd, place), { report, signal, shown: place }));
  const base = joinBases(bases);
  const least = compact ? SMALL : 0;
  const payloads: BasePayload[] = [];
  if (withTool) {
    const executable = program?.().executable;
    if (executable === undefined || !base.isUnpacked) {
      const what = '--with-tool requires the executable of a bundle and the folder of a node';
      throw new CurlewError('USAGE', `curlew inventory: ${what}`);
    }
    payloads.push(await hashFile(executable, { signal }));
  }
  const read = async (): Promise<void> => {
    let bytes = 0;
    for await (const { digest, size } of base.payloads({ signal })) {
      if (size >= least) payloads.push({ digest, size });
      report({ type: 'step-progress', id: READ, bytes: (bytes += size) });
    }
  };
  // Unpacked packages may be many GB.
  if (base.isUnpacked) await reportStep(report, { id: READ, title: READ }, read, () => 'read');
  else await read();
  return makeInventory({ payloads, packages: base.packages, tool: toolVersion() });
}
