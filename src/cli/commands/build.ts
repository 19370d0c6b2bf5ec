/** `curlew build`: builds packages from add-on folders. */
import { dirname } from 'node:path';
import { printableJson } from '../../core/json.ts';
import { command, useCase } from '../command.ts';
import { BUILD_OPTIONS } from '../options.ts';
import { formatBytes } from '../render/units.ts';

const build = useCase(async () => (await import('../../app/build.ts')).build);
const planBuild = useCase(async () => (await import('../../app/build.ts')).planBuild);

export const buildCommand = command({
  name: 'build',
  operands: '[addon…]',
  options: {
    ...BUILD_OPTIONS,
    'plan-only': { type: 'boolean', help: 'print the plan as JSON, and build nothing' },
    'from-plan': { type: 'string', value: 'FILE', help: 'execute a plan from --plan-only' },
  },
  details:
    'An add-on is a name (all its versions), name/version, name-version or a path; the default is all in\n' +
    './addons and ./packages. Packages that are up to date are not built again.',
  examples: [
    'curlew build',
    'curlew build ekco-0.28.4 --out packages',
    'curlew build --registry-mirror docker.io=mirror.example.com',
  ],
  // The plan is the result itself, so that the output of `--json` can also be executed.
  run: async ({ operands, options: { planOnly, ...options } }, context) =>
    (planOnly ? planBuild : build)({ addons: operands, ...options }, context),
  render: (result) => {
    if ('format' in result) return printableJson(result, 2);
    const lines = result.packages.map(({ name, version, size, outcome, because }) => {
      const why = outcome === 'built' ? ` (${because})` : '';
      return `${name} ${version}: ${outcome}, ${formatBytes(size)}${why}`;
    });
    const [first] = result.packages;
    return first === undefined ? 'no add-ons found' : [...lines, `packages are in ${dirname(first.path)}`].join('\n');
  },
});
