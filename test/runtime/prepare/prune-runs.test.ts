import * as assert from '../../support/assert.ts';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { listRunLogs } from '../../../src/runtime/history/hook-logs.ts';
import { formatEntry, type JournalEntry } from '../../../src/runtime/journal/journal.ts';
import { pruneRuns } from '../../../src/runtime/prepare/run-folder.ts';
import { NO_RECORDS } from '../../../src/runtime/plan/records.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run, tracer } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('folders of old runs');

type Outcome = Extract<JournalEntry, { type: 'ended' }>['outcome'] | 'died';

function id(number: number): string {
  return `20260101T${String(number).padStart(6, '0')}Z-0000`;
}

/** Run folders with these numbers, whose journals say how they ended. */
async function runs(box: Tree, from: number, count: number, outcome: Outcome): Promise<void> {
  for (let number = from; number < from + count; number += 1) {
    const at = new Date(0).toISOString();
    const last: JournalEntry =
      outcome === 'died' ? { at, type: 'started', action: 'x', attempt: 1 } : { at, type: 'ended', outcome };
    await mkdir(box.at('runs', id(number)), { recursive: true });
    await writeFile(box.at('runs', id(number), 'journal.jsonl'), formatEntry(last));
    await writeFile(box.at('runs', id(number), 'aaa.log'), 'text');
  }
}

async function left(box: Tree): Promise<readonly string[]> {
  return (await readdir(box.at('runs'))).toSorted();
}

function numbers(from: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => id(from + index));
}

test('the last ten that finished and the last twenty that did not are kept', async () => {
  await using box = await tree({ 'runs/notes/of-mine': '' });
  await runs(box, 100, 15, 'finished');
  await runs(box, 200, 10, 'failed');
  await runs(box, 300, 10, 'cancelled');
  await runs(box, 400, 5, 'died');
  await pruneRuns(box.path, NO_RECORDS, undefined);
  assert.equal(await left(box), [
    ...numbers(105, 10),
    ...numbers(205, 20 - 15),
    ...numbers(300, 10),
    ...numbers(400, 5),
    'notes',
  ]);
});

test('what hooks have put in the place of their logs keeps no later run from its work', async () => {
  await using box = await tree();
  await runs(box, 100, 1, 'failed');
  await symlink('/nowhere/log', box.at('runs', id(100), 'bbb.log'));
  await mkdir(box.at('runs', id(100), 'ccc.log'));
  await pruneRuns(box.path, NO_RECORDS, undefined, { keepLogs: 0 });
  assert.equal(await readdir(box.at('runs', id(100))), ['bbb.log', 'ccc.log', 'journal.jsonl']);
  assert.equal(
    (await listRunLogs(box.path)).map(({ logs }) => logs),
    [[]],
  );
});

test('logs beyond the budget go, the oldest first, but not those of the last run', async () => {
  await using box = await tree();
  await runs(box, 100, 3, 'finished');
  await runs(box, 200, 3, 'failed');
  for (const number of [100, 101, 102, 200, 201, 202]) {
    await writeFile(box.at('runs', id(number), 'aaa.log'), Buffer.alloc(64 << 10, 'x'));
  }
  await pruneRuns(box.path, { ...NO_RECORDS, lastRun: id(101) }, id(202), { keepLogs: 150 << 10 });
  const kept = [];
  for (const run of await left(box)) {
    const names = await readdir(box.at('runs', run));
    assert.ok(names.includes('journal.jsonl'), run);
    if (names.includes('aaa.log')) kept.push(run);
  }
  assert.equal(kept, [id(101), id(200), id(201), id(202)]);
});

test('a run that the records name is kept however old it is', async () => {
  await using box = await tree();
  await runs(box, 100, 30, 'finished');
  const digest = `sha256:${'0'.repeat(64)}` as const;
  const applied = { aaa: { version: '1', digest, settings: digest, run: id(101), finished: true } };
  await pruneRuns(box.path, { ...NO_RECORDS, lastRun: id(100), applied }, undefined);
  assert.equal(await left(box), [id(100), id(101), ...numbers(120, 10)]);
});

test('a damaged journal counts as one that did not finish', async () => {
  await using box = await tree();
  await runs(box, 100, 11, 'finished');
  await writeFile(box.at('runs', id(100), 'journal.jsonl'), 'x\ny\n');
  await pruneRuns(box.path, NO_RECORDS, undefined);
  assert.equal(await left(box), numbers(100, 11));
});

test('runs prune before they begin; settings that a dying run has left behind go with the next one', async () => {
  await using box = await tree();
  await runs({ ...box, at: (...parts) => box.at('node', ...parts) }, 100, 12, 'finished');
  await writeFile(box.at('node/runs', id(105), 'settings.sh'), 'AAA_PASSWORD=sesame');
  const { run: latest } = await run(box, await packagesOf(bundleOf([tracer('aaa')])));
  const names = (await readdir(box.at('node/runs'))).toSorted();
  assert.equal(names, [...numbers(102, 10), latest].toSorted());
  assert.equal(await readdir(box.at('node/runs', id(105))), ['aaa.log', 'journal.jsonl']);
});

test('nothing is removed while the records cannot be read', async () => {
  await using box = await tree();
  await runs({ ...box, at: (...parts) => box.at('node', ...parts) }, 100, 30, 'finished');
  await writeFile(box.at('node/records.json'), '{');
  const packages = await packagesOf(bundleOf([tracer('aaa')]));
  await assert.rejectsWith(run(box, packages), 'FILE_UNUSABLE', /records\.json/);
  assert.is((await readdir(box.at('node/runs'))).length, 30);
});

test.run();
