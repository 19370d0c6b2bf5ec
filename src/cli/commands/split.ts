/** `curlew split`: a bundle in parts that fit onto media. */
import { split } from '../../app/split.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { command } from '../command.ts';
import { PARTS_OPTIONS } from '../options.ts';
import { fileOf } from '../output.ts';
import { formatBytes } from '../render/units.ts';
import { size } from '../values.ts';

export const splitCommand = command({
  name: 'split',
  operands: 'FILE',
  options: {
    size: { type: 'string', read: size, value: 'SIZE', help: 'most bytes of a part, as 4480M or 1.5G' },
    output: {
      type: 'string',
      read: fileOf('split'),
      short: 'o',
      value: 'FILE',
      help: 'name parts after this (default: the bundle itself)',
    },
    ...PARTS_OPTIONS,
    verify: { type: 'boolean', help: 'prove every byte of the bundle while copying' },
    force: { type: 'boolean', help: 'replace parts that are there' },
  },
  details: `Beside the parts FILE.part-001, FILE.part-002… lie the head file FILE.parts.json, which says what they are, and FILE.parts.sha256 for sha256sum --check. Signatures of the bundle go with them.

Every command that takes a bundle takes the head file as well: nothing has to be joined. curlew join-parts makes one file of them again. What was cut off is gone on with by the same command.`,
  examples: ['curlew split bundle.tar.gz --size 4480M', 'curlew split bundle.tar.gz --to /media/one,/media/two'],
  run: async ({ operands: [file], options: { to, ...options } }, context) => {
    if (file === undefined) throw usage('name one file');
    if (options.size === undefined && to.length === 0) throw usage('say with --size how large');
    return split({ file, to: to.flat(), ...options }, context);
  },
  render: ({ media }) =>
    media
      .map(({ head, parts }) => {
        const bytes = parts.reduce((sum, { size }) => sum + size, 0);
        return `${head}: ${counted(parts.length, 'part')}, ${formatBytes(bytes)}`;
      })
      .join('\n'),
});

function usage(what: string): CurlewError {
  return new CurlewError('USAGE', `curlew split: ${what}`, { hint: 'curlew split FILE --size SIZE' });
}
