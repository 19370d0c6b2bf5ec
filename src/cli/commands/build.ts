/** `curlew build`: packages out of add-on folders. */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseBuildPlan, type BuildPlan } from '../../build/plan.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { printableJson } from '../../core/json.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { BUILD_OPTIONS, planPackages, requireBuildable, runBuild } from '../building.ts';
import { formatBytes } from '../render/units.ts';

interface Built {
  readonly name: string;
  readonly version: string;
  readonly path: string;
  readonly size: number;
  readonly outcome: 'unchanged' | 'built';
  readonly because: string;
  /** Bytes of images that came over the network. */
  readonly fetched: number;
  readonly digest: Digest;
}

/** A plan is the result itself, so that what `--json` prints can be carried out as well. */
type Result = BuildPlan | { readonly packages: readonly Built[] };

async function planOf(args: Arguments, context: CommandContext): Promise<BuildPlan> {
  const file = args.text('from-plan');
  if (file === undefined) return planPackages(args.positionals, args, context);
  if (args.positionals.length > 0) {
    throw new CurlewError('USAGE', 'curlew build: --from-plan says already which add-ons are built');
  }
  const plan = await readPlan(resolve(context.cwd, file), file);
  await requireBuildable(plan, context);
  return plan;
}

async function readPlan(path: string, file: string): Promise<BuildPlan> {
  try {
    return parseBuildPlan(await readFile(path, 'utf8'), file);
  } catch (error) {
    throw fileError(`read the plan ${file}`, error);
  }
}

export const build: Command<Result> = {
  name: 'build',
  summary: 'Build packages from add-on folders',
  operands: '[addon…]',
  options: {
    ...BUILD_OPTIONS,
    'plan-only': { type: 'boolean', help: 'print what would be done, as JSON, and do nothing' },
    'from-plan': { type: 'string', value: 'FILE', help: 'carry out a plan that --plan-only printed' },
  },
  details:
    'An add-on is a name (all its versions), name/version, name-version or a path; without any, all below\n' +
    './addons and ./packages are built. A package that is up to date is left as it is.',
  examples: [
    'curlew build',
    'curlew build ekco-0.28.4 --out packages',
    'curlew build --registry-mirror docker.io=mirror.example.com',
  ],
  run: async (args, context) => {
    const plan = await planOf(args, context);
    if (args.flag('plan-only')) return plan;
    const packages = (await runBuild(plan, args, context)).map(
      ({ path, addon, size, outcome, because, fetched }): Built => {
        const { name, version, digest } = addon;
        return { name, version, path, size, outcome, because, fetched, digest };
      },
    );
    return { packages };
  },
  render: (result) => {
    if ('format' in result) return printableJson(result, 2);
    const lines = result.packages.map(({ name, version, size, outcome, because }) => {
      const why = outcome === 'built' ? ` (${because})` : '';
      return `${name} ${version}: ${outcome}, ${formatBytes(size)}${why}`;
    });
    const [first] = result.packages;
    return first === undefined ? 'no add-ons found' : [...lines, `packages are in ${dirname(first.path)}`].join('\n');
  },
};
