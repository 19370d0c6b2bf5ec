/** `curlew inspect`: describes a package, a bundle or a support bundle, from its first entry and its table of contents. */
import { INSPECT } from '../../requests/archive.ts';
import type { InspectedPackage } from '../../app/inspect.ts';
import { visible } from '../../core/diagnostic.ts';
import { NOTHING_WRITTEN } from '../../core/errors.ts';
import type { PlacedEntry } from '../../formats/archive/entry.ts';
import { commandFor } from '../command.ts';
import { deltaLines } from '../render/delta.ts';
import { supportLines } from '../render/support-bundle.ts';
import { formatBytes } from '../render/units.ts';

const WHOLE: NonNullable<InspectedPackage['omitted']> = { folders: [], bytes: 0 };

export const command = commandFor(INSPECT, {
  examples: ['curlew inspect bundle.tar.gz', 'curlew inspect bundle.tar.gz --json | jq .packages'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => {
    const { inspectSupport } = await import('../../app/inspect-support.ts');
    const support = await inspectSupport(request, context);
    return support ?? (await import('../../app/inspect.ts')).inspect(request, context);
  },
  render: (result) => {
    if ('support' in result) return [`${result.path}: a support bundle`, ...supportLines(result.support)].join('\n');
    const { path, size, digest, packages, delta, files } = result;
    return [
      `${path}: ${formatBytes(size)}`,
      line('contents', digest),
      ...(delta === undefined ? [] : deltaLines(delta)),
      ...packages.flatMap(packageLines),
      ...(files ?? []).map(fileLine),
    ].join('\n');
  },
});

function packageLines(addon: InspectedPackage): readonly string[] {
  const { name, version, arch, hooks, images, os, omitted = WHOLE, unpacked, kubernetesVersion } = addon;
  const included = os.filter((folder) => !omitted.folders.includes(folder));
  const rows: readonly (readonly [string, string])[] = [
    ['package', `${name} ${version} (${arch})`],
    ['digest', addon.digest],
    ['unpacked', `${formatBytes(unpacked.files - omitted.bytes)} files, ${formatBytes(unpacked.images)} images`],
    ['hooks', hooks.join(' ') || 'none'],
    ...(kubernetesVersion === undefined ? [] : ([['for', `Kubernetes ${kubernetesVersion}`]] as const)),
    ...(included.length > 0 ? ([['systems', included.join(' ')]] as const) : []),
    ...(omitted.folders.length > 0 ? ([['without', omitted.folders.join(' ')]] as const) : []),
    ...images.map(({ id, reference }) => ['image', `${id} ${reference}`] as const),
  ];
  return ['', ...rows.map(([label, text]) => line(label, text))];
}

/** Short labels, so that a line with a digest has at most 80 columns. */
function line(label: string, text: string): string {
  return visible(`${label.padEnd(8)} ${text}`);
}

function fileLine({ path, mode, size, digest, linkTo }: PlacedEntry): string {
  const link = linkTo === undefined ? '' : ` -> ${linkTo}`;
  return visible(`${mode.toString(8).padStart(4, '0')} ${String(size).padStart(12)} ${digest} ${path}${link}`);
}
