/** Images that a bundle holds beside those of its packages: a package of their own, built for the purpose. */
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { openFileSource } from '../../formats/archive/read.ts';
import { helmImages, imageOverrides } from '../../bundle/image-overrides.ts';
import type { GivenPackage } from '../../bundle/plan-from.ts';
import { canonicalJson, digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { packageFileName } from '../../core/layout.ts';
import type { Arch } from '../../core/ref.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import type { Installer } from '../../spec/installer.ts';
import { planAddons } from '../planning.ts';
import { openBuildPorts } from '../ports/build-ports.ts';
import { buildAddons } from '../../build/build.ts';
import type { Context } from '../context.ts';
import { readConfig, xdgFolder } from '../ports/config.ts';
import type { NetworkRequest } from '../ports/network.ts';
import type { ChoiceRequest } from './choice.ts';

export interface ImagesRequest extends NetworkRequest, Pick<ChoiceRequest, 'layout'> {
  /** Images of registries that are loaded on nodes with the others. */
  readonly image?: readonly string[] | undefined;
  /** amd64 when absent. */
  readonly arch?: Arch | undefined;
}

const NAME = 'extra-images';

/**
 * The images that are asked for, and those that `ekco.podImageOverrides` and `helm.additionalImages` name: these come from
 * known registries only.
 */
export async function imagesAsked(
  installer: Installer,
  request: ImagesRequest,
  context: Context,
): Promise<readonly string[]> {
  const { imageRegistries } = await readConfig(request.config, context);
  const named = [...imageOverrides(installer, imageRegistries), ...helmImages(installer, imageRegistries)];
  const images = [...new Set([...(request.image ?? []).map(readImage), ...named])].toSorted();
  if (images.length === 0 || request.layout === undefined) return images;
  throw new CurlewError('UNSUPPORTED', '--layout kurl: images come to such a bundle in packages only', {
    hint: 'put them into the Manifest of an add-on, and name that with --with',
  });
}

/** A package of images. It is kept in the cache: what has not changed is not fetched again. */
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
  // The build's own folder takes the place of the operator's, whose paths these stay.
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
  const because = `images asked for: ${images.length}`;
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

/** An add-on of nothing but a Manifest. */
async function writeAddon(
  images: readonly string[],
  version: string,
  folderName: string,
  { env, cwd, report }: Context,
): Promise<string> {
  const folder = join(resolve(cwd, xdgFolder(env, 'XDG_CACHE_HOME', '.cache')), 'curlew', NAME, folderName);
  const addon = join(folder, 'packages', NAME, version);
  const lines = images.map((image, at) => `image image-${at + 1} ${image}\n`);
  try {
    await mkdir(addon, { recursive: true });
  } catch (error) {
    throw fileError(`write ${addon}`, error);
  }
  await writeStateFile(join(addon, 'Manifest'), lines.join(''), 0o644);
  report({ type: 'note', level: 'info', text: `images in a package of their own: ${images.length}` });
  return folder;
}
