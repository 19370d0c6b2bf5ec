/** Images that a bundle holds beside those of its packages: a package of their own, built for the purpose. */
import { NETWORK_OPTIONS } from './options.ts';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { openFileSource } from '../formats/archive/read.ts';
import { helmImages, imageOverrides } from '../bundle/image-overrides.ts';
import type { GivenPackage } from '../bundle/plan-from.ts';
import { canonicalJson, digestOf, hexOf } from '../core/digest.ts';
import { CurlewError, fileError } from '../core/errors.ts';
import { formatImageRef, parseImageRef } from '../core/image-ref.ts';
import { packageFileName } from '../core/layout.ts';
import { hashFile } from '../platform/files/hash-file.ts';
import { writeStateFile } from '../platform/files/state-file.ts';
import type { Installer } from '../spec/installer.ts';
import { archOf } from './values.ts';
import { planAddons } from '../app/planning.ts';
import { openBuildPorts } from '../app/ports/build-ports.ts';
import { buildAddons } from '../build/build.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { readConfig, xdgFolder } from '../app/ports/config.ts';

export const BUNDLE_IMAGE_OPTIONS = {
  image: {
    type: 'string',
    multiple: true,
    value: 'REF',
    help: 'an image of a registry, loaded on nodes with the others',
  },
  ...NETWORK_OPTIONS,
} satisfies OptionSpecs;

const NAME = 'extra-images';

/** The images that the words ask for, and those that `ekco.podImageOverrides` and `helm.additionalImages` name, which may not come from anywhere. */
export async function imagesAsked(
  installer: Installer,
  args: Arguments,
  context: CommandContext,
): Promise<readonly string[]> {
  const { imageRegistries } = await readConfig(args.text('config'), context);
  const named = [...imageOverrides(installer, imageRegistries), ...helmImages(installer, imageRegistries)];
  const images = [...new Set([...args.texts('image').map(readImage), ...named])].toSorted();
  if (images.length === 0 || args.text('layout') === undefined) return images;
  throw new CurlewError('UNSUPPORTED', '--layout kurl: images come to such a bundle in packages only', {
    hint: 'put them into the Manifest of an add-on, and name that with --with',
  });
}

/** A package of images. It is kept in the cache: what has not changed is not fetched again. */
export async function openImages(
  images: readonly string[],
  args: Arguments,
  context: CommandContext,
): Promise<GivenPackage & AsyncDisposable> {
  const version = hexOf(digestOf(canonicalJson(images))).slice(0, 12);
  const arch = archOf(args);
  const folder = await writeAddon(images, version, `${version}-${arch}`, context);
  const out = join(folder, 'out');
  const within = { ...context, cwd: folder };
  // The build's own folder takes the place of the operator's, whose paths these stay.
  const path = (text: string | undefined): string | undefined =>
    text === undefined ? undefined : resolve(context.cwd, text);
  const paths = { config: path(args.text('config')), caFile: path(args.text('ca-file')) };
  const request = { ...args.options, ...paths, out, arch };
  const plan = await planAddons([`packages/${NAME}/${version}`], request, within);
  await using ports = await openBuildPorts(plan.addons, request, within);
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
  { env, cwd, report }: CommandContext,
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
