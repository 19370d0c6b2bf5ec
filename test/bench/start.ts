/** What everybody waits for: the start of the program, and lint over as many add-ons as kURL has. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { executableFileName } from '../../src/core/layout.ts';
import { writeCorpus } from '../support/corpus.ts';
import { measure, milliseconds, pairwise, spread } from './measure.ts';
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
  for (let round = 0; round < rounds * 4; round += 1) {
    bare.push(await milliseconds('node', ['-e', '0']));
    help.push(await milliseconds('node', [CURLEW, '--help']));
    single.push(await milliseconds(EXECUTABLE, ['--version']));
  }
  say('start-up measured');
  const [own, alone, quotient] = [spread(help), spread(single), pairwise(help, bare)];
  return {
    title: 'Start',
    about: 'From the call to the end of the process.',
    table: [
      ['command', 'milliseconds'],
      ['node -e 0', range(spread(bare))],
      ['curlew --help', range(own)],
      ['the executable for nodes, --version', range(alone)],
    ],
    targets: [
      { name: '--help', wanted: '≤ 100 ms', measured: `${range(own)} ms`, met: own.median <= 100 },
      { name: 'executable for nodes', wanted: '< 150 ms', measured: `${range(alone)} ms`, met: alone.median < 150 },
      { name: '--help by node -e 0', wanted: '≤ 2.5', measured: range(quotient), met: quotient.median <= 2.5 },
    ],
  };
}

export async function benchLint(home: string, { rounds, say }: Options): Promise<Section> {
  const root = join(home, 'corpus');
  await rm(root, { recursive: true, force: true });
  await writeCorpus(root, { count: ADDONS });
  const samples = [];
  for (let round = 0; round < rounds; round += 1) {
    samples.push(await measure('cd "$1"; node "$2" lint --quiet >/dev/null || (($? == 10))', [root, CURLEW], home));
  }
  say('lint measured');
  await rm(root, { recursive: true, force: true });
  const seconds = spread(samples.map((sample) => sample.seconds));
  return {
    title: `Lint of ${ADDONS} add-ons`,
    about: "Generated add-ons of the shapes and counts of kURL's repository.",
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
