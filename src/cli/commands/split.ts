/** `curlew split`: splits a bundle into parts that fit on media. */
import { SPLIT } from '../../requests/bundle.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError, NOTHING_WRITTEN } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { formatBytes } from '../render/units.ts';

export const command = commandFor(SPLIT, {
  details: `Writes the parts FILE.part-001, FILE.part-002…, the head file FILE.parts.json, which describes them, and FILE.parts.sha256 for sha256sum --check. Also copies the signatures of the bundle.

  Every command that reads a bundle also accepts the head file, so joining is not necessary. curlew join-parts joins the parts. After an interruption, run the same command again to resume.`,
  examples: [
    'curlew split bundle.tar.gz --size 4480M --dry-run',
    'curlew split bundle.tar.gz --to /media/one,/media/two',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => {
    if (request.size === undefined && request.to.length === 0) {
      throw new CurlewError('USAGE', 'curlew split: add --size or --to', { hint: 'curlew split FILE --size SIZE' });
    }
    return (await import('../../app/split.ts')).split(request, context);
  },
  listsSteps: true,
  render: ({ dryRun, media }) => {
    const lines = media.map(({ head, parts }) => {
      const bytes = parts.reduce((sum, { size }) => sum + size, 0);
      return `${head}: ${counted(parts.length, 'part')}, ${formatBytes(bytes)}`;
    });
    return [...lines, ...(dryRun ? ['nothing was written'] : [])].join('\n');
  },
});
