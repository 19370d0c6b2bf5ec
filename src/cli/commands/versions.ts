/** `curlew versions`: lists the add-on versions of a release, and resolves versions such as 1.2.x. */
import { VERSIONS } from '../../requests/release.ts';
import { visible } from '../../core/diagnostic.ts';
import { formatBytes } from '../../core/units.ts';
import { commandFor } from '../command.ts';
import { columns } from '../render/columns.ts';

export const command = commandFor(VERSIONS, {
  details:
    'Versions are in order; the first is "latest". External add-ons come before those of the release. After an @, use an exact\n' +
    'version, "latest" or a range such as 1.2.x: the result is the version for an installer spec. The versions of a named add-on\n' +
    'are shown with the sizes of their packages. With --key, the signature of the release is verified first, and external add-ons,\n' +
    'which it does not cover, are left out.',
  examples: ['curlew versions --from /srv/dist', 'curlew versions rook@1.0.x --from s3://bucket/dist'],
  run: async ({ request }, context) => (await import('../../app/versions.ts')).versions(request, context),
  render: ({ addons, release, published, signedBy, store }, { request }) => {
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
