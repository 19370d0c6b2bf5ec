/** `curlew versions`: lists the add-on versions of a release, resolves versions such as 1.2.x, and compares releases. */
import { VERSIONS } from '../../requests/release.ts';
import { visible } from '../../core/diagnostic.ts';
import { counted } from '../../core/counted.ts';
import { formatBytes } from '../../core/units.ts';
import { NOTHING_WRITTEN } from '../../core/errors.ts';
import type { Versions } from '../../app/versions.ts';
import { commandFor } from '../command.ts';
import { columns } from '../render/columns.ts';

export const command = commandFor(VERSIONS, {
  details:
    'Versions are in order; the first is "latest". External add-ons come before those of the release. After an @, use an exact\n' +
    'version, "latest" or a range such as 1.2.x: the result is the version for an installer spec. The versions of a named add-on\n' +
    'are shown with the sizes of their packages. With --key, the signature of the release is verified first, and external add-ons,\n' +
    'which it does not cover, are left out.\n\n' +
    'With --since, it shows which versions and images the release adds, removes and replaces, compared with an earlier one.',
  examples: [
    'curlew versions --from /srv/dist',
    'curlew versions rook@1.0.x --from s3://bucket/dist',
    'curlew versions --from /srv/dist --since v1.4.0',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/versions.ts')).versions(request, context),
  render: (result, { request }) => {
    const { addons, release, published, signedBy, store, since } = result;
    if (since !== undefined) return changesText(since, result);
    const isAll = request.addons.length === 0;
    // A resolved version alone is what a script asks for.
    const isList = addons.every(({ resolved }) => resolved === undefined);
    const time = published === undefined ? '' : `, published ${published.slice(0, 16).replace('T', ' ')} UTC`;
    const proof = signedBy === undefined ? '' : `, signed with ${signedBy}`;
    return [
      ...addons.flatMap(({ name, versions: offered, resolved }) => {
        if (resolved !== undefined) return visible(`${name} ${resolved.version} (${resolved.because})`);
        if (isAll) return visible(`${name}: ${offered.map(({ version }) => version).join(' ')}`);
        return columns(
          offered.map(({ version, arches, sizes }) => [
            visible(`${name} ${version}`),
            arches.map((arch, at) => `${arch} ${formatBytes(sizes[at] ?? 0)}`).join(', ') || 'not for curlew',
          ]),
        );
      }),
      ...(isList ? [visible(`release ${release} of ${store}${time}${proof}`)] : []),
    ].join('\n');
  },
});

function changesText(since: string, { changes = [], release, store }: Versions): string {
  const mixed = changes.some(({ arches }) => arches.includes('arm64'));
  const rows = changes.flatMap(({ name, arches, size, lines }) => [
    visible(`${name}${mixed ? ` (${arches.join(', ')})` : ''}: ${size}`),
    ...lines.map((line) => visible(`  ${line}`)),
  ]);
  const names = new Set(changes.map(({ name }) => name));
  const sum = names.size === 0 ? 'no package differs' : `${counted(names.size, 'add-on')} changed`;
  return [...rows, visible(`${sum} between ${since} and ${release} of ${store}`)].join('\n');
}
