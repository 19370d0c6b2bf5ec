/** `curlew split`: splits a bundle into parts that fit on media. */
import { counted } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { PARTS_OPTIONS } from '../options.ts';
import { fileOf } from '../output.ts';
import { formatBytes } from '../render/units.ts';
import { size } from '../values.ts';

const split = useCase(async () => (await import('../../app/split.ts')).split);

export const splitCommand = command({
  name: 'split',
  operands: 'FILE',
  options: {
    size: { type: 'string', read: size, value: 'SIZE', help: 'maximum size of a part, such as 4480M or 1.5G' },
    output: {
      type: 'string',
      read: fileOf('split'),
      short: 'o',
      value: 'FILE',
      help: 'base name of the parts (default: the name of the bundle)',
    },
    ...PARTS_OPTIONS,
    verify: { type: 'boolean', help: 'verify every byte of the bundle while copying' },
    force: { type: 'boolean', help: 'replace existing parts' },
  },
  details: `Writes the parts FILE.part-001, FILE.part-002…, the head file FILE.parts.json, which describes them, and FILE.parts.sha256 for sha256sum --check. Also copies the signatures of the bundle.

  Every command that reads a bundle also accepts the head file, so joining is not necessary. curlew join-parts joins the parts. After an interruption, run the same command again to resume.`,
  examples: ['curlew split bundle.tar.gz --size 4480M', 'curlew split bundle.tar.gz --to /media/one,/media/two'],
  run: async ({ operands: [file], options: { to, ...options } }, context) => {
    if (file === undefined) throw usage('specify one file');
    if (options.size === undefined && to.length === 0) throw usage('add --size or --to');
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
