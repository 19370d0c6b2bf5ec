/** Bundles and deltas in memory, planned and assembled as the commands do, without a store. */
import { memorySource } from '../../src/formats/archive/read.ts';
import { bundleRange, type BundleSource } from '../../src/ship/bundle/write/bytes.ts';
import { planDelta } from '../../src/ship/bundle/delta/delta-plan.ts';
import type { Inventory } from '../../src/ship/bundle/delta/inventory.ts';
import { planBundle, type BundlePlan } from '../../src/ship/bundle/bundle-plan.ts';
import { digestOf } from '../../src/core/digest.ts';
import { OS_IDS, type OsId } from '../../src/core/os.ts';
import { specOf, TOOL, type TestPackage } from './bundles.ts';
import { packageOf } from './packages.ts';

const signal = new AbortController().signal;

export interface MadeBundle {
  readonly plan: BundlePlan;
  readonly sources: readonly BundleSource[];
  readonly bytes: Buffer;
}

async function assembled(plan: BundlePlan, sources: readonly BundleSource[]): Promise<MadeBundle> {
  const parts: Uint8Array[] = [];
  for await (const chunk of bundleRange(plan.splice, sources, { signal })) parts.push(chunk);
  return { plan, sources, bytes: Buffer.concat(parts) };
}

/**
 * The bundle of these packages, in this order; `os` names the folders of systems that stay in them, `kurl`: for kURL's own
 * scripts.
 */
export async function bundleOfPackages(
  packages: readonly TestPackage[],
  { os, kurl = false }: { readonly os?: readonly OsId[] | undefined; readonly kurl?: boolean } = {},
): Promise<MadeBundle> {
  const made = packages.map(({ name, version, files, extra }) => {
    const folders = OS_IDS.filter((id) => files.some(({ path }) => path.startsWith(`${id}/`)));
    const { bytes, plan, addon } = packageOf(name, version, files, { os: folders, ...extra });
    const { tree, arch, digest } = addon;
    const described = { name, version, tree, arch, requested: version, digest, sha256: digestOf(bytes) };
    return {
      bytes,
      index: plan.index,
      resolved: { ...described, size: bytes.byteLength, because: 'exact', key: name },
    };
  });
  const plan = planBundle({
    release: 'r1',
    arch: 'amd64',
    installer: Buffer.from(specOf(Object.fromEntries(packages.map(({ name, version }) => [name, version])))),
    rootFiles: [{ path: 'install.sh', mode: 0o755, data: Buffer.from('#!/bin/sh\necho installed\n') }],
    executable: kurl ? undefined : TOOL.plan.index,
    packages: made,
    os,
    tool: '1.2.3',
  });
  const sources = made.map(({ bytes, resolved }) => memorySource(resolved.name, bytes));
  return assembled(plan, kurl ? sources : [...sources, memorySource('the tool', TOOL.bytes)]);
}

/** What of this bundle a place with the inventory lacks. */
export async function deltaOf(bundle: MadeBundle, inventory: Inventory): Promise<MadeBundle> {
  return assembled(planDelta(bundle.plan, inventory), bundle.sources);
}
