/** `curlew channel …`: which versions of add-ons fit which Kubernetes. */
import { counted } from '../../core/counted.ts';
import { renderDiagnostic } from '../../core/diagnostic.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { command, useCase, type OptionSpecs } from '../command.ts';
import { ANYWHERE_OPTIONS } from '../options.ts';
import { paintDiagnostic } from '../render/paint.ts';
import { choice } from '../values.ts';

const checkChannels = useCase(async () => (await import('../../app/channel-check.ts')).checkChannels);

/** Options of all commands that read channels. */
export const CHANNEL_OPTIONS = {
  compat: {
    type: 'string',
    read: choice('native', 'kops', 'kops-2017'),
    value: 'RULES',
    help: 'choose from an index of kops by the rules of curlew (native, the default), of kops, or of kops until June 2021 (kops-2017)',
  },
  ...ANYWHERE_OPTIONS,
} satisfies OptionSpecs;

export const LOCATIONS =
  'A LOCATION is a path, a file: or https: URL, or s3://bucket/key, of a Channel, of an index of kops (kind: Addons), or of a manifest.';

export const channelCheckCommand = command({
  name: 'channel check',
  operands: 'LOCATION…',
  details: `Checks channels and the manifests that they name. Exits with status 10 if there is an error; warnings do not count.\n\n${LOCATIONS}`,
  examples: ['curlew channel check channel.yaml', 'curlew channel check s3://releases/addons/index.yaml --compat kops'],
  options: CHANNEL_OPTIONS,
  run: async ({ operands: channels, options }, context) => checkChannels({ ...options, channels }, context),
  render: ({ channels, diagnostics, errors, warnings }, _, paint) => {
    const count = (of: 'addons' | 'entries'): number => channels.reduce((sum, channel) => sum + channel[of], 0);
    const sums = [
      counted(channels.length, 'channel'),
      counted(count('addons'), 'add-on'),
      counted(count('entries'), 'alternative'),
      counted(errors, 'error'),
      counted(warnings, 'warning'),
    ];
    return [
      ...diagnostics.map((one) => paintDiagnostic(renderDiagnostic(one, one.source), one.severity, paint)),
      sums.join(', '),
    ].join('\n');
  },
  exitCode: ({ channels, errors }) => {
    const failed = channels.find(({ error }) => error !== undefined)?.error;
    return failed !== undefined ? ERROR_CODES[failed] : errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0;
  },
});
