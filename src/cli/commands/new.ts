/** `curlew new`: creates an add-on. */
import { CurlewError } from '../../core/errors.ts';
import { HOOK_NAMES } from '../../manifest/hooks.ts';
import { command, useCase } from '../command.ts';
import { renderLint } from '../render/lint.ts';
import { suggesting } from '../suggested.ts';

const newAddon = useCase(async () => (await import('../../app/new.ts')).newAddon);

export const newCommand = command({
  name: 'new',
  operands: '<name>',
  details:
    'Creates addons/<name>/<version> with install.sh, Manifest, kustomization, host-preflight.yaml, troubleshoot.yaml and\n' +
    'schema.json, and addons/<name>/template, with which generate.sh creates the next version. Never overwrites\n' +
    'files.\n\n' +
    'Charts are rendered with helm, which must be in PATH. Without --from the add-on has one Deployment that only\n' +
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
      help: 'where generate.sh downloads a version: an address with {version}, or a chart (oci://…, repository)',
    },
    newest: { type: 'string', value: 'URL', help: 'where generate.sh reads the newest version' },
    dir: { type: 'string', value: 'DIR', help: 'folder that contains addons (default: .)' },
  },
  examples: [
    'curlew new web --from web.yaml --version 1.2.0',
    'curlew new web --from web.yaml --upstream https://web.example/v{version}.yaml',
    'curlew new web --from charts/web --upstream oci://registry.example/charts/web',
    'curlew new web --hooks install,join,uninstall',
  ],
  run: async ({ operands: [name], options }, context) => {
    if (name === undefined) throw new CurlewError('USAGE', 'new: specify one name', { hint: 'curlew new <name>' });
    return newAddon({ name, ...options }, context);
  },
  render: ({ name, version, shown, files, images, settings, notes, lint }, args) => {
    const lines = [`created ${shown}, version ${version}`];
    lines.push(...files.map((file) => `  ${file}`));
    lines.push(`images: ${images.length === 0 ? 'none' : images.map((line) => line.split(' ')[1] ?? '').join(', ')}`);
    if (settings.length > 0) lines.push(`settings: ${settings.join(', ')}`);
    lines.push(...notes.map((note) => `note: ${note}`), ...renderLint(lint));
    // `curlew build` finds a name only in the current folder, but a path from anywhere.
    const built = args.options.dir === undefined ? name : shown;
    lines.push(
      suggesting(args)(`next: curlew build ${built}, and curlew generate ${name} when upstream has a new version`),
    );
    return lines.join('\n');
  },
});
