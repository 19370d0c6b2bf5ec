/** `curlew new`: creates an add-on. */
import { GENERATE, NEW } from '../../requests/repository.ts';
import { commandFor } from '../command.ts';
import { renderLint } from '../render/lint.ts';
import { suggesting } from '../suggested-commands.ts';

export const command = commandFor(NEW, {
  details:
    'Creates addons/<name>/<version> with install.sh, Manifest, kustomization, host-preflight.yaml, troubleshoot.yaml and\n' +
    'schema.json. With --upstream, --newest or --template also addons/<name>/template, with which curlew generate\n' +
    'creates the next versions. Never overwrites files. Next: curlew dev <name> --kubeconfig FILE tries it.\n\n' +
    'Charts are rendered with helm, which must be in PATH. Without --from the add-on has one Deployment that only\n' +
    'waits.',
  examples: [
    'curlew new web --from web.yaml --version 1.2.0',
    'curlew new web --from web.yaml --upstream https://web.example/v{version}.yaml',
    'curlew new web --from charts/web --upstream oci://registry.example/charts/web',
    'curlew new web --hooks install,join,uninstall --template',
  ],
  run: async ({ request }, context) => (await import('../../app/new.ts')).newAddon(request, context),
  render: ({ name, version, shown, files, images, settings, notes, lint }, args) => {
    const lines = [`created ${shown}, version ${version}`];
    lines.push(...files.map((file) => `  ${file}`));
    lines.push(`images: ${images.length === 0 ? 'none' : images.map((line) => line.split(' ')[1] ?? '').join(', ')}`);
    const none = 'none; curlew help addons shows how to add one';
    lines.push(`settings: ${settings.length > 0 ? settings.join(', ') : none}`);
    lines.push(...notes.map((note) => `note: ${note}`), ...renderLint(lint));
    // `curlew dev` finds a name only in the current folder, but a path from anywhere.
    const tried = args.request.dir === undefined ? name : shown;
    lines.push(`next: curlew dev ${tried} --kubeconfig FILE tries it on the cluster of a kubeconfig`);
    if (files.includes('template/generate.sh')) {
      lines.push(suggesting([GENERATE], args)(`later: curlew generate ${name} when upstream has a new version`));
    }
    return lines.join('\n');
  },
});
