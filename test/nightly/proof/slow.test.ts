/** slowhttptest holds connections of `curlew serve` open, while it looks whether others are answered. */
import { execa } from 'execa';
import { startDaemon } from '../../components/support/daemon.ts';
import { cannotRun } from '../../components/support/programs.ts';
import { assertSays } from '../../components/support/proof.ts';
import { publishTestPackages } from '../../support/bundles.ts';
import { MAIN } from '../../support/compiled.ts';
import { unless } from '../../support/needs.ts';
import { noise } from '../../support/packages.ts';
import { freePort } from '../../support/ports.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('nightly/proof/slow', { timeoutMs: 300_000 });
const COLORS = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*[A-Za-z]`, 'g');

interface Attack {
  readonly name: string;
  readonly words: readonly string[];
  readonly path: string;
  /** All of its connections are closed long before it ends by itself. */
  readonly isEnded: boolean;
  /** It takes all places, which others get when it has not read for half a minute: only the last answers count. */
  readonly isFull?: boolean;
}

/** More than most attacks take, so that only one of them is at the limit. */
const CONNECTIONS = 310;
const BIG = '/dist/r1/big-1.0.0.tar.gz';
const ATTACKS: readonly Attack[] = [
  { name: 'slow heads', words: ['-H', '-i', '5', '-l', '120'], path: BIG, isEnded: true },
  {
    name: 'slow bodies',
    words: ['-B', '-i', '5', '-l', '120', '-s', '8192'],
    path: '/installer/validate',
    isEnded: true,
  },
  { name: 'ranges', words: ['-R', '-l', '120', '-t', 'HEAD', '-a', '10', '-b', '3000'], path: BIG, isEnded: true },
  // The idle timeout ends it after minutes.
  { name: 'slow reading', words: ['-X', '-l', '20', '-n', '5', '-z', '32'], path: BIG, isEnded: false },
  {
    name: 'slow reading at all places',
    words: ['-X', '-c', String(CONNECTIONS), '-l', '150', '-n', '5', '-z', '32'],
    path: BIG,
    isEnded: false,
    isFull: true,
  },
];

unless(cannotRun('slowhttptest'), test)(
  'others are answered during every attack of slowhttptest',
  async ({ signal }) => {
    await using box = await tree();
    // More than the buffers of the network hold.
    const files = [{ path: 'images/a', data: noise(16_000_000) }];
    await publishTestPackages(box, [{ name: 'big', version: '1.0.0', files }], signal);
    const host = `127.0.0.1:${await freePort()}`;
    await using _server = await startDaemon({
      command: process.execPath,
      args: [MAIN, 'serve', '--store', box.at('store'), '--listen', host, '--max-connections', String(CONNECTIONS)],
      logFile: box.at('serve.log'),
      ready: async () => (await fetch(`http://${host}/healthz`)).ok,
    });
    const held: string[] = [];
    const output: string[] = [];
    for (const { name, words, path, isEnded, isFull = false } of ATTACKS) {
      const all = ['-c', '300', '-r', '300', '-p', '20', ...words, '-u', `http://${host}${path}`];
      const { stdout } = await execa('slowhttptest', all, { cwd: box.path, stdin: 'ignore' });
      const text = stdout.replaceAll(COLORS, '');
      const answers = [...text.matchAll(/service available:\s+(YES|NO)/g)].map(([, answer]) => answer);
      const counted = isFull ? answers.slice(-5) : answers;
      const isHeld = counted.length > 0 && !counted.includes('NO');
      if (isHeld && (!isEnded || text.includes('No open connections left'))) held.push(name);
      output.push(name, text);
    }
    const said = `answers during ${held.length} of ${ATTACKS.length} attacks`;
    assertSays('slowhttptest', said, output.join('\n'));
  },
);

test.run();
