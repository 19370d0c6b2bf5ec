/** `curlew load-images`: loads images of packages into this machine's container runtime, without installing anything. */
import { LOAD_IMAGES } from '../../requests/node.ts';
import type { LoadResult } from '../../app/load-images.ts';
import { commandFor } from '../command.ts';
import { columns } from '../render/columns.ts';
import { formatBytes } from '../render/units.ts';

const DETAILS = `Default: the packages in the install folder. --dir is an unpacked bundle, or any folder with addons/NAME/VERSION/images, such as an unpacked bundle of kURL. Does not unpack or move anything, and runs no hooks.

Loads only missing images: those that the container runtime does not have by name and digest, and only their missing blobs. CONTAINERD_ADDRESS and DOCKER_HOST override the default sockets.

FLAG is one of kURL's flags. kurl-install-directory works like --install-dir; others, such as airgap, have no effect.`;

export const command = commandFor(LOAD_IMAGES, {
  details: DETAILS,
  examples: [
    'curlew load-images --bundle bundle.tar.gz',
    'curlew load-images --dir /srv/unpacked --dry-run',
    'curlew load-images',
  ],
  left: 'images that are loaded stay: the same command loads the others',
  run: async ({ request }, context) => (await import('../../app/load-images.ts')).loadImages(request, context),
  render: table,
});

function table({ runtime, loaded, packages }: LoadResult): string {
  const rows = packages.map(({ package: name, images, missing, bytes }) => {
    if (missing.length === 0) return [name, `${images} ${images === 1 ? 'image' : 'images'}, all present`];
    return [name, `${missing.length} of ${images} ${loaded ? 'loaded' : 'missing'}, ${formatBytes(bytes)}`];
  });
  const count = packages.reduce((sum, { missing }) => sum + missing.length, 0);
  const bytes = packages.reduce((sum, one) => sum + one.bytes, 0);
  const last = `${count} ${count === 1 ? 'image' : 'images'}${loaded ? ' loaded into' : ' to load into'} ${runtime}, ${formatBytes(bytes)}`;
  return [...columns(rows), last].join('\n');
}
