/** A bundle that leaves out what a place has: its table of contents, and the payloads that lack there. Pure. */
import type { PlacedEntry } from '../../formats/archive/entry.ts';
import { planSplice, type SplicePart } from '../../formats/archive/splice.ts';
import { tocJson } from '../../formats/archive/toc.ts';
import { formatBundleJson, type BundleJson } from '../../core/bundle.ts';
import { hexOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { BUNDLE_JSON, BUNDLED_TOOL, BUNDLED_TOOL_LICENSE, DELTA_CONTENTS, ownerOf } from '../../core/layout.ts';
import type { Inventory } from './inventory.ts';
import type { RootFile } from '../other-systems.ts';
import type { BundlePlan } from '../plan.ts';

/**
 * Lays out the delta from a place with this inventory to a planned bundle, over the sources of that plan. An inventory
 * that gives a payload another size than the bundle does is `FILE_UNUSABLE`.
 */
export function planDelta(plan: BundlePlan, inventory: Inventory): BundlePlan {
  const { index, origins } = plan.splice;
  const bundle: BundleJson = {
    ...plan.bundle,
    delta: { since: inventory.digest, contents: index.tocDigest, size: index.size },
  };
  const own: readonly RootFile[] = [
    { path: BUNDLE_JSON, mode: 0o644, data: Buffer.from(formatBundleJson(bundle)) },
    { path: DELTA_CONTENTS, mode: 0o644, data: tocJson(index.entries) },
  ];
  const travels = selector(inventory, bundle);
  const made = new Map(plan.files.map((file) => [file.path, file] as const));
  const files = [...own];
  const parts: SplicePart[] = own.map((file) => ({ kind: 'file', ...file }));
  for (const [number, entry] of index.entries.entries()) {
    if (!travels(entry)) continue;
    const [origin, file] = [origins[number], made.get(entry.path)];
    if (origin !== undefined) {
      parts.push({ kind: 'entry', source: origin.source, at: origin.offset, length: origin.length, entry });
    } else if (file !== undefined) {
      parts.push({ kind: 'file', ...file });
      files.push(file);
    } else throw new Error(`nobody has the bytes of ${entry.path}`);
  }
  return { ...plan, bundle, files, splice: planSplice(parts) };
}

/** True for each payload that lacks, once. */
function selector({ payloads }: Inventory, { layout }: BundleJson): (entry: PlacedEntry) => boolean {
  const there = new Map(payloads);
  const travelling = new Set<string>();
  return ({ path, size, digest, packed }) => {
    const known = there.get(hexOf(digest));
    if (known !== undefined && known !== size) {
      throw new CurlewError('FILE_UNUSABLE', `the inventory has ${digest} with ${known} bytes, ${path} has ${size}`, {
        hint: 'make it again with curlew inventory',
      });
    }
    if (packed === 0 || path === BUNDLE_JSON || travelling.has(digest)) return false;
    if (known !== undefined && (layout === 'kurl' || !travelsAlways(path))) return false;
    travelling.add(digest);
    return true;
  };
}

/**
 * The spec and the scripts are small, and nodes keep packages only: with them a delta can be installed there. One for kURL's
 * scripts cannot, and most of it lies outside of packages.
 */
function travelsAlways(path: string): boolean {
  return ownerOf(path) === undefined && path !== BUNDLED_TOOL && path !== BUNDLED_TOOL_LICENSE;
}
