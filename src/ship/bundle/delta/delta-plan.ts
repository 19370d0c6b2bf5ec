/** Plans a delta: a bundle's table of contents, and the payloads that are missing in an inventory. Pure. */
import type { PlacedEntry } from '../../../formats/archive/entry.ts';
import { planSplice, type SplicePart } from '../../../formats/archive/splice.ts';
import { tocJson } from '../../../formats/archive/toc.ts';
import { formatBundleJson, type BundleJson } from '../../../core/bundle.ts';
import { hexOf } from '../../../core/digest.ts';
import { CurlewError } from '../../../core/errors.ts';
import { BUNDLE_JSON, BUNDLED_TOOL, BUNDLED_TOOL_LICENSE, DELTA_CONTENTS, ownerOf } from '../../../core/layout.ts';
import type { Inventory } from './inventory.ts';
import type { RootFile } from '../../../own/root-files.ts';
import type { BundlePlan } from '../bundle-plan.ts';

/**
 * Plans the delta from an inventory to a planned bundle, with the sources of that plan. An inventory with a different size for
 * a payload is `FILE_UNUSABLE`.
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
  const isIncluded = selector(inventory, bundle);
  const byPath = new Map(plan.files.map((file) => [file.path, file] as const));
  const files = [...own];
  const parts: SplicePart[] = own.map((file) => ({ kind: 'file', ...file }));
  for (const [number, entry] of index.entries.entries()) {
    if (!isIncluded(entry)) continue;
    const [origin, file] = [origins[number], byPath.get(entry.path)];
    if (origin !== undefined) {
      parts.push({ kind: 'entry', source: origin.source, at: origin.offset, length: origin.length, entry });
    } else if (file !== undefined) {
      parts.push({ kind: 'file', ...file });
      files.push(file);
    } else throw new Error(`no source has the bytes of ${entry.path}`);
  }
  return { ...plan, bundle, files, splice: planSplice(parts) };
}

/** True for each missing payload, once. */
function selector({ payloads }: Inventory, { layout }: BundleJson): (entry: PlacedEntry) => boolean {
  const existing = new Map(payloads);
  const included = new Set<string>();
  return ({ path, size, digest, packed }) => {
    const known = existing.get(hexOf(digest));
    if (known !== undefined && known !== size) {
      throw new CurlewError(
        'FILE_UNUSABLE',
        `the inventory lists ${known} bytes for ${digest}, but ${path} has ${size}`,
        { hint: 'create it again with curlew inventory' },
      );
    }
    if (packed === 0 || path === BUNDLE_JSON || included.has(digest)) return false;
    if (known !== undefined && (layout === 'kurl' || !isAlwaysIncluded(path))) return false;
    included.add(digest);
    return true;
  };
}

/**
 * The spec and the scripts are small, and nodes keep only packages. Including them makes a delta installable on a node. A delta
 * for kURL's scripts is not installable, and most of its files are outside of packages.
 */
function isAlwaysIncluded(path: string): boolean {
  return ownerOf(path) === undefined && path !== BUNDLED_TOOL && path !== BUNDLED_TOOL_LICENSE;
}
