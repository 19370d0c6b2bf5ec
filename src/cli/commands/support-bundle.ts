/** `curlew support-bundle`: one file for whoever helps. */
import { SUPPORT_BUNDLE } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { ERROR_CODES } from '../../core/errors.ts';
import { commandFor } from '../command.ts';
import { supportLines } from '../render/support-bundle.ts';
import { formatBytes } from '../render/units.ts';

const DETAILS = `Without FILES, collects on this machine. With the file of a cluster, the curlew of each of its machines collects there, over SSH.

The file has records and logs of runs, journals, facts of the machine, the configuration of Kubernetes, what the specs of installed add-ons collect (troubleshoot.yaml), and the verdicts of their analyzers. Only its owner can read it.

Secrets are removed: those that are known on this machine, and all that look like one. What this user may not read is left out, and so is what takes too long or does not fit: the bundle lists it, and the exit status is 2 then, 130 after Ctrl-C, and 18 on a full disk.`;

const INCOMPLETE = 2;

export const command = commandFor(SUPPORT_BUNDLE, {
  details: DETAILS,
  examples: [
    'curlew support-bundle --dry-run',
    'curlew support-bundle paris.yaml',
    'curlew support-bundle -o /tmp/support.tar.gz',
  ],
  run: async ({ request, options }, context) => {
    const { planSupportBundle, supportBundle } = await import('../../app/support-bundle.ts');
    return options.dryRun ? planSupportBundle(request, context) : supportBundle(request, context);
  },
  listsSteps: true,
  render: (result) => {
    if (!('index' in result)) {
      const rows = result.files.map(({ path, source }) => `${path}: ${source}`);
      return [`${result.file} would contain, without secrets:`, ...rows];
    }
    const { file, bytes, index } = result;
    return [visible(`${file}: ${formatBytes(bytes)}`), ...supportLines(index)].join('\n');
  },
  exitCode: (result) => {
    if (!('index' in result) || result.index.complete) return 0;
    if (result.cut === undefined) return INCOMPLETE;
    return ERROR_CODES[result.cut === 'stopped' ? 'CANCELLED' : 'NO_SPACE'];
  },
});
