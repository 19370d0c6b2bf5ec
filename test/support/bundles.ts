/** A folder store with a release of small packages, and bundle plans over it. */
import { mkdir } from 'node:fs/promises';
import type { ArchivePlan } from '../../src/formats/archive/place.ts';
import { memorySource } from '../../src/formats/archive/read.ts';
import type { BundleSource } from '../../src/ship/bundle/write/bytes.ts';
import { openPackages, type OpenPackage } from '../../src/ship/bundle/open-packages.ts';
import { planBundle, type BundlePlan } from '../../src/ship/bundle/bundle-plan.ts';
import { resolvePackages } from '../../src/ship/bundle/resolve.ts';
import { packageFileName } from '../../src/core/layout.ts';
import type { AddonJson } from '../../src/core/package.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import { publishPackages } from '../../src/ship/release/publish.ts';
import { readCatalog } from '../../src/ship/store/read-catalog.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import type { Store } from '../../src/ship/store/store.ts';
import { noReport } from './context.ts';
import { archiveOf, writePackage, type TestFile } from './packages.ts';
import type { Tree } from './tree.ts';

export interface TestPackage {
  readonly name: string;
  readonly version: string;
  readonly files: readonly TestFile[];
  /** Fields of its addon.json. */
  readonly extra?: Partial<AddonJson>;
}

/** Publishes the packages as release `r1`: into `store/` of the box, or another store. */
export async function publishTestPackages(
  box: Tree,
  packages: readonly TestPackage[],
  signal: AbortSignal,
  store: Store = createFolderStore(box.at('store')),
  release = 'r1',
): Promise<Store> {
  await mkdir(box.at('store'), { recursive: true });
  await mkdir(box.at('out'), { recursive: true });
  const files = [];
  for (const { name, version, files: content, extra } of packages) {
    const path = box.at('out', packageFileName({ name, version }, 'amd64'));
    files.push({ path, addon: await writePackage(path, name, version, content, extra) });
  }
  await publishPackages(files, {
    store,
    release,
    now: new Date(0),
    carry: false,
    commit: undefined,
    jobs: 2,
    report: noReport,
    signal,
  });
  return store;
}

/** An installer spec of these add-ons and versions. */
export function specOf(addons: Readonly<Record<string, string>>): string {
  const rows = Object.entries(addons).map(([name, version]) => `  ${name}: {version: "${version}"}\n`);
  return `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: test}\nspec:\n${rows.join('')}`;
}

/** What stands in for the tool for nodes. */
export const TOOL: { readonly bytes: Buffer; readonly plan: ArchivePlan } = archiveOf([
  { path: 'bin/curlew', mode: 0o755, data: Buffer.alloc(20_000, 'x') },
]);

export interface PlannedBundle {
  readonly plan: BundlePlan;
  /** Sources in the order that the plan numbers them. */
  readonly sources: readonly BundleSource[];
  readonly packages: readonly OpenPackage[];
}

export async function planTestBundle(store: Store, spec: string, signal: AbortSignal): Promise<PlannedBundle> {
  const { installer, diagnostics } = parseInstaller('installer.yaml', spec);
  if (installer === undefined) throw new Error(JSON.stringify(diagnostics));
  const catalog = await readCatalog(store, { release: undefined, signal });
  const packages = await openPackages(store, resolvePackages(installer, catalog, 'amd64'), { signal });
  const rootFiles = [{ path: 'install.sh', mode: 0o755, data: Buffer.from('#!/bin/sh\necho installed\n') }] as const;
  const plan = planBundle({
    release: catalog.release,
    arch: 'amd64',
    installer: Buffer.from(spec),
    rootFiles,
    executable: TOOL.plan.index,
    packages,
    tool: '1.2.3',
  });
  const sources = [...packages.map(({ source }) => source), memorySource('the tool', TOOL.bytes)];
  return { plan, sources, packages };
}
