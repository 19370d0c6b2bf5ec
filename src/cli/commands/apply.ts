/** `curlew apply`: the whole bundle, from a delta and what is there. */
import { apply } from '../../app/apply.ts';
import { CurlewError } from '../../core/errors.ts';
import { command } from '../command.ts';
import { NETWORK_OPTIONS, SIGNED_OPTIONS } from '../options.ts';
import { fileOf } from '../output.ts';
import { formatBytes } from '../render/units.ts';

export const applyCommand = command({
  name: 'apply',
  operands: 'DELTA',
  options: {
    base: {
      type: 'string',
      multiple: true,
      value: 'PLACE',
      help: 'bundle, folder of bundles or install folder that has the rest; may be repeated',
    },
    output: { type: 'string', read: fileOf('apply'), short: 'o', value: 'FILE', help: 'the bundle to write' },
    force: { type: 'boolean', help: 'replace the file if it is there' },
    ...SIGNED_OPTIONS,
    config: NETWORK_OPTIONS.config,
  },
  details:
    'The result is bit for bit the bundle that the delta was made of, so signatures of that bundle hold for it. A base ' +
    'that lacks something is refused with what it lacks, before anything is written.',
  examples: ['curlew apply delta.tar.gz --base bundle-1.tar.gz -o bundle-2.tar.gz'],
  run: async ({ operands: [delta], options: { output, ...options } }, context) => {
    if (delta === undefined || output === undefined || options.base.length === 0) {
      throw new CurlewError('USAGE', 'curlew apply: one delta, a base and a file to write are needed', {
        hint: 'curlew apply DELTA --base PLACE -o FILE',
      });
    }
    return apply({ delta, output, ...options }, context);
  },
  render: ({ file, size, delta, digest, signedBy }) => {
    const signature = signedBy === undefined ? '' : `\nthe delta is signed with ${signedBy}`;
    return `${file}: ${formatBytes(size)}, ${formatBytes(delta)} of it by the delta\ncontents ${digest}${signature}`;
  },
});
