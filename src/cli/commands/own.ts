/** `curlew help` and `curlew version`. */
import { HELP, VERSION } from '../../requests/own.ts';
import { toolVersion } from '../../own/version.ts';
import { commandFor } from '../command.ts';

/** The help itself is printed by `main`, since this module cannot read the table that it is in. */
export const help = commandFor(HELP, {
  details:
    'curlew help commands lists all commands, curlew help pages the pages of the documentation. curlew help CODE explains an error code.',
  examples: [
    'curlew help commands',
    'curlew help bundle',
    'curlew help channel plan',
    'curlew help releases',
    'curlew help NOT_FOUND',
  ],
  run: async ({ request: { topic } }) => Promise.resolve(topic),
  render: (topic) => topic.join(' '),
});

export const version = commandFor(VERSION, {
  isAnywhere: true,
  examples: ['curlew version', 'curlew --version'],
  run: async () => Promise.resolve({ version: toolVersion() }),
  render: (result) => result.version,
});
