/** What a run on a node costs beside its hooks: every hook by curlew and by plain bash, and a run with nothing to do. */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '../components/support/programs.ts';
import { bundleOf, type TestAddon } from '../support/node-bundles.ts';
import { measure, spread } from './measure.ts';
import { range, type Section } from './report.ts';
import type { Options } from './images.ts';
import { CURLEW } from './ways.ts';

const ADDONS = 20;

/** Which hooks an add-on defines besides install. Of the newest versions of kURL's 24 add-ons so many have each. */
const SHARES: readonly (readonly [hook: string, of24: number])[] = [
  ['pre_init', 15],
  ['already_applied', 8],
  ['post_init', 2],
  ['outro', 3],
];
/** Lines of an install.sh, which the newest versions have in the middle. */
const LINES = 250;

function addonOf(nth: number, hooks: (nth: number) => readonly string[]): TestAddon {
  const name = `addon${nth}`;
  const filler = Array.from({ length: LINES / 5 }, (_, at) => {
    return `${name}_step_${at}() {\n  local src="$DIR/addons/${name}"\n  if [ -n "$src" ]; then\n    : "$1"\n  fi\n}`;
  });
  const defined = ['', ...hooks(nth).map((hook) => `_${hook}`)].map((hook) => `${name}${hook}() { : ; }`);
  return { name, version: '1.0.0', files: { Manifest: '', 'install.sh': `${[...filler, ...defined].join('\n')}\n` } };
}

/** Hooks of the nth add-on, with the shares of real add-ons. */
function usual(nth: number): readonly string[] {
  return SHARES.filter(([, share]) => nth < Math.round((share * ADDONS) / 24)).map(([hook]) => hook);
}

const PLAIN = `cd "$1/var/lib/curlew"
DIR=.
for hook in "\${@:3}"; do
  bash -c 'for file in "$1"/*.sh addons/*/*/install.sh; do source "$file"; done; DIR=.; "$2"' bash "$2" "$hook"
done`;

const INSTALL = 'node "$1" install --quiet --bundle "$2" --root "$3" --unconfined "${@:4}" >/dev/null';

export async function benchNode(home: string, { rounds, say }: Options): Promise<Section> {
  const work = join(home, 'node');
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  const all = ['pre_init', 'already_applied', 'post_init', 'outro'];
  const quiet = Array.from({ length: ADDONS }, (_, nth) => addonOf(nth, () => []));
  const busy = Array.from({ length: ADDONS }, (_, nth) => addonOf(nth, () => all));
  const real = Array.from({ length: ADDONS }, (_, nth) => addonOf(nth, usual));
  const bundles = {
    quiet: join(work, 'quiet.tar.gz'),
    busy: join(work, 'busy.tar.gz'),
    real: join(work, 'real.tar.gz'),
  };
  await writeFile(bundles.quiet, bundleOf(quiet));
  await writeFile(bundles.busy, bundleOf(busy));
  await writeFile(bundles.real, bundleOf(real));
  const roots = { quiet: join(work, 'quiet'), busy: join(work, 'busy'), real: join(work, 'real') };
  for (const kind of ['quiet', 'busy', 'real'] as const) {
    await measure(INSTALL, [CURLEW, bundles[kind], roots[kind]], home);
  }
  const hooks = busy.flatMap(({ name }) => [`${name}_pre_init`, name, `${name}_post_init`, `${name}_outro`]);
  const [own, plain, again, called, idle]: [number[], number[], number[], number[], number[]] = [[], [], [], [], []];
  for (let round = 0; round < rounds; round += 1) {
    own.push((await measure(INSTALL, [CURLEW, bundles.busy, roots.busy, '--reapply'], home)).seconds);
    plain.push((await measure(PLAIN, [roots.busy, join(ROOT, 'scripts/lib'), ...hooks], home)).seconds);
    idle.push((await measure(INSTALL, [CURLEW, bundles.quiet, roots.quiet], home)).seconds);
    again.push((await measure(INSTALL, [CURLEW, bundles.real, roots.real], home)).seconds);
    called.push(await hooksOf(roots.real));
  }
  say('runs on a node measured');
  await rm(work, { recursive: true, force: true });
  const each = own.map((seconds, round) => ((seconds - (plain[round] ?? Number.NaN)) * 1000) / hooks.length);
  const [cost, unchanged] = [spread(each), spread(idle)];
  return {
    title: `A node with ${ADDONS} add-ons`,
    about: `Each install.sh has ${LINES} lines. First ${hooks.length} empty hooks by \`curlew install --reapply\`, and each in a plain bash that sources the same files; the difference includes the start, the records and the journal. Then a second run with nothing changed: with add-ons that define only their install hook, and with as many hooks as real add-ons have, ${spread(called).median} of which every run calls.`,
    table: [
      ['command', 'seconds'],
      [`curlew, ${hooks.length} hooks`, range(spread(own))],
      [`bash, ${hooks.length} hooks`, range(spread(plain))],
      ['curlew, nothing changed', range(unchanged)],
      [`curlew, nothing changed, ${spread(called).median} hooks`, range(spread(again))],
    ],
    targets: [
      { name: 'overhead of a hook', wanted: '≤ 60 ms', measured: `${range(cost)} ms`, met: cost.median <= 60 },
      { name: 'nothing changed', wanted: '< 1 s', measured: `${range(unchanged)} s`, met: unchanged.median < 1 },
    ],
  };
}

/** How many hooks the last run called: each has left a log. */
async function hooksOf(root: string): Promise<number> {
  const runs = join(root, 'var/lib/curlew/runs');
  const last = (await readdir(runs)).toSorted().at(-1) ?? '';
  return (await readdir(join(runs, last))).filter((name) => name.endsWith('.log') && name !== 'look-up.log').length;
}
