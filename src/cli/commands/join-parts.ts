/** `curlew join-parts`: joins the parts of a bundle, or only checks them. */
import { JOIN_PARTS } from '../../requests/bundle.ts';
import type { CheckedParts, JoinedParts } from '../../app/join-parts.ts';
import { counted } from '../../core/counted.ts';
import { ERROR_CODES, errorAbout, NOTHING_WRITTEN } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { STANDARD_OUTPUT } from '../output.ts';
import { columns } from '../render/columns.ts';
import { formatBytes } from '../render/units.ts';
import { openStandardOutput } from '../standard-output.ts';

const usage = errorAbout('USAGE', 'curlew join-parts', 'curlew join-parts NAME.parts.json -o FILE');

type JoinResult = JoinedParts | CheckedParts | { readonly kind: 'sent' };

export const command = commandFor(JOIN_PARTS, {
  details: `HEAD is the file NAME.parts.json of the parts. Parts are searched in its folder and in the given folders. Missing, damaged, swapped and unrelated parts are reported before anything is written.

  The head file proves that parts belong together, not who created them. With --key, the signature next to it is verified against the table of contents before anything is written, and against every byte before the file appears; without --key, the result reports that no signature was checked.

  On a terminal, media can be inserted one after the other: curlew asks for the next one. Copy the head file to a disk first.`,
  examples: [
    'curlew join-parts bundle.tar.gz.parts.json -o bundle.tar.gz',
    'curlew join-parts bundle.tar.gz.parts.json /media/one /media/two -o b.tar.gz',
    'curlew join-parts bundle.tar.gz.parts.json --check --key release.pub',
    'curlew join-parts bundle.tar.gz.parts.json -o - | tar -xz',
  ],
  left: NOTHING_WRITTEN,
  run: async ({ request: { output, force, ...request }, options: { check, json } }, context): Promise<JoinResult> => {
    if ((output === undefined) !== check) throw usage('add -o with the output file, or --check');
    const { checkBundleParts, joinBundleParts, readBundleParts } = await import('../../app/join-parts.ts');
    if (output === undefined) return checkBundleParts(request, context);
    if (output !== STANDARD_OUTPUT) return joinBundleParts({ ...request, output, force }, context);
    if (json) throw usage('with -o -, standard output contains the bundle itself');
    const write = openStandardOutput(context);
    for await (const chunk of readBundleParts(request, context)) await write(chunk);
    return { kind: 'sent' };
  },
  carriesBytes: ({ request }) => request.output === STANDARD_OUTPUT,
  render: (result) => {
    if (result.kind === 'sent') return '';
    const isWrong = result.kind === 'checked' && result.parts.some(({ problem }) => problem !== undefined);
    const lines =
      result.kind === 'joined'
        ? [`${result.file}: ${formatBytes(result.size)} from ${counted(result.parts, 'part')}`]
        : columns(result.parts.map(({ name, problem = 'is valid' }) => [name, problem]));
    return [...lines, ...(isWrong ? [] : [proofLine(result.signedBy)])].join('\n');
  },
  exitCode: (result) => {
    if (result.kind !== 'checked') return 0;
    const wrong = result.parts.filter(({ problem }) => problem !== undefined);
    if (wrong.length === 0) return 0;
    return wrong.every(({ path }) => path === undefined) ? ERROR_CODES.NOT_FOUND : ERROR_CODES.DIGEST_MISMATCH;
  },
});

function proofLine(signedBy: string | undefined): string {
  return signedBy === undefined
    ? 'no signature was checked: the parts belong together, but their origin is not verified; add --key FILE for that'
    : `signed with ${signedBy}`;
}
