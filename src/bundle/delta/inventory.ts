/** The inventory of a base: a small file with the digests and sizes of its payloads. Pure. */
import { digestOf, hexOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isTexts, parseObject } from '../../core/json.ts';
import { ownerOf, pathProblem } from '../../core/layout.ts';
import { compareText } from '../../core/ref.ts';

export const INVENTORY_FORMAT = 1;
/** Maximum bytes of an inventory. */
export const INVENTORY_LIMIT: number = 128 << 20;
const MAX_PAYLOADS = 1_000_000;
/** Two commas for each payload, one for each package, and some reserve. */
const MAX_COMMAS = 3 * MAX_PAYLOADS;

export interface Inventory {
  readonly format: typeof INVENTORY_FORMAT;
  /** Hex digest and unpacked size of each payload, sorted by digest, without duplicates. */
  readonly payloads: readonly (readonly [hex: string, size: number])[];
  /** Prefixes of the packages, without trailing slash; informational. */
  readonly packages: readonly string[];
  /** Digest of the canonical JSON of `payloads`. */
  readonly digest: Digest;
  /** Version of curlew that created it. */
  readonly tool: string;
}

interface Payload {
  readonly digest: Digest;
  readonly size: number;
}

export interface InventoryInputs {
  /** In any order; duplicates are allowed. */
  readonly payloads: Iterable<Payload>;
  readonly packages: Iterable<string>;
  readonly tool: string;
}

export function makeInventory({ payloads, packages, tool }: InventoryInputs): Inventory {
  const sizes = new Map<string, number>();
  for (const { digest, size } of payloads) if (size > 0) sizes.set(hexOf(digest), size);
  const rows = [...sizes].toSorted(([a], [b]) => compareText(a, b));
  const named = [...new Set(packages)].toSorted(compareText);
  return { format: INVENTORY_FORMAT, payloads: rows, packages: named, digest: identityOf(rows), tool };
}

/** Canonical JSON of an inventory. */
export function formatInventory({ digest, format, packages, payloads, tool }: Inventory): string {
  return `${JSON.stringify({ digest, format, packages, payloads, tool })}\n`;
}

function identityOf(rows: Inventory['payloads']): Digest {
  return digestOf(JSON.stringify(rows));
}

/**
 * Parses an inventory; `from` names its source for messages. An unknown format is `UNSUPPORTED`, any other mistake
 * `FILE_UNUSABLE`.
 */
export function parseInventory(text: string, from: string): Inventory {
  const bad = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `read ${from}: not an inventory: ${what}`, {
      hint: 'create it again with curlew inventory',
      cause,
    });
  // Limits memory before parsing: a crafted JSON text may need ten times its size.
  if (hasMoreCommas(text, MAX_COMMAS)) throw bad(`more than ${MAX_PAYLOADS} payloads`);
  const { format, payloads, packages, digest, tool } = parseObject(text, bad);
  if (format !== INVENTORY_FORMAT) {
    throw new CurlewError('UNSUPPORTED', `read ${from}: unknown inventory format ${JSON.stringify(format)}`, {
      hint: typeof format === 'number' ? 'a newer curlew created it; use that version or a newer one' : undefined,
    });
  }
  if (typeof tool !== 'string' || tool.length > 100) throw bad('tool');
  if (!isTexts(packages) || !packages.every(isPackage)) throw bad('packages');
  if (!Array.isArray(payloads)) throw bad('payloads');
  if (payloads.length > MAX_PAYLOADS) throw bad(`more than ${MAX_PAYLOADS} payloads`);
  let before = '';
  for (const [index, row] of (payloads as readonly unknown[]).entries()) {
    if (!isRow(row)) throw bad(`payload ${index + 1} is not a digest with a size`);
    if (row[0] <= before) throw bad(`payload ${index + 1} is duplicated or out of order`);
    [before] = row;
  }
  // Every row was checked above.
  const rows = payloads as Inventory['payloads'];
  if (digest !== identityOf(rows)) throw bad('its digest does not match its payloads');
  return { format, payloads: rows, packages, digest: identityOf(rows), tool };
}

/** True if the text has more than `max` commas. */
function hasMoreCommas(text: string, max: number): boolean {
  let count = 0;
  for (let at = text.indexOf(','); at !== -1; at = text.indexOf(',', at + 1)) {
    count += 1;
    if (count > max) return true;
  }
  return false;
}

function isPackage(text: string): boolean {
  return pathProblem(text) === undefined && ownerOf(`${text}/`) !== undefined;
}

function isRow(row: unknown): row is readonly [string, number] {
  if (!Array.isArray(row) || row.length !== 2) return false;
  const [hex, size] = row as readonly unknown[];
  return typeof hex === 'string' && isDigest(`sha256:${hex}`) && Number.isSafeInteger(size) && Number(size) > 0;
}
