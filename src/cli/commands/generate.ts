/** `curlew generate`: the next version of an add-on, by its template. */
import { generate, listTemplates } from '../../app/generate.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { command } from '../command.ts';
import { renderLint } from '../render/lint.ts';

type Result = Awaited<ReturnType<typeof generate | typeof listTemplates>>;

export const generateCommand = command({
  name: 'generate',
  operands: '<addon>',
  details:
    'Runs addons/<addon>/template/generate.sh (or script.sh), shows what it says, and lints what it has made. Ends with\n' +
    'status 10 when lint finds an error. It commits nothing and opens no pull request.',
  options: {
    version: { type: 'string', value: 'VERSION', help: 'which version (default: the newest of upstream)' },
    force: { type: 'boolean', help: 'make a version anew that is there' },
    list: { type: 'boolean', help: 'print the names of all add-ons that have a generator, and run none' },
    dir: { type: 'string', value: 'DIR', help: 'folder that holds addons (default: here)' },
  },
  examples: ['curlew generate web', 'curlew generate web --version 1.3.0 --force', 'curlew generate --list --json'],
  run: async ({ operands: [addon], options: { list, ...options } }, context): Promise<Result> => {
    if (list && addon === undefined) return listTemplates(options, context);
    if (addon === undefined || list) {
      throw new CurlewError('USAGE', 'generate: give one add-on, or --list', { hint: 'curlew generate <addon>' });
    }
    return generate({ addon, ...options }, context);
  },
  render: (result) => {
    if ('templates' in result) return result.templates.join('\n');
    const { name, made, lint } = result;
    if (lint === undefined) return `${name}: nothing new`;
    return [...made.map((version) => `addons/${name}/${version} is made`), ...renderLint(lint)].join('\n');
  },
  exitCode: (result) => ('lint' in result && result.lint.errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0),
});
