/** `curlew dev`: builds add-ons and installs them in a trial. */
import { join } from 'node:path';
import { DEV } from '../../requests/dev.ts';
import { commandFor } from '../command.ts';
import { LOGS, RESUME } from '../../requests/node.ts';
import { withSuggestions } from '../suggested-commands.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';

export const command = commandFor(DEV, {
  details: `Builds into out, and installs from there in a sandbox, as install --root does; what is installed already is installed again. Nothing of this machine changes. With --kubeconfig FILE hooks change that cluster, which the first line names (curlew help trials).

With --watch, files below addons/<name> are looked at until Ctrl-C. A mistake in a Manifest or a hook that fails is reported, and the next change is tried again.

Without --installer the add-ons have no settings but those of --set. With it, all its add-ons must have been built into the same folder.`,
  examples: [
    'curlew dev web',
    'curlew dev web --kubeconfig ~/.kube/config --context kind-trial',
    'curlew dev web --watch --set web.replicas=2',
  ],
  left: 'what is built stays: the same command builds and installs the rest',
  run: async ({ request, options: { watch } }, context) => {
    const { dev, watchDev } = await import('../../app/dev.ts');
    // The folder of the trial is no option that the operator gave, but other commands need it.
    const given = { request: { root: request.root === undefined ? join(request.out ?? 'out', 'trial') : undefined } };
    return withSuggestions(
      { name: DEV.name, given, requests: [RESUME, LOGS] },
      { ...context, env: {} },
      async ({ report }) => (watch ? watchDev(request, { ...context, report }) : dev(request, { ...context, report })),
    );
  },
  render: (developed, args, paint) => {
    if (developed === undefined) return '';
    const { packages, root, result } = developed;
    const built = packages.map(({ name, version, outcome, because }) => {
      return `${paint.mark(outcome === 'built' ? 'done' : 'same')}${name} ${version}: ${outcome}${outcome === 'built' ? ` (${because})` : ''}`;
    });
    return [...built, renderNodeResult(result, paint, args), `the trial is in ${root}`].join('\n');
  },
  exitCode: (developed) => (developed === undefined ? 0 : nodeExitCode(developed.result)),
});
