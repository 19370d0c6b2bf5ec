/** The inventory of a base: a small file with the digests and sizes of its payloads. Pure. */
import * as v from 'valibot';
import { digestOf, hexOf, isDigest, type Digest } from '../../../core/digest.ts';
import { CurlewError, errorAbout } from '../../../core/errors.ts';
import { ownerOf, pathProblem } from '../../../core/layout.ts';
import { compareText } from '../../../core/ref.ts';
import { digest, readJson, type Read } from '../../../core/schema.ts';

const INVENTORY_FORMAT = 1;
/** Maximum bytes of an inventory. */
export const INVENTORY_LIMIT: number = 128 << 20;
export const INVENTORY_HINT = 'create it from the bundle that nodes have: curlew inventory BUNDLE -o FILE';
const MAX_PAYLOADS = 1_000_000;
/** Two commas for each payload, one for each package, and some reserve. */
const MAX_COMMAS = 3 * MAX_PAYLOADS;

/** One function, not a tuple: an inventory may have a million rows. */
const payloadRow = v.custom<[hex: string, size: number]>(isRow, 'not a digest with a size');

const inventory = v.object({
  format: v.literal(INVENTORY_FORMAT),
  /** Hex digest and unpacked size of each payload, sorted by digest, without duplicates. */
  payloads: v.pipe(v.array(payloadRow), v.maxLength(MAX_PAYLOADS, `more than ${MAX_PAYLOADS} payloads`)),
  /** Prefixes of the packages, without trailing slash; informational. */
  packages: v.array(v.custom<string>(isPackage, 'not the prefix of a package')),
  /** Digest of the canonical JSON of `payloads`. */
  digest,
  /** Version of curlew that created it. */
  tool: v.pipe(v.string(), v.maxLength(100, 'longer than 100 characters')),
});
export type Inventory = Read<typeof inventory>;

interface Payload {
  readonly digest: Digest;
  readonly size: number;
}

export interface InventoryInputs {
  /** Payloads in any order; duplicates are allowed. */
  readonly payloads: Iterable<Payload>;
  readonly packages: Iterable<string>;
  readonly tool: string;
}

export function makeInventory({ payloads, packages, tool }: InventoryInputs): Inventory {
  const sizes = new Map<string, number>();
  for (const payload of payloads) if (payload.size > 0) sizes.set(hexOf(payload.digest), payload.size);
  const rows = [...sizes].toSorted(([a], [b]) => compareText(a, b));
  const named = [...new Set(packages)].toSorted(compareText);
  return { format: INVENTORY_FORMAT, payloads: rows, packages: named, digest: identityOf(rows), tool };
}

/** Canonical JSON of an inventory. */
export function formatInventory(value: Inventory): string {
  const { format, packages, payloads, tool } = value;
  return `${JSON.stringify({ digest: value.digest, format, packages, payloads, tool })}\n`;
}

function identityOf(rows: Inventory['payloads']): Digest {
  return digestOf(JSON.stringify(rows));
}

/**
 * Parses an inventory; `from` names its source for messages. An unknown format is `UNSUPPORTED`, any other mistake
 * `FILE_UNUSABLE`.
 */
export function parseInventory(text: string, from: string): Inventory {
  const bad = errorAbout('FILE_UNUSABLE', `cannot read ${from}: not an inventory`, INVENTORY_HINT);
  // Limits memory before parsing: a crafted JSON text may need ten times its size.
  if (hasMoreCommas(text, MAX_COMMAS)) throw bad(`more than ${MAX_PAYLOADS} payloads`);
  const other = (shown: string): CurlewError =>
    new CurlewError('UNSUPPORTED', `cannot read ${from}: unknown inventory format ${shown}`, {
      hint: /^\d/.test(shown) ? 'a newer curlew created it; use that version or a newer one' : undefined,
    });
  const format = { only: INVENTORY_FORMAT, other };
  const { payloads, packages, digest: identity, tool } = readJson(inventory, text, { bad, format });
  let before = '';
  for (const [index, [hex]] of payloads.entries()) {
    if (hex <= before) throw bad(`payloads[${index}]: duplicated or out of order`);
    before = hex;
  }
  if (identity !== identityOf(payloads)) throw bad('its digest does not match its payloads');
  return { format: INVENTORY_FORMAT, payloads, packages, digest: identity, tool };
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

function isPackage(text: unknown): boolean {
  return typeof text === 'string' && pathProblem(text) === undefined && ownerOf(`${text}/`) !== undefined;
}

function isRow(row: unknown): boolean {
  if (!Array.isArray(row) || row.length !== 2) return false;
  const [hex, size] = row as readonly unknown[];
  return typeof hex === 'string' && isDigest(`sha256:${hex}`) && Number.isSafeInteger(size) && Number(size) > 0;
}
