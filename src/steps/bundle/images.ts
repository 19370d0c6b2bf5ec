/** Extra images of a bundle, which are built into a separate package. */
import { join, resolve } from 'node:path';
import { openFileSource } from '../../formats/archive/read.ts';
import { helmImages, imageOverrides } from '../../ship/bundle/image-overrides.ts';
import type { GivenPackage } from '../../ship/bundle/plan-from.ts';
import { canonicalJson, digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { packageFileName } from '../../core/layout.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import type { Installer } from '../../spec/installer.ts';
import { planAddons } from '../build/plan-packages.ts';
import { openBuildPorts } from '../build/build-ports.ts';
import { buildAddons } from '../../build/build.ts';
import type { Context } from '../../core/context.ts';
import { readConfig, cacheFolder } from '../open/config.ts';
import type { ImagesRequest } from '../../requests/bundle.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

const NAME = 'extra-images';

/**
 * Requested images, and those in `ekco.podImageOverrides` and `helm.additionalImages`, which must be from known registries.
 */
export async function extraImages(
  installer: Installer,
  request: ImagesRequest,
  context: Context,
): Promise<readonly string[]> {
  const { imageRegistries } = await readConfig(request.config, context);
  const named = [...imageOverrides(installer, imageRegistries), ...helmImages(installer, imageRegistries)];
  const images = [...new Set([...(request.image ?? []).map(readImage), ...named])].toSorted();
  if (images.length === 0 || request.layout === undefined) return images;
  throw new CurlewError('UNSUPPORTED', '--layout kurl: a bundle of this layout can contain images only in packages', {
    hint: 'add them to the Manifest of an add-on, and name it with --with',
  });
}

/** Builds a package of images. It is kept in the cache, so unchanged images are not fetched again. */
export async function openImages(
  images: readonly string[],
  request: ImagesRequest,
  context: Context,
): Promise<GivenPackage & AsyncDisposable> {
  const version = hexOf(digestOf(canonicalJson(images))).slice(0, 12);
  const arch = request.arch ?? 'amd64';
  const folder = await writeAddon(images, version, `${version}-${arch}`, context);
  const out = join(folder, 'out');
  const within = { ...context, cwd: folder };
  // The build uses its own current folder, but these paths are relative to the operator's.
  const path = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : resolve(context.cwd, text);
  const paths = { config: path(request.config), caFile: path(request.caFile) };
  const building = { ...request, ...paths, out, arch };
  const plan = await planAddons([`packages/${NAME}/${version}`], building, within);
  await using ports = await openBuildPorts(plan.addons, building, within);
  const [built] = await buildAddons(plan, ports, { jobs: 1, lock: 'compare', signal: context.signal });
  if (built === undefined) throw new Error(`nothing was built in ${folder}`);
  const { addon, path: file, size, index } = built;
  const { name, tree, digest } = addon;
  const { digest: sha256 } = await hashFile(file, context);
  const because = `requested images: ${images.length}`;
  const key = packageFileName({ name, version }, arch);
  const resolved = { name, version, tree, arch, requested: version, digest, sha256, size, because, key } as const;
  const source = await openFileSource(file);
  return {
    resolved: { ...resolved, role: 'machine' },
    source,
    index,
    [Symbol.asyncDispose]: async () => source[Symbol.asyncDispose](),
  };
}

function readImage(text: string): string {
  const ref = parseImageRef(text);
  if (typeof ref !== 'string') return formatImageRef(ref);
  throw new CurlewError('USAGE', `--image ${JSON.stringify(text.slice(0, 200))}: ${ref}`);
}

/** Writes an add-on that has only a Manifest. */
async function writeAddon(
  images: readonly string[],
  version: string,
  folderName: string,
  { env, cwd, report }: Context,
): Promise<string> {
  const folder = join(resolve(cwd, cacheFolder(env)), NAME, folderName);
  const addon = join(folder, 'packages', NAME, version);
  const lines = images.map((image, at) => `image image-${at + 1} ${image}\n`);
  try {
    await makeMissing(addon);
  } catch (error) {
    throw fileError(`write ${addon}`, error);
  }
  await writeStateFile(join(addon, 'Manifest'), lines.join(''), 0o644);
  report({ type: 'note', level: 'info', text: `extra images in a separate package: ${images.length}` });
  return folder;
}
