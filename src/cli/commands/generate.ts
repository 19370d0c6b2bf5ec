/** `curlew generate`: generates the next version of an add-on from its template. */
import { GENERATE } from '../../requests/repository.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import type { GeneratedAddon } from '../../app/generate.ts';
import { commandFor } from '../command.ts';
import { renderLint } from '../render/lint.ts';

type Result = GeneratedAddon | { readonly templates: readonly string[] };

export const command = commandFor(GENERATE, {
  details:
    'Runs addons/<addon>/template/generate.sh (or script.sh), shows its output, and lints the result. Exits with\n' +
    'status 10 if lint finds an error. Does not commit anything or open a pull request.',
  examples: ['curlew generate web', 'curlew generate web --version 1.3.0 --force', 'curlew generate --list --json'],
  run: async ({ request: { addon, ...request }, options: { list } }, context): Promise<Result> => {
    const { generate, listTemplates } = await import('../../app/generate.ts');
    if (list && addon === undefined) return listTemplates({ dir: request.dir }, context);
    if (addon === undefined || list) {
      throw new CurlewError('USAGE', 'generate: specify one add-on, or --list', { hint: 'curlew generate <addon>' });
    }
    return generate({ addon, ...request }, context);
  },
  render: (result) => {
    if ('templates' in result) return result.templates.join('\n');
    const { name, made, lint } = result;
    if (lint === undefined) return `${name}: nothing new`;
    return [...made.map((version) => `created addons/${name}/${version}`), ...renderLint(lint)].join('\n');
  },
  exitCode: (result) => ('lint' in result && result.lint.errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0),
});
