/** `curlew new`: an add-on with all that one for other people's machines has. */
import { join, relative, resolve } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { isAddonName } from '../../core/ref.ts';
import { HOOK_NAMES } from '../../manifest/hooks.ts';
import type { LintReport } from '../../manifest/lint.ts';
import { makeAddon, type MadeAddon } from '../../manifest/scaffold/new-addon.ts';
import type { Arguments, Command } from '../command.ts';
import { lintMade, renderLint } from '../lint-made.ts';
import { ownScripts } from '../../app/own-scripts.ts';
import { suggesting } from '../suggested.ts';

interface Made extends MadeAddon {
  /** From where the command runs. */
  readonly shown: string;
  readonly lint: LintReport;
}

function textOf({ name, version, shown, files, images, settings, notes, lint }: Made, args: Arguments): string {
  const lines = [`${shown} is made, with version ${version}`];
  lines.push(...files.map((file) => `  ${file}`));
  lines.push(`images: ${images.length === 0 ? 'none' : images.map((line) => line.split(' ')[1] ?? '').join(', ')}`);
  if (settings.length > 0) lines.push(`settings: ${settings.join(', ')}`);
  lines.push(...notes.map((note) => `note: ${note}`), ...renderLint(lint));
  // A name is looked for below the current folder, a path is found from anywhere.
  const built = args.text('dir') === undefined ? name : shown;
  lines.push(
    suggesting(args)(`next: curlew build ${built}, and curlew generate ${name} when upstream has a new version`),
  );
  return lines.join('\n');
}

export const newAddon: Command<Made> = {
  name: 'new',
  summary: 'Make a new add-on',
  operands: '<name>',
  details:
    'Makes addons/<name>/<version> with install.sh, Manifest, kustomization, host-preflight.yaml, troubleshoot.yaml and\n' +
    'schema.json, and addons/<name>/template, from which generate.sh makes the next version. Nothing that is there is\n' +
    'overwritten.\n\n' +
    'A chart is rendered by helm, which must be in PATH. Without --from the add-on starts with one Deployment that only\n' +
    'waits.',
  options: {
    version: { type: 'string', value: 'VERSION', help: 'first version (default: that of the chart, or 0.1.0)' },
    from: {
      type: 'string',
      value: 'PATH',
      help: 'YAML of resources, a Chart.yaml, or the folder or archive of a chart',
    },
    hooks: { type: 'string', multiple: true, value: 'LIST', help: `all, or some of ${HOOK_NAMES.join(', ')}` },
    upstream: {
      type: 'string',
      value: 'URL',
      help: 'where generate.sh gets a version: an address with {version}, or of a chart (oci://…, repository)',
    },
    newest: { type: 'string', value: 'URL', help: 'what tells generate.sh the newest version' },
    dir: { type: 'string', value: 'DIR', help: 'folder that holds addons (default: here)' },
  },
  examples: [
    'curlew new web --from web.yaml --version 1.2.0',
    'curlew new web --from web.yaml --upstream https://web.example/v{version}.yaml',
    'curlew new web --from charts/web --upstream oci://registry.example/charts/web',
    'curlew new web --hooks install,join,uninstall',
  ],
  async run(args, { signal, report, env, cwd }) {
    const [name] = args.positionals;
    if (name === undefined) {
      throw new CurlewError('USAGE', 'new: give one name', { hint: 'curlew new <name>' });
    }
    if (!isAddonName(name)) {
      throw new CurlewError('USAGE', `new: ${JSON.stringify(name.slice(0, 120))} is not a name for an add-on`, {
        hint: 'use lower-case letters, digits, ".", "_" and "-"; the first and the last is a letter or a digit',
      });
    }
    const root = resolve(cwd, args.text('dir') ?? '.');
    const made = await makeAddon(
      {
        name,
        version: args.text('version'),
        from: args.text('from'),
        hooks: args.texts('hooks'),
        upstream: args.text('upstream'),
        newest: args.text('newest'),
        root,
      },
      { cwd, env, samples: join(ownScripts(), 'new'), signal },
    );
    const lint = await lintMade(root, [`addons/${name}/${made.version}`], { report, env, signal });
    return { ...made, shown: relative(cwd, made.folder) || '.', lint };
  },
  render: textOf,
};
