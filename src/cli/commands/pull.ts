/** `curlew pull`: downloads a bundle or package, resumes, and verifies it. */
import { PULL } from '../../requests/archive.ts';
import type { PlannedFile, PulledFile } from '../../app/pull.ts';
import { commandFor } from '../command.ts';
import { formatBytes } from '../render/units.ts';

export const command = commandFor(PULL, {
  details: `An address is a URL, s3://bucket/key, or a file; further addresses are mirrors, used in order after a failure. curlew fetches the table of contents at the end first, and checks its signature before it fetches the rest. It verifies each entry on arrival, and fetches only damaged entries again.

  After a failure, Ctrl-C or a crash, run the same command again to resume: an incomplete download is in FILE.partial. A download started with curl -o FILE is also resumed.`,
  examples: [
    'curlew pull https://dl.example/bundle.tar.gz --key release.pub --dry-run',
    'curlew pull https://dl.example/bundle.tar.gz --key release.pub',
    'curlew pull https://a.example/b.tar.gz https://b.example/b.tar.gz',
    'curlew pull s3://bucket/dist/r1/web-1.0.0.tar.gz --limit-rate 10M',
  ],
  left: 'the same command continues with what has arrived',
  run: async ({ request, options: { dryRun } }, context): Promise<PulledFile | PlannedFile> => {
    const { planPullFile, pullFile } = await import('../../app/pull.ts');
    return dryRun ? planPullFile(request, context) : pullFile(request, context);
  },
  render: (result) => {
    const { file, contents, signedBy } = result;
    const digest = contents === undefined ? '' : `\ncontents ${contents}`;
    const signature = signedBy === undefined ? '' : `\nsigned with ${signedBy}`;
    return `${file}: ${'missing' in result ? plannedText(result) : pulledText(result)}${digest}${signature}`;
  },
});

function pulledText({ size, fetched }: PulledFile): string {
  return `ok, ${formatBytes(size)}, ${fetched === 0 ? 'already present' : `${formatBytes(fetched)} fetched`}`;
}

function plannedText({ size, missing, from }: PlannedFile): string {
  if (missing === 0) return `${formatBytes(size)}, already present`;
  return `${formatBytes(size)}, ${formatBytes(missing)} would be fetched from ${from}`;
}
