/** `curlew versions`: lists the add-on versions of a release, and resolves versions such as 1.2.x. */
import { VERSIONS } from '../../requests/release.ts';
import { visible } from '../../core/diagnostic.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(VERSIONS, {
  details:
    'Versions are in order; the first is "latest". External add-ons come before those of the release. After an @, use an exact\n' +
    'version, "latest" or a range such as 1.2.x: the result is the version for an installer spec.',
  examples: ['curlew versions --from /srv/dist', 'curlew versions rook@1.0.x --from s3://bucket/dist'],
  run: async ({ request }, context) => (await import('../../app/versions.ts')).versions(request, context),
  render: ({ addons, release, store }, { request }) =>
    [
      ...addons.map(({ name, versions: offered, resolved }) => {
        if (resolved !== undefined) return visible(`${name} ${resolved.version} (${resolved.because})`);
        return visible(`${name}: ${offered.map(({ version }) => version).join(' ')}`);
      }),
      ...(request.addons.length > 0 ? [] : [visible(`release ${release} of ${store}`)]),
    ].join('\n'),
});
