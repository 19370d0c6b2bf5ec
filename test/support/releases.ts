/** Releases of small packages in folder stores, and what a reader of a store sees. */
import { writeFile } from 'node:fs/promises';
import { findPackage, formatCatalog } from '../../src/core/catalog.ts';
import { digestOf } from '../../src/core/digest.ts';
import type { AddonJson } from '../../src/core/package.ts';
import { packageFileName, storeKey } from '../../src/core/layout.ts';
import { publishPackages, type PublishOptions, type PublishResult } from '../../src/ship/release/publish.ts';
import type { PackageFileToPublish } from '../../src/ship/release/upload.ts';
import { currentRelease, readCatalog } from '../../src/ship/store/read-catalog.ts';
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from './assert.ts';
import { publishTestPackages } from './bundles.ts';
import { collect } from './bytes.ts';
import { noReport } from './context.ts';
import { noise, writePackage } from './packages.ts';
import type { Tree } from './tree.ts';

/** A package file of about nine thousand bytes; another content is another package. */
export async function madePackage(
  box: Tree,
  name: string,
  version: string,
  content: string,
  extra: Partial<AddonJson> = {},
): Promise<PackageFileToPublish> {
  const path = box.at(`${digestOf(content).slice(7, 15)}-${packageFileName({ name, version }, 'amd64')}`);
  const files = [
    { path: 'install.sh', data: content },
    { path: 'assets/blob', data: noise(9000, content.length) },
  ];
  return { path, addon: await writePackage(path, name, version, files, extra) };
}

/** Publishes package files as `release`; the rest of the previous release is carried over. */
export async function publishAs(
  store: Store,
  release: string,
  files: readonly PackageFileToPublish[],
  signal: AbortSignal,
  options: Partial<PublishOptions> = {},
): Promise<PublishResult> {
  const defaults = { now: new Date(), carry: true, commit: undefined, jobs: 2, report: noReport };
  return publishPackages(files, { store, release, ...defaults, signal, ...options });
}

/** The current release, after every package that its catalog names was read and has the digest that it names. */
export async function readableRelease(store: Store, signal: AbortSignal): Promise<string | undefined> {
  const current = await currentRelease(store, { signal });
  if (current === undefined) return undefined;
  const catalog = await readCatalog(store, { release: undefined, signal });
  for (const { name, versions } of catalog.addons) {
    for (const { version } of versions) {
      const { file, listed } = findPackage(catalog, { name, version }, 'amd64') ?? {};
      const { body } = await store.get(`${catalog.release}/${file}`, { signal });
      assert.is(digestOf(await collect(body)), listed?.sha256);
    }
  }
  return current.release;
}

/** A release `r1` with 2,500 versions of `many`, and 2,500 further add-ons, which all have the same package. */
export async function publishFiveThousand(box: Tree, signal: AbortSignal): Promise<Store> {
  const store = await publishTestPackages(box, [{ name: 'many', version: '1.2499', files: [] }], signal);
  const catalog = await readCatalog(store, { release: undefined, signal });
  const [version] = catalog.addons[0]?.versions ?? [];
  if (version === undefined) throw new Error('nothing was published');
  const versions = Array.from({ length: 2500 }, (_, at) => ({ ...version, version: `1.${2499 - at}` }));
  const others = Array.from({ length: 2500 }, (_, at) => ({ name: `other-${at}`, versions: [version] }));
  const addons = [{ name: 'many', versions }, ...others];
  await writeFile(box.at('store', storeKey.catalog('r1')), formatCatalog({ ...catalog, addons }));
  return store;
}
