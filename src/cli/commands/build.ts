/** `curlew build`: builds packages from add-on folders. */
import { BUILD } from '../../requests/build.ts';
import { dirname } from 'node:path';
import { printableJson } from '../../core/json.ts';
import { commandFor } from '../command.ts';
import { formatBytes } from '../render/units.ts';

export const command = commandFor(BUILD, {
  details:
    'An add-on is a name (all its versions), name/version, name-version or a path; the default is all in\n' +
    './addons and ./packages. Packages that are up to date are not built again.',
  examples: [
    'curlew build',
    'curlew build ekco-0.28.4 --out packages',
    'curlew build --registry-mirror docker.io=mirror.example.com',
  ],
  // The plan is the result itself, so that the output of `--json` can also be executed.
  run: async ({ request, options: { dryRun } }, context) => {
    const { build, planBuild } = await import('../../app/build.ts');
    return dryRun ? planBuild(request, context) : build(request, context);
  },
  listsSteps: true,
  render: (result, _, paint) => {
    if ('format' in result) return printableJson(result, 2);
    const lines = result.packages.map(({ name, version, size, outcome, because }) => {
      const why = outcome === 'built' ? ` (${because})` : '';
      return `${paint.mark(outcome === 'built' ? 'done' : 'same')}${name} ${version}: ${outcome}, ${formatBytes(size)}${why}`;
    });
    const [first] = result.packages;
    return first === undefined ? 'no add-ons found' : [...lines, `packages are in ${dirname(first.path)}`].join('\n');
  },
});
