/** `curlew versions`: lists the add-on versions of a release, and resolves versions such as 1.2.x. */
import { visible } from '../../core/diagnostic.ts';
import { command, useCase } from '../command.ts';
import { STORE_OPTIONS } from '../options.ts';

const versions = useCase(async () => (await import('../../app/versions.ts')).versions);

export const versionsCommand = command({
  name: 'versions',
  operands: '[name[@version]…]',
  options: {
    from: { type: 'string', required: 'add --from with a store', value: 'STORE', help: 'the store' },
    release: { type: 'string', value: 'R', help: 'the release (default: the current one)' },
    ...STORE_OPTIONS,
  },
  details:
    'Versions are in order; the first is "latest". External add-ons come before those of the release. After an @, use an exact\n' +
    'version, "latest" or a range such as 1.2.x: the result is the version for an installer spec.',
  examples: ['curlew versions --from /srv/dist', 'curlew versions rook@1.0.x --from s3://bucket/dist'],
  run: async ({ operands, options }, context) => versions({ addons: operands, ...options }, context),
  render: ({ addons }) =>
    addons
      .map(({ name, versions: offered, resolved }) => {
        if (resolved !== undefined) return visible(`${name} ${resolved.version} (${resolved.because})`);
        return visible(`${name}: ${offered.map(({ version }) => version).join(' ')}`);
      })
      .join('\n'),
});
