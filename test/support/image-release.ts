/** A release whose packages hold images, as `build` and `publish` make it. */
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PackageImage } from '../../src/core/package.ts';
import type { Arch } from '../../src/core/ref.ts';
import { packageFileName } from '../../src/core/layout.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import type { Store } from '../../src/ship/store/store.ts';
import { writeArchives, writeLayout, type Images } from './image-packages.ts';
import { writePackage, type TestFile } from './packages.ts';
import { publishAs } from './releases.ts';
import type { Tree } from './tree.ts';

export interface ImageAddon {
  readonly name: string;
  readonly version: string;
  readonly images: Images;
  readonly arch?: Arch;
  readonly dockerArchives?: boolean;
  /** Blobs are packed as other builders may do it: ours stores them. */
  readonly deflated?: boolean;
  /** Beside the images. */
  readonly files?: readonly TestFile[];
}

async function filesBelow(folder: string, path = 'images'): Promise<readonly TestFile[]> {
  const files: TestFile[] = [];
  for (const entry of await readdir(join(folder, path), { withFileTypes: true })) {
    const below = `${path}/${entry.name}`;
    if (entry.isDirectory()) files.push(...(await filesBelow(folder, below)));
    else files.push({ path: below, data: await readFile(join(folder, below)) });
  }
  return files;
}

/** Publishes them as release `r1`, by default into `store/` of the box. */
export async function publishImages(
  box: Tree,
  addons: readonly ImageAddon[],
  signal: AbortSignal,
  store: Store = createFolderStore(box.at('store')),
): Promise<Store> {
  await mkdir(box.at('store'), { recursive: true });
  const files = [];
  for (const { name, version, images, arch = 'amd64', dockerArchives = false, ...more } of addons) {
    const folder = box.at('unpacked', `${name}-${version}-${arch}`);
    const made = await (dockerArchives ? writeArchives : writeLayout)(folder, images);
    const list: readonly PackageImage[] = made.images.map((image) => ({ ...image, platform: `linux/${arch}` }));
    const path = box.at(packageFileName({ name, version }, arch));
    const imageFormat = dockerArchives ? 'docker-archive' : 'oci';
    const extra = { arch, images: list, imageFormat } as const;
    const { deflated = false, files: others = [] } = more;
    const inside = (await filesBelow(folder)).map((file) => ({ ...file, deflated }));
    files.push({ path, addon: await writePackage(path, name, version, [...inside, ...others], extra) });
  }
  await publishAs(store, 'r1', files, signal);
  return store;
}
