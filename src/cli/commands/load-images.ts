/** `curlew load-images`: the images of packages into this machine's container runtime, without installing anything. */
import { DOWNGRADE_OPTION, FOLDER_OPTIONS, NETWORK_OPTIONS, SIGNED_OPTIONS } from '../options.ts';
import { access } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { PlacedEntry } from '../../formats/archive/entry.ts';
import { withoutKurlFolder } from '../../bundle/kurl-layout.ts';
import { CurlewError } from '../../core/errors.ts';
import { ADDON_JSON, OMITTED_JSON, ownerOf, prefixOf, TOC_NAME } from '../../core/layout.ts';
import { findImages, sourceImages, type FoundImages } from '../../runtime/images/find-images.ts';
import { findImageRuntime, RUNTIME_NAMES } from '../../runtime/images/find-runtime.ts';
import { loadPackages } from '../../runtime/images/load-packages.ts';
import { planNeeds } from '../../runtime/images/plan.ts';
import { archivePackages } from '../../runtime/node/source.ts';
import { folderPackages } from '../../runtime/node/source-folder.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { checkedIndex } from '../../app/ports/install-source.ts';
import { openBundle } from '../../app/archives/open-bundle.ts';
import { folderOf } from '../../app/install-folder.ts';
import { flagsOf } from '../node-spec.ts';
import { openArchive } from '../../app/archives/open-archive.ts';
import { columns } from '../render/columns.ts';
import { formatBytes } from '../render/units.ts';
import { trustOf, type Trust } from '../../app/ports/trust.ts';

interface LoadedPackage {
  /** `demo-1.0` */
  readonly package: string;
  readonly images: number;
  /** References of the images that were missing. */
  readonly missing: readonly string[];
  /** Sent, or to be sent. */
  readonly bytes: number;
}

interface LoadResult {
  readonly runtime: string;
  /** False with --dry-run. */
  readonly loaded: boolean;
  readonly packages: readonly LoadedPackage[];
}

const DETAILS = `Without --bundle or --dir the packages in the install folder count. --dir names an unpacked bundle, or any folder with addons/NAME/VERSION/images in it, such as an unpacked bundle of kURL. Nothing is unpacked or moved, and no hook runs.

Only what is missing is loaded: images that the container runtime does not know by name and digest, and of those only the blobs that it lacks. CONTAINERD_ADDRESS and DOCKER_HOST name other sockets than the usual ones.

FLAG is one of kURL's. kurl-install-directory counts, as --install-dir does; the others, such as airgap, make no difference.`;

export const loadImagesCommand: Command<LoadResult> = {
  name: 'load-images',
  summary: 'Load the images of packages, and install nothing',
  operands: '[FLAG…]',
  details: DETAILS,
  examples: [
    'curlew load-images --bundle bundle.tar.gz',
    'curlew load-images --dir /srv/unpacked --dry-run',
    'curlew load-images',
  ],
  options: {
    bundle: { type: 'string', value: 'FILE', help: 'take the images from a bundle or a package' },
    dir: { type: 'string', value: 'DIR', help: 'take them from an unpacked bundle' },
    ...FOLDER_OPTIONS,
    runtime: { type: 'string', value: 'NAME', help: 'containerd or docker (default: the first that answers)' },
    'dry-run': { type: 'boolean', help: 'show what is missing, and load nothing' },
    ...SIGNED_OPTIONS,
    ...DOWNGRADE_OPTION,
    config: NETWORK_OPTIONS.config,
  },
  run: async (given, context) => {
    const { args } = flagsOf(given, context);
    const [bundle, dir] = [args.text('bundle'), args.text('dir')];
    if (bundle !== undefined && dir !== undefined) throw usage('only one of --bundle and --dir can be used');
    // What lies in the install folder was put there by a run, which has asked for it.
    const directory = folderOf(args.options, context);
    const trust =
      bundle === undefined && dir === undefined ? undefined : await trustOf(args.options, context, { directory });
    const path = bundle === undefined ? undefined : resolve(context.cwd, bundle);
    await using source = path === undefined ? undefined : await openArchive(path, context);
    if (source === undefined) return await load(await imagesBelow(args, trust, context), args, context);
    const { signal } = context;
    const checked = await checkedIndex(source, source.whole, { trust, signal });
    const { index: whole, read, requireAll } = await openBundle(source, checked, { directory, signal });
    const index = whole.entries.some(({ path }) => ownerOf(path) !== undefined) ? whole : withoutKurlFolder(whole);
    await requireAll(index.entries.filter(isOfImages));
    const packages = await archivePackages(source, index, { read, signal });
    return await load(sourceImages(packages), args, context);
  },
  render: (result) => table(result),
};

