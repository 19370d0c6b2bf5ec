/** What the demo of a fleet refuses before it starts anything. */
import { execa } from 'execa';
import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('scripts/fleet-demo');
const SCRIPTS = join(import.meta.dirname, '../../scripts');

test('--help says what it does, and other words are refused', async () => {
  const { stdout } = await execa(join(SCRIPTS, 'fleet-demo'), ['--help']);
  assert.match(stdout, /^A hub and three clusters on this machine[^]*\nusage: scripts\/fleet-demo /);
  for (const words of [['--kepe'], ['--keep', '--kepe']]) {
    const wrong = await execa(join(SCRIPTS, 'fleet-demo'), words, { reject: false });
    assert.equal([wrong.exitCode, wrong.stdout], [1, '']);
    assert.match(wrong.stderr, /^error: fleet-demo takes no --kepe/);
  }
});

test('without its tools, it names them and how to build them, and starts nothing', async () => {
  await using box = await tree();
  await cp(SCRIPTS, box.at('scripts'), { recursive: true });
  await cp(join(SCRIPTS, '../test/oracles'), box.at('test/oracles'), { recursive: true });
  const { exitCode, stdout, stderr } = await execa(box.at('scripts/fleet-demo'), [], {
    env: { TMPDIR: box.path },
    reject: false,
  });
  assert.equal([exitCode, stdout], [1, '']);
  const line =
    /^error: the demo needs api-server kubernetes-1\.36 helm-4: scripts\/fleet-demo --prepare builds .* in about 17 min$/;
  assert.match(stderr, line);
  assert.equal((await readdir(box.path)).toSorted(), ['.curlew', 'scripts', 'test']);
});

test.run();
