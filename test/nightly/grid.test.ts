/** Real clusters of the grid: made, upgraded, and over SSH, with interruptions that a seed chooses. */
// runs alone: its nodes take the memory and the processors of the machine
import { execa } from 'execa';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { CHECKOUT } from '../support/built.ts';
import { unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';

const test = suite('scripts/grid', { timeoutMs: 3_600_000 });
const GRID = join(CHECKOUT, 'scripts/grid');
const { stdout: programs } = await execa(GRID, ['list']);
const absent = /^ {2}\S+ +missing/m.test(programs) ? 'its programs are not built: scripts/grid list' : undefined;
const tests = unless(process.getuid?.() === 0 ? absent : 'needs root', test);

for (const scenario of ['smoke', 'upgrade', 'minors', 'machines', 'kills']) {
  tests(`${scenario} passes`, async () => {
    const { exitCode, all } = await execa(GRID, ['run', scenario], { all: true, reject: false });
    assert.is(exitCode, 0, all.slice(-4000));
  });
}

test.run();
