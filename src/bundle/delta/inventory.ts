/** What a place holds, as a small file: the digests and sizes of all payloads that are there. Pure. */
import { digestOf, hexOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isTexts, parseObject } from '../../core/json.ts';
import { ownerOf, pathProblem } from '../../core/layout.ts';
import { compareText } from '../../core/ref.ts';

export const INVENTORY_FORMAT = 1;
/** Most bytes of an inventory that are read. */
export const INVENTORY_LIMIT: number = 128 << 20;
const MOST_PAYLOADS = 1_000_000;
/** Two of them for each payload, one for each package, and some more. */
const COMMAS = 3 * MOST_PAYLOADS;

export interface Inventory {
  readonly format: typeof INVENTORY_FORMAT;
  /** Digest in hex and unpacked bytes of each payload, by digest; none stands twice. */
  readonly payloads: readonly (readonly [hex: string, size: number])[];
  /** Prefixes of the packages that were seen, without their slash; for people. */
  readonly packages: readonly string[];
  /** Identity: of the canonical JSON of `payloads`. */
  readonly digest: Digest;
  /** Version of curlew that made it. */
  readonly tool: string;
}

interface Payload {
  readonly digest: Digest;
  readonly size: number;
}

export interface InventoryInputs {
  /** In any order, and any number of times. */
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

/** Canonical text of an inventory: for these values, with the keys in order, it is what any writer of JSON makes. */
export function formatInventory({ digest, format, packages, payloads, tool }: Inventory): string {
  return `${JSON.stringify({ digest, format, packages, payloads, tool })}\n`;
}

function identityOf(rows: Inventory['payloads']): Digest {
  return digestOf(JSON.stringify(rows));
}

/**
 * Reads an inventory from outside; `from` names it for messages. Another format is `UNSUPPORTED`, anything else that is
 * wrong `FILE_UNUSABLE`.
 */
export function parseInventory(text: string, from: string): Inventory {
  const bad = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `read ${from}: not an inventory: ${what}`, {
      hint: 'make it again with curlew inventory',
      cause,
    });
  // Counted first: a text that is no inventory may come to ten times its size in memory.
  if (hasMoreCommas(text, COMMAS)) throw bad(`more than ${MOST_PAYLOADS} payloads`);
  const { format, payloads, packages, digest, tool } = parseObject(text, bad);
  if (format !== INVENTORY_FORMAT) {
    throw new CurlewError('UNSUPPORTED', `read ${from}: inventory format ${JSON.stringify(format)} is not known`, {
      hint: typeof format === 'number' ? 'a newer curlew made it; use that version or a newer one' : undefined,
    });
  }
  if (typeof tool !== 'string' || tool.length > 100) throw bad('tool');
  if (!isTexts(packages) || !packages.every(isPackage)) throw bad('packages');
  if (!Array.isArray(payloads)) throw bad('payloads');
  if (payloads.length > MOST_PAYLOADS) throw bad(`more than ${MOST_PAYLOADS} payloads`);
  let before = '';
  for (const [index, row] of (payloads as readonly unknown[]).entries()) {
    if (!isRow(row)) throw bad(`payload ${index + 1} is no digest with a size`);
    if (row[0] <= before) throw bad(`payload ${index + 1} stands twice or out of order`);
    [before] = row;
  }
  // Every row was checked above.
  const rows = payloads as Inventory['payloads'];
  if (digest !== identityOf(rows)) throw bad('its digest is not that of its payloads');
  return { format, payloads: rows, packages, digest: identityOf(rows), tool };
}

/** More than `most` commas. */
function hasMoreCommas(text: string, most: number): boolean {
  let count = 0;
  for (let at = text.indexOf(','); at !== -1; at = text.indexOf(',', at + 1)) {
    count += 1;
    if (count > most) return true;
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
