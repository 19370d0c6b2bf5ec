/** `curlew versions`: which versions of which add-ons a release has, and which one a word such as 1.2.x means. */
import { versions } from '../../app/versions.ts';
import { visible } from '../../core/diagnostic.ts';
import { command } from '../command.ts';
import { STORE_OPTIONS } from '../options.ts';

export const versionsCommand = command({
  name: 'versions',
  operands: '[name[@version]…]',
  options: {
    from: { type: 'string', required: 'name a store with --from', value: 'STORE', help: 'the store to ask' },
    release: { type: 'string', value: 'R', help: 'which release (default: the current one)' },
    ...STORE_OPTIONS,
  },
  details:
    'Versions stand in order; the first is what "latest" means. External add-ons stand before those of the release. Behind an @ stands an exact version, "latest" or a range\n' +
    'such as 1.2.x, and the answer is the version that an installer spec would get.',
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
