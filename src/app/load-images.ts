/** Loads images of packages into this machine's container runtime, without installing anything. */
import { access } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { withoutKurlFolder } from '../ship/bundle/kurl-layout.ts';
import { CurlewError } from '../core/errors.ts';
import { ADDON_JSON, OMITTED_JSON, ownerOf, prefixOf, TOC_NAME } from '../core/layout.ts';
import type { PlacedEntry } from '../formats/archive/entry.ts';
import { requireImageRoom, type AddonImages } from '../runtime/host/host-plan.ts';
import { imageRoot } from '../runtime/host/image-root.ts';
import { createFailures } from '../runtime/images/failed-images.ts';
import { findImages, sourceImages, type FoundImages } from '../runtime/images/find-images.ts';
import { findImageRuntime } from '../runtime/images/find-runtime.ts';
import { RUNTIME_NAMES } from '../runtime/images/image-runtime.ts';
import { loadPackages } from '../runtime/images/load-packages.ts';
import { planNeeds } from '../runtime/images/load-plan.ts';
import { archivePackages } from '../runtime/node/source.ts';
import { folderPackages } from '../runtime/node/source-folder.ts';
import { openArchive } from '../ship/bundle/open-archive.ts';
import { openBundle } from '../steps/archives/open-bundle.ts';
import type { Context } from '../core/context.ts';
import { folderOf, requireFolders } from '../steps/node/install-folder.ts';
import { flagsOf } from '../steps/node/spec.ts';
import { usage } from '../steps/node/target.ts';
import { checkedIndex } from '../steps/sources/install-source.ts';
import { trustOf, type Trust } from '../steps/open/trust.ts';
import { LOAD_IMAGES, type LoadImagesRequest } from '../requests/node.ts';
import { useCase } from '../core/request.ts';

interface LoadedPackage extends Pick<AddonImages, 'images' | 'missing' | 'bytes'> {
  /** `demo-1.0` */
  readonly package: string;
}

export interface LoadResult {
  readonly runtime: string;
  /** False for a dry run. */
  readonly loaded: boolean;
  readonly packages: readonly LoadedPackage[];
}

/**
 * Loads missing images: those that the container runtime does not have by name and digest, and of those only missing blobs.
 * Unpacks and moves nothing, and runs no hook.
 */
export const loadImages = useCase(LOAD_IMAGES, async (input, context): Promise<LoadResult> => {
  const { request } = flagsOf(input, context);
  const { bundle, dir } = request;
  await requireFolders(request, context);
  if (bundle !== undefined && dir !== undefined)
    throw usage('curlew load-images: only one of --bundle and --dir can be used');
  // Packages in the install folder need no check: the run that installed them has verified signatures.
  const directory = folderOf(request, context);
  const trust = bundle === undefined && dir === undefined ? undefined : await trustOf(request, context, { directory });
  const path = bundle === undefined ? undefined : resolve(context.cwd, bundle);
  await using source =
    path === undefined
      ? undefined
      : await openArchive(path, { signal: context.signal, shown: bundle, folders: ['--dir'] });
  if (source === undefined) return await load(await imagesBelow(request, trust, context), request, context);
  const { signal } = context;
  const checked = await checkedIndex(source, source.whole, { trust, signal });
  const { index: whole, read, requireAll } = await openBundle(source, checked, { directory, signal });
  const index = whole.entries.some(({ path }) => ownerOf(path) !== undefined) ? whole : withoutKurlFolder(whole);
  await requireAll(index.entries.filter(isOfImages));
  const packages = await archivePackages(source, index, { read, signal });
  return await load(sourceImages(packages), request, context);
});

/** Files that are needed to load images; in place, hooks may have changed the others. */
function isOfImages({ path }: PlacedEntry): boolean {
  const owner = ownerOf(path);
  if (owner === undefined) return false;
  const below = path.slice(prefixOf(owner).length);
  return [ADDON_JSON, OMITTED_JSON].includes(below) || below.startsWith('images/');
}

/** Uses the table of contents of an unpacked bundle, which reveals moved and damaged files. */
async function imagesBelow(
  request: LoadImagesRequest,
  trust: Trust | undefined,
  { cwd, signal }: Context,
): Promise<readonly FoundImages[]> {
  const directory = folderOf(request, { cwd });
  const dir = request.dir;
  const folder = dir === undefined ? directory : resolve(cwd, dir);
  const hasContents = await access(join(folder, TOC_NAME)).then(
    () => true,
    () => false,
  );
  if (!hasContents && trust !== undefined) {
    throw new CurlewError(
      'SIGNATURE_INVALID',
      `cannot verify ${folder}: it has no ${TOC_NAME}, which a signature covers`,
    );
  }
  if (!hasContents) return findImages(folder, { signal });
  const { packages } = await folderPackages(folder, { directory, trust, signal });
  return sourceImages(packages);
}

async function load(
  all: readonly FoundImages[],
  request: LoadImagesRequest,
  { env, report, signal }: Context,
): Promise<LoadResult> {
  const only = request.runtime;
  const order = RUNTIME_NAMES.filter((name) => only === undefined || name === only);
  const runtime = await findImageRuntime({ env, order, signal });
  if (runtime === undefined) {
    throw new CurlewError(
      'IMAGE_LOAD_FAILED',
      `cannot load images: ${order.length > 1 ? 'neither containerd nor docker responds' : `${order.join('')} does not respond`}`,
      {
        hint: 'start the container runtime, or set its socket: CONTAINERD_ADDRESS=/run/…/containerd.sock or DOCKER_HOST',
      },
    );
  }
  const isTrial = request.dryRun === true;
  const failures = createFailures();
  const needs = await planNeeds(
    runtime,
    all.map(({ images }) => images),
    // The load reports an image that cannot be read, after all others.
    { failures: isTrial ? failures : createFailures(), signal },
  );
  if (!isTrial) {
    const missing = new Map(all.map(({ title }, at) => [title, needs[at]?.bytes ?? 0]));
    await requireImageRoom({ root: await imageRoot(runtime.name, { env, signal }), missing }, { signal });
  }
  const results = isTrial
    ? needs
    : (
        await loadPackages(
          runtime,
          all.map((one) => ({ ...one, id: `images ${one.title}` })),
          { report, signal },
        )
      ).map(({ references, bytes }) => ({ missing: references, bytes }));
  failures.check();
  const packages = all.map(({ title, images }, at) => {
    const { missing = [], bytes = 0 } = results[at] ?? {};
    return { package: title, images: images.length, missing, bytes };
  });
  return { runtime: runtime.name, loaded: !isTrial, packages };
}
