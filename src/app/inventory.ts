/** What a place has, as a small file that deltas are made from. */
import { resolve } from 'node:path';
import { joinBases, openBase, type BasePayload } from '../bundle/delta/base.ts';
import { formatInventory, makeInventory, type Inventory } from '../bundle/delta/inventory.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { hashFile } from '../platform/files/hash-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import type { Context } from './context.ts';
import { toolVersion } from './version.ts';

export interface InventoryRequest {
  /** Bundles, packages, and folders of them or of what they unpack to; the install folder when there are none. */
  readonly places?: readonly string[] | undefined;
  /** File that is written; the inventory itself is the result when absent. */
  readonly output?: string | undefined;
  /** Files below 4 KiB are left out. */
  readonly compact?: boolean | undefined;
  /** Of a node: the curlew that runs is counted, too. */
  readonly withTool?: boolean | undefined;
  /** `output` is replaced if it is there. */
  readonly force?: boolean | undefined;
}

interface MadeInventory {
  /** Undefined when the inventory itself is the result. */
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

/** Smaller files travel with a delta for little more than their line here. */
const SMALL = 4096;

/** Of bundles and packages only the tables of contents are read; files of folders are hashed. */
export async function inventory(request: InventoryRequest, context: Context): Promise<MadeInventory> {
  const { cwd, program, report, signal } = context;
  const { places = [], output, compact = false, withTool = false, force = false } = request;
  const bases = [];
  for (const place of places.length === 0 ? [INSTALL_DIRECTORY] : places)
    bases.push(await openBase(resolve(cwd, place), { report, signal }));
  const base = joinBases(bases);
  const least = compact ? SMALL : 0;
  const payloads: BasePayload[] = [];
  if (withTool) {
    const executable = program?.().executable;
    if (executable === undefined || !base.isUnpacked) {
      const what = '--with-tool is for the curlew of a bundle, over the folder of a node';
      throw new CurlewError('USAGE', `curlew inventory: ${what}`);
    }
    payloads.push(await hashFile(executable, { signal }));
  }
  for await (const { digest, size } of base.payloads({ signal })) if (size >= least) payloads.push({ digest, size });
  const made = makeInventory({ payloads, packages: base.packages, tool: toolVersion() });
  const { digest, packages } = made;
  const bytes = made.payloads.reduce((sum, [, size]) => sum + size, 0);
  const counts = { digest, packages, payloads: made.payloads.length, bytes };
  if (output === undefined) return { file: undefined, ...counts, inventory: made };
  const file = resolve(cwd, output);
  await writeText(file, formatInventory(made), { force });
  return { file, ...counts };
}
