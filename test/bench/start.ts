/** What everybody waits for: the start of the program, and lint over as many add-ons as kURL has. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { executableFileName } from '../../src/core/layout.ts';
import { writeCorpus } from '../support/corpus.ts';
import { measure, milliseconds, pairwise, spread, type Sample } from './measure.ts';
import { figure, range, type Section } from './report.ts';
import { rssTarget, type Options } from './images.ts';
import { CURLEW } from './ways.ts';

const ADDONS = 600;
const EXECUTABLE = fileURLToPath(
  new URL(`../../dist/node/${executableFileName(process.arch === 'arm64' ? 'arm64' : 'amd64')}`, import.meta.url),
);

export async function benchStart({ rounds, say }: Options): Promise<Section> {
  const bare: number[] = [];
  const help: number[] = [];
  const single: number[] = [];
  const complete: number[] = [];
  for (let round = 0; round < rounds * 4; round += 1) {
    bare.push(await milliseconds('node', ['-e', '0']));
    help.push(await milliseconds('node', [CURLEW, '--help']));
    single.push(await milliseconds(EXECUTABLE, ['--version']));
    complete.push(await milliseconds('node', [CURLEW, '__complete', 'build', '']));
  }
  say('start-up measured');
  const [own, alone, quotient] = [spread(help), spread(single), pairwise(help, bare)];
  const completed = spread(complete);
  return {
    title: 'Start',
    about: 'From the start to the end of the process.',
    table: [
      ['command', 'milliseconds'],
      ['node -e 0', range(spread(bare))],
      ['curlew --help', range(own)],
      ['the executable for nodes, --version', range(alone)],
      ['completion of add-ons in a folder without any', range(completed)],
    ],
    targets: [
      { name: '--help', wanted: '≤ 100 ms', measured: `${range(own)} ms`, met: own.median <= 100 },
      { name: 'executable for nodes', wanted: '< 150 ms', measured: `${range(alone)} ms`, met: alone.median < 150 },
      { name: 'completion', wanted: '< 200 ms', measured: `${range(completed)} ms`, met: completed.median < 200 },
      { name: '--help ÷ node -e 0', wanted: '≤ 2.5', measured: range(quotient), met: quotient.median <= 2.5 },
    ],
  };
}

/** Real add-ons have megabytes of YAML and scripts of up to two thousand lines; `number` makes each of its own. */
async function writeLarge(root: string, number: number): Promise<void> {
  const folder = join(root, 'addons', `large${number % 10}`, `1.${number}`);
  await mkdir(folder, { recursive: true });
  const name = `large${number % 10}`;
  const steps = Array.from({ length: 100 + (number % 4) * 100 }, (_, step) =>
    [
      `${name}_step_${step}() {`,
      `  local value="$(echo "\${1:-${number}}" | tr a b)"`,
      '  [ -n "$value" ] && return 0',
      '}',
      '',
    ].join('\n'),
  );
  const fields = Array.from({ length: 300 }, (_, field) =>
    [
      `        field${field}:`,
      '          type: string',
      `          description: what ${number} says of it # ${field}`,
    ].join('\n'),
  );
  const panels = Array.from({ length: 700 }, (_, panel) =>
    [`        {"panel": ${panel}, "image": "{{ x }}",`, `         "of": ${number}},`].join('\n'),
  );
  const documents = [
    `kind: CustomResourceDefinition\nspec:\n  schema:\n    properties:\n${fields.join('\n')}\n`,
    `kind: ConfigMap\ndata:\n  dashboard.json: |-\n        [\n${panels.join('\n')}\n        ]\n`,
    `kind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n        - image: quay.io/a/b:1.${number}\n`,
  ];
  const yaml = Array.from({ length: 2 }, () => documents)
    .flat()
    .join('---\n');
  await writeFile(join(folder, 'Manifest'), `image b quay.io/a/b:1.${number}\n`);
  await writeFile(join(folder, 'install.sh'), `${name}() { ${name}_step_0; }\n${steps.join('\n')}\n`);
  await writeFile(join(folder, 'default.yaml'), yaml);
}

interface LintRuns {
  readonly home: string;
  /** Is made, filled and removed. */
  readonly root: string;
  readonly rounds: number;
  readonly fill: () => Promise<void>;
}

async function lintRuns(line: string, { home, root, rounds, fill }: LintRuns): Promise<readonly Sample[]> {
  await rm(root, { recursive: true, force: true });
  await fill();
  const samples: Sample[] = [];
  for (let round = 0; round < rounds; round += 1) {
    samples.push(await measure(`cd "$1"; ${line}`, [root, CURLEW], home));
  }
  await rm(root, { recursive: true, force: true });
  return samples;
}

const LARGE = 200;

export async function benchLargeLint(home: string, { rounds, say }: Options): Promise<Section> {
  const root = join(home, 'large');
  const samples = await lintRuns('node "$2" lint --quiet --no-shellcheck >/dev/null', {
    home,
    root,
    rounds,
    fill: async () => {
      for (let number = 0; number < LARGE; number += 1) await writeLarge(root, number);
    },
  });
  say('lint of large add-ons measured');
  const seconds = spread(samples.map((sample) => sample.seconds));
  const each = (seconds.median * 1000) / LARGE;
  return {
    title: `Lint of ${LARGE} large add-ons`,
    about: 'Each has its own install.sh of 500 to 2,000 lines and 4,600 lines of YAML. Without shellcheck.',
    table: [
      ['command', 'seconds', 'CPU seconds', 'memory, MB'],
      [
        'curlew lint --no-shellcheck',
        range(seconds),
        figure(spread(samples.map(({ cpu }) => cpu)).median),
        figure(spread(samples.map(({ rss }) => rss)).most),
      ],
    ],
    targets: [{ name: 'an add-on', wanted: '≤ 3 ms', measured: `${figure(each)} ms`, met: each <= 3 }],
  };
}

export async function benchLint(home: string, { rounds, say }: Options): Promise<Section> {
  const root = join(home, 'corpus');
  const samples = await lintRuns('node "$2" lint --quiet >/dev/null || (($? == 10))', {
    home,
    root,
    rounds,
    fill: async () => writeCorpus(root, { count: ADDONS }),
  });
  say('lint measured');
  const seconds = spread(samples.map((sample) => sample.seconds));
  return {
    title: `Lint of ${ADDONS} add-ons`,
    about: "Generated add-ons, with as many files of the same kinds as in kURL's repository.",
    table: [
      ['command', 'seconds', 'memory, MB'],
      ['curlew lint', range(seconds), figure(spread(samples.map(({ rss }) => rss)).most)],
    ],
    targets: [
      { name: 'lint', wanted: '< 1 s', measured: `${range(seconds)} s`, met: seconds.median < 1 },
      rssTarget('memory, lint', samples),
    ],
  };
}