/** What is read of a package for its images: hooks may have changed the rest, where it is in place. */
function isOfImages({ path }: PlacedEntry): boolean {
  const owner = ownerOf(path);
  if (owner === undefined) return false;
  const below = path.slice(prefixOf(owner).length);
  return [ADDON_JSON, OMITTED_JSON].includes(below) || below.startsWith('images/');
}

function usage(what: string): CurlewError {
  return new CurlewError('USAGE', `curlew load-images: ${what}`, {
    hint: 'curlew load-images --help lists the options',
  });
}

/** Of an unpacked bundle its table of contents tells more than its folders do: what was moved away, what is damaged. */
async function imagesBelow(
  args: Arguments,
  trust: Trust | undefined,
  { cwd, signal }: CommandContext,
): Promise<readonly FoundImages[]> {
  const directory = folderOf(args.options, { cwd });
  const dir = args.text('dir');
  const folder = dir === undefined ? directory : resolve(cwd, dir);
  const hasContents = await access(join(folder, TOC_NAME)).then(
    () => true,
    () => false,
  );
  if (!hasContents && trust !== undefined) {
    throw new CurlewError('SIGNATURE_INVALID', `verify ${folder}: it has no ${TOC_NAME} that could be signed`);
  }
  if (!hasContents) return findImages(folder, { signal });
  const { packages } = await folderPackages(folder, { directory, trust, signal });
  return sourceImages(packages);
}

async function load(
  found: readonly FoundImages[],
  args: Arguments,
  { env, report, signal }: CommandContext,
): Promise<LoadResult> {
  const only = args.text('runtime');
  const order = RUNTIME_NAMES.filter((name) => only === undefined || name === only);
  if (order.length === 0) throw usage(`--runtime ${only ?? ''}: known are ${RUNTIME_NAMES.join(', ')}`);
  const runtime = await findImageRuntime({ env, order, signal });
  if (runtime === undefined) {
    throw new CurlewError(
      'IMAGE_LOAD_FAILED',
      `load images: ${order.length > 1 ? 'neither containerd nor docker answers' : `${order.join('')} does not answer`}`,
      {
        hint: 'start the container runtime, or name its socket: CONTAINERD_ADDRESS=/run/…/containerd.sock, DOCKER_HOST',
      },
    );
  }
  const isTrial = args.flag('dry-run');
  const results = isTrial
    ? await planNeeds(
        runtime,
        found.map(({ images }) => images),
        { signal },
      )
    : (
        await loadPackages(
          runtime,
          found.map((one) => ({ ...one, id: `images ${one.title}` })),
          { report, signal },
        )
      ).map(({ references, bytes }) => ({ missing: references, bytes }));
  const packages = found.map(({ title, images }, at) => {
    const { missing = [], bytes = 0 } = results[at] ?? {};
    return { package: title, images: images.length, missing, bytes };
  });
  return { runtime: runtime.name, loaded: !isTrial, packages };
}

function table({ runtime, loaded, packages }: LoadResult): string {
  const rows = packages.map(({ package: name, images, missing, bytes }) => {
    if (missing.length === 0) return [name, `${images} ${images === 1 ? 'image' : 'images'}, all there`];
    return [name, `${missing.length} of ${images} ${loaded ? 'loaded' : 'missing'}, ${formatBytes(bytes)}`];
  });
  const count = packages.reduce((sum, { missing }) => sum + missing.length, 0);
  const bytes = packages.reduce((sum, one) => sum + one.bytes, 0);
  const last = `${count} ${count === 1 ? 'image' : 'images'}${loaded ? ' loaded into' : ' to load into'} ${runtime}, ${formatBytes(bytes)}`;
  return [...columns(rows), last].join('\n');
}
