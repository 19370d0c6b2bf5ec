import { readFile, writeFile } from 'node:fs/promises';
import * as fc from 'fast-check';
import { CLOSED, createJournal, formatEntry, parseJournal, readJournal } from '../../../src/runtime/journal/journal.ts';
import { progressOf, unfinishedAttempts } from '../../../src/runtime/journal/progress.ts';
import { isRunPlan } from '../../../src/runtime/plan/run-plan.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';
import { tree } from '../../support/tree.ts';

// soak: random cases
const test = suite('journal');

test('entries come back as they were written, also when many are written at once', async () => {
  await using box = await tree();
  {
    await using journal = await createJournal(box.at('j'));
    await journal.append({ type: 'started', action: 'hook a', attempt: 1 });
    const many = Array.from({ length: 20 }, async (_, index) =>
      journal.append({ type: 'done', action: `images ${index}`, outcome: 'line\nbreak "quoted"' }),
    );
    await Promise.all(many);
  }
  const entries = await readJournal(box.at('j'), isRunPlan);
  assert.is(entries.length, 21);
  assert.is(entries[0]?.type, 'started');
  assert.is(entries.filter((entry) => entry.type === 'done' && entry.outcome === 'line\nbreak "quoted"').length, 20);
});

test('a journal is for nobody else to read, and is never written over', async () => {
  await using box = await tree({ j: '' });
  await assert.rejectsWith(createJournal(box.at('j')), 'FILE_UNUSABLE', /EEXIST/);
});

test('no journal has no entries', async () => {
  await using box = await tree();
  assert.equal(await readJournal(box.at('none'), isRunPlan), []);
});

const text = ['a', 'b', 'c']
  .map((action) => formatEntry({ at: '2026-11-21T10:15:00.000Z', type: 'started', action, attempt: 1 }))
  .join('');

test('a journal cut anywhere gives the entries that are whole', () => {
  const ends = [...text.matchAll(/\n/g)].map(({ index }) => index);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: text.length }), (cut) => {
      const whole = ends.filter((end) => end <= cut).length;
      assert.is(parseJournal(text.slice(0, cut), 'j', isRunPlan).length, whole);
    }),
    cases(500),
  );
});

test('a damaged line that others follow is an error that names it', () => {
  const damaged = text.replace('"action":"b"', '"action":"x"');
  assert.throwsWith(() => parseJournal(damaged, '/run/j', isRunPlan), 'FILE_UNUSABLE', /\/run\/j: line 2 is damaged/);
});

test('garbage after the last line is ignored, garbage before it is not', async () => {
  await using box = await tree();
  await writeFile(box.at('j'), `${text}\0\0\0`);
  assert.is((await readJournal(box.at('j'), isRunPlan)).length, 3);
  await writeFile(box.at('j'), `\0\0\0\n${await readFile(box.at('j'), 'utf8')}`);
  await assert.rejectsWith(readJournal(box.at('j'), isRunPlan), 'FILE_UNUSABLE', /line 1/);
});

test('what was begun without coming to an end counts as an attempt, also of the runs before', () => {
  const at = '2026-11-21T10:15:00.000Z';
  const attempts = unfinishedAttempts([
    {
      at,
      type: 'planned',
      plan: { format: 1, kind: 'install', addons: [], actions: [] },
      earlier: [
        ['a', 1],
        ['d', 4],
      ],
    },
    { at, type: 'started', action: 'a', attempt: 2 },
    { at, type: 'done', action: 'a', outcome: 'done' },
    { at, type: 'started', action: 'b', attempt: 3 },
    { at, type: 'started', action: 'c', attempt: 1 },
    { at, type: 'failed', action: 'c', message: 'not as it was installed' },
  ]);
  assert.equal(
    [...attempts],
    [
      ['d', 4],
      ['b', 3],
    ],
  );
});

test('a line with the right sum that is not as this version writes it is an error, also the last one', () => {
  const at = '2026-11-21T10:15:00.000Z';
  const plan = { format: 1, kind: 'install', addons: [], actions: [] };
  const ref = { tree: 'addons', name: 'aaa', version: '1.0.0' };
  const done = [{ action: 'hook aaa', run: '20261121T101500Z-3f2a' }];
  const whole = { ...plan, addons: [{ ref }], continues: { run: 'x', done } };
  assert.is(parseJournal(formatEntry({ at, type: 'planned', plan: whole } as never), 'j', isRunPlan).length, 1);
  for (const entry of [
    null,
    5,
    { type: 'started', action: 'a', attempt: 1 },
    { at, type: 'paused' },
    { at, type: 'planned' },
    { at, type: 'planned', plan: { ...plan, actions: undefined } },
    { at, type: 'planned', plan: { ...plan, actions: [{ id: 'x' }] } },
    { at, type: 'planned', plan: { ...plan, addons: [{ ref: null }] } },
    { at, type: 'planned', plan: { ...plan, addons: [{ ref: { ...ref, version: '../..' } }] } },
    { at, type: 'planned', plan: { ...plan, continues: { done: null } } },
    { at, type: 'planned', plan: { ...plan, continues: { done: [{ action: 'hook a', run: '../../etc' }] } } },
    { at, type: 'planned', plan, earlier: 5 },
    { at, type: 'planned', plan, earlier: [['a', 1e300]] },
    { at, type: 'started', action: { x: 1 }, attempt: 1 },
    { at, type: 'started', action: 'a', attempt: -1 },
    { at, type: 'done', action: 'a' },
    { at, type: 'failed', action: 'a', message: 5 },
    { at, type: 'ended', outcome: 'paused' },
  ]) {
    const read = (): unknown => parseJournal(`${text}${formatEntry(entry as never)}`, 'j', isRunPlan);
    assert.throwsWith(read, 'FILE_UNUSABLE', /^cannot read j: line 4 is damaged, or of another version of curlew$/);
  }
});

interface Phases {
  readonly phases: readonly string[];
  readonly continues?: { readonly done: readonly { readonly action: string; readonly run: string }[] };
}

function isPhases(value: unknown): value is Phases {
  return value !== null && typeof value === 'object' && 'phases' in value;
}

test('a journal holds any plan whose actions have ids, and tells how far they got', async () => {
  await using box = await tree();
  {
    await using journal = await createJournal<Phases>(box.at('j'));
    const done = [{ action: 'connect', run: 'first' }];
    await journal.append({ type: 'planned', plan: { phases: ['connect', 'reset'], continues: { done } } });
    await journal.append({ type: 'started', action: 'reset', attempt: 1 });
    await journal.append({ type: 'done', action: 'reset', outcome: 'done' });
  }
  const { planned, done, outcome } = progressOf('second', await readJournal(box.at('j'), isPhases));
  assert.equal(planned?.plan.phases, ['connect', 'reset']);
  assert.equal(
    [...done],
    [
      ['connect', 'first'],
      ['reset', 'second'],
    ],
  );
  assert.is(outcome, undefined);
  await assert.rejectsWith(readJournal(box.at('j'), isRunPlan), 'FILE_UNUSABLE', /line 1/);
});

test('a journal that is not open yet takes no entry', async () => {
  const entry = { type: 'ended', outcome: 'finished' } as const;
  assert.match(String(await CLOSED.append(entry).catch((error: unknown) => error)), 'the journal is not open');
});

test.run();
