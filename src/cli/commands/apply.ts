/** `curlew apply`: recreates a bundle from a delta. */
import { NOTHING_WRITTEN } from '../../core/errors.ts';
import { APPLY } from '../../requests/bundle.ts';
import { commandFor } from '../command.ts';
import { formatBytes } from '../render/units.ts';

export const command = commandFor(APPLY, {
  details:
    'The result is identical to the bundle that the delta was created from, bit for bit, so the signatures of that bundle remain valid. If the base is ' +
    'incomplete, the error lists the missing files, and nothing is written.',
  examples: ['curlew apply delta.tar.gz --base bundle-1.tar.gz -o bundle-2.tar.gz'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/apply.ts')).apply(request, context),
  render: ({ file, size, delta, digest, signedBy }) => {
    const signature = signedBy === undefined ? '' : `\nthe delta is signed with ${signedBy}`;
    return `${file}: ${formatBytes(size)}, ${formatBytes(delta)} of it from the delta\ncontents ${digest}${signature}`;
  },
});
