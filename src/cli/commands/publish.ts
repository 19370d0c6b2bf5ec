/** `curlew publish`: builds what has changed and makes a release of it in a store. */
import { CurlewError } from '../../core/errors.ts';
import { publishPackages, type PublishResult } from '../../release/publish.ts';
import { checkedRelease } from '../../release/release-name.ts';
import { openStore } from '../../store/open.ts';
import { BUILD_OPTIONS, countOf, planAddons, runBuild } from '../building.ts';
import type { Command } from '../command.ts';
import { formatBytes } from '../render/units.ts';

/** Packages on their way into the store at once. */
const JOBS = 4;

const WHAT = {
  uploaded: 'uploaded',
  copied: 'unchanged, copied inside the store',
  present: 'there already',
} as const;

export const publish: Command<PublishResult> = {
  name: 'publish',
  summary: 'Build add-ons and publish them as a release',
  operands: '[addon…]',
  options: {
    to: { type: 'string', value: 'STORE', help: 'folder to publish into, made if need be' },
    release: { type: 'string', value: 'R', help: 'release string (default: vYYYY.MM.DD-N, the next N of today)' },
    commit: { type: 'string', value: 'SHA', help: 'git commit to note beside the packages (default: $GITHUB_SHA)' },
    ...BUILD_OPTIONS,
  },
  details:
    'Without names, the release holds all add-ons below ./addons and ./packages and nothing else. With names, it holds\n' +
    'these, and from the previous release all that is not named. A package that has not changed is copied inside the store.',
  examples: ['curlew publish --to /srv/dist', 'curlew publish ekco --to /srv/dist --release v1.4.0'],
  run: async (args, context) => {
    const { cwd, env, report, signal } = context;
    const to = args.text('to');
    if (to === undefined) throw new CurlewError('USAGE', 'curlew publish: say with --to where to publish');
    const commit = args.text('commit') ?? env['GITHUB_SHA'];
    if (commit !== undefined && !/^[0-9a-f]{7,64}$/.test(commit)) {
      throw new CurlewError('USAGE', 'curlew publish: the commit is not a git commit in hex');
    }
    const given = args.text('release');
    const release = given === undefined ? undefined : checkedRelease(given, '--release');
    const plan = await planAddons(args.positionals, args, context);
    const store = await openStore(to, { cwd, create: true, signal });
    const packages = await runBuild(plan, args, context);
    return publishPackages(packages, {
      store,
      release,
      now: new Date(),
      carry: args.positionals.length > 0,
      commit,
      jobs: countOf(args, 'jobs', JOBS),
      report,
      signal,
    });
  },
  render: ({ store, release, previous, packages }) => {
    const lines = packages.map(
      ({ name, version, size, outcome }) => `${name} ${version}: ${WHAT[outcome]}, ${formatBytes(size)}`,
    );
    const before = previous === undefined || previous === release ? '' : ` (before: ${previous})`;
    return [...lines, `${store}: ${release} is the current release${before}`].join('\n');
  },
};
