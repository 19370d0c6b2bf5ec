/** `curlew generate`: generates the next version of an add-on from its template. */
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { renderLint } from '../render/lint.ts';

const generate = useCase(async () => (await import('../../app/generate.ts')).generate);
const listTemplates = useCase(async () => (await import('../../app/generate.ts')).listTemplates);

type Result = Awaited<ReturnType<typeof generate | typeof listTemplates>>;

export const generateCommand = command({
  name: 'generate',
  operands: '<addon>',
  details:
    'Runs addons/<addon>/template/generate.sh (or script.sh), shows its output, and lints the result. Exits with\n' +
    'status 10 if lint finds an error. Does not commit anything or open a pull request.',
  options: {
    version: { type: 'string', value: 'VERSION', help: 'the version (default: the newest upstream)' },
    force: { type: 'boolean', help: 'replace an existing version' },
    list: { type: 'boolean', help: 'only list the add-ons with a generator' },
    dir: { type: 'string', value: 'DIR', help: 'folder that contains addons (default: .)' },
  },
  examples: ['curlew generate web', 'curlew generate web --version 1.3.0 --force', 'curlew generate --list --json'],
  run: async ({ operands: [addon], options: { list, ...options } }, context): Promise<Result> => {
    if (list && addon === undefined) return listTemplates(options, context);
    if (addon === undefined || list) {
      throw new CurlewError('USAGE', 'generate: specify one add-on, or --list', { hint: 'curlew generate <addon>' });
    }
    return generate({ addon, ...options }, context);
  },
  render: (result) => {
    if ('templates' in result) return result.templates.join('\n');
    const { name, made, lint } = result;
    if (lint === undefined) return `${name}: nothing new`;
    return [...made.map((version) => `created addons/${name}/${version}`), ...renderLint(lint)].join('\n');
  },
  exitCode: (result) => ('lint' in result && result.lint.errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0),
});
