/** `curlew bundle`: writes all packages of an installer spec to one file. */
import { BUNDLE } from '../../requests/bundle.ts';
import { CurlewError } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { commandOutput, STANDARD_OUTPUT } from '../output.ts';
import { renderBundle } from '../render/bundle.ts';
import { openStandardOutput } from '../standard-output.ts';

export const command = commandFor(BUNDLE, {
  details:
    'The bundle consists of byte ranges of the packages: nothing is packed again. It includes its own curlew, so a node ' +
    'needs only tar and the install.sh in the bundle.\n\n' +
    'A saved plan can be inspected, compared with another one, and executed later or on another machine with the same result. ' +
    'If a package has changed since then, nothing is written.',
  examples: [
    'curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz',
    'curlew bundle installer.yaml --from /srv/dist --to /media/one,/media/two',
    'curlew bundle installer.yaml --from /srv/dist -o - | ssh node1 tar -xz',
    'curlew bundle installer.yaml --from /srv/dist --dry-run --out plan.json',
    'curlew bundle installer.yaml --from /srv/dist --dry-run --against plan.json',
    'curlew bundle --from-plan plan.json --from /srv/dist -o bundle.tar.gz',
    'curlew bundle installer.yaml --from /srv/dist --since site.json -o d.tar.gz',
    'curlew bundle installer.yaml --from s3://a/dist -o s3://a/bundles/b.tar.gz',
  ],
  run: async ({ request: { output, ...rest }, options: { json } }, context) => {
    const { bundle } = await import('../../app/bundle.ts');
    const request = { output: commandOutput(output), ...rest };
    if (output !== STANDARD_OUTPUT || request.dryRun) return bundle(request, context);
    if (json) {
      throw new CurlewError('USAGE', 'curlew bundle: with -o -, standard output contains the bundle itself', {
        hint: 'omit --json, or run --dry-run --json first',
      });
    }
    return bundle(request, context, { name: 'standard output', write: openStandardOutput(context) });
  },
  carriesBytes: ({ request }) => request.output === STANDARD_OUTPUT && !request.dryRun,
  render: (result) => renderBundle(result, result),
});
