/** `curlew apply`: recreates a bundle from a delta. */
import { CurlewError } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { NETWORK_OPTIONS, SIGNED_OPTIONS } from '../options.ts';
import { fileOf } from '../output.ts';
import { formatBytes } from '../render/units.ts';

const apply = useCase(async () => (await import('../../app/apply.ts')).apply);

export const applyCommand = command({
  name: 'apply',
  operands: 'DELTA',
  options: {
    base: {
      type: 'string',
      multiple: true,
      value: 'PLACE',
      help: 'bundle, folder of bundles or install folder with the rest; can be repeated',
    },
    output: { type: 'string', read: fileOf('apply'), short: 'o', value: 'FILE', help: 'the bundle to write' },
    force: { type: 'boolean', help: 'replace an existing file' },
    ...SIGNED_OPTIONS,
    config: NETWORK_OPTIONS.config,
  },
  details:
    'The result is identical to the bundle that the delta was created from, bit for bit, so the signatures of that bundle remain valid. If the base is ' +
    'incomplete, the error lists the missing files, and nothing is written.',
  examples: ['curlew apply delta.tar.gz --base bundle-1.tar.gz -o bundle-2.tar.gz'],
  run: async ({ operands: [delta], options: { output, ...options } }, context) => {
    if (delta === undefined || output === undefined || options.base.length === 0) {
      throw new CurlewError('USAGE', 'curlew apply: a delta, a base and an output file are required', {
        hint: 'curlew apply DELTA --base PLACE -o FILE',
      });
    }
    return apply({ delta, output, ...options }, context);
  },
  render: ({ file, size, delta, digest, signedBy }) => {
    const signature = signedBy === undefined ? '' : `\nthe delta is signed with ${signedBy}`;
    return `${file}: ${formatBytes(size)}, ${formatBytes(delta)} of it from the delta\ncontents ${digest}${signature}`;
  },
});
