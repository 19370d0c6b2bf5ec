/** The bats files of test/bash: each of their tests counts as one here. */
import { execa } from 'execa';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from '../support/suite.ts';
import { sampleOf } from '../support/sweep.ts';

const BATS = join(import.meta.dirname, '../../node_modules/bats/bin/bats');
const FOLDER = join(import.meta.dirname, '../bash');

// not fast: a shell for each of two hundred tests
const test = suite('scripts/lib', { timeoutMs: 300_000 });

/** Every second file, by the seed of the run; all of them with --all. */
const FILES = (await readdir(FOLDER)).filter((name) => name.endsWith('.bats')).toSorted();
const CHOSEN = sampleOf(FILES, 2);
for (const name of FILES.filter((one) => !CHOSEN.includes(one))) {
  test.skip(name, 'every second bats file in each run, by its seed; all: scripts/test --all');
}

const { stdout, stderr } = await execa(
  'bash',
  [BATS, '--formatter', 'tap', ...CHOSEN.map((name) => join(FOLDER, name))],
  { reject: false },
);
const results = stdout.split(/^(?=(?:not )?ok \d+ )/m).slice(1);

test('every bats test was run', () => {
  const planned = Number(/^1\.\.(\d+)$/m.exec(stdout)?.[1] ?? 0);
  if (planned === 0 || planned !== results.length)
    throw new Error(`planned ${planned}, ran ${results.length}: ${stderr}`);
});

for (const result of results) {
  const [, failed, name = '', skipped] = /^(not )?ok \d+ (.*?)(?: # skip ?(.*))?$/m.exec(result) ?? [];
  if (skipped !== undefined) {
    test.skip(name, skipped);
  } else {
    test(name, () => {
      if (failed !== undefined) throw new Error(result);
    });
  }
}

test.run();
