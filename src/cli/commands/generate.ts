/** `curlew generate`: the next version of an add-on, by its template. */
import { appendFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { CurlewError, ERROR_CODES, fileError } from '../../core/errors.ts';
import type { LintReport } from '../../manifest/lint.ts';
import { findTemplates, generateAddon, type Generated } from '../../manifest/scaffold/generate.ts';
import type { Command } from '../command.ts';
import { lintMade, renderLint } from '../lint-made.ts';

interface Result extends Partial<Generated> {
  /** Of what was made; undefined when nothing was. */
  readonly lint?: LintReport;
  /** With `--list`: the add-ons that have a generator. */
  readonly templates?: readonly string[];
}

function textOf({ name = '', made = [], lint, templates }: Result): string {
  if (templates !== undefined) return templates.join('\n');
  if (lint === undefined) return `${name}: nothing new`;
  return [...made.map((version) => `addons/${name}/${version} is made`), ...renderLint(lint)].join('\n');
}

/** What the generator said is said on to the workflow that runs this. */
async function passOn(outputs: Readonly<Record<string, string>>, file: string): Promise<void> {
  const text = Object.entries(outputs).map(([name, value]) => `${name}=${value}\n`);
  try {
    await appendFile(file, text.join(''));
  } catch (error) {
    throw fileError(`write to ${file}`, error);
  }
}

export const generate: Command<Result> = {
  name: 'generate',
  summary: 'Make the next version of an add-on by its template',
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
  async run(args, { signal, report, env, cwd }) {
    const root = resolve(cwd, args.text('dir') ?? '.');
    const [name] = args.positionals;
    if (args.flag('list') && name === undefined) return { templates: await findTemplates(root) };
    if (name === undefined || args.flag('list')) {
      throw new CurlewError('USAGE', 'generate: give one add-on, or --list', { hint: 'curlew generate <addon>' });
    }
    const version = args.text('version');
    const generated = await generateAddon(root, name, { version, force: args.flag('force'), env, report, signal });
    if (generated.made.length === 0) return generated;
    const output = env['GITHUB_OUTPUT'];
    if (output !== undefined && output !== '') await passOn(generated.outputs, output);
    const paths = generated.made.map((one) => `addons/${name}/${one}`);
    return { ...generated, lint: await lintMade(root, paths, { report, env, signal }) };
  },
  render: textOf,
  exitCode: ({ lint }) => (lint !== undefined && lint.errors > 0 ? ERROR_CODES.MANIFEST_INVALID : 0),
};
