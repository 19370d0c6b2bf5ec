import { createProgressModel, progressBar } from '../../../src/cli/render/terminal.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/render/terminal');

test('a bar has one width, however much is done', () => {
  for (const done of [-1, 0, 1, 50, 99, 100, 200]) assert.is(progressBar(done, 100).length, 26);
  assert.match(progressBar(50, 100), /^█{10}·{10} {2}50 %$/);
  assert.match(progressBar(0, 0), /100 %$/);
});

test('the headline counts steps and bytes, and tells speed and time left once it can', () => {
  let now = 0;
  const model = createProgressModel(() => now);
  model.take({ type: 'step-started', id: 'a', title: 'a-1.0', bytes: 1000 });
  model.take({ type: 'step-started', id: 'b', title: 'b-1.0' });
  assert.is(model.headline(), '0 of 2 done, 0 B of 1 kB');
  model.take({ type: 'step-progress', id: 'a', bytes: 500 });
  now = 5000;
  assert.is(model.headline(), '0 of 2 done, 500 B of 1 kB, 100 B/s, 5 s left');
  model.take({ type: 'step-done', id: 'b', outcome: 'unchanged' });
  model.take({ type: 'step-done', id: 'a', outcome: 'built' });
  assert.is(model.headline(), '2 of 2 done');
  assert.equal(model.lines(80), []);
});

test('the speed is that of the last seconds, not of what a cache gave at once', () => {
  let now = 0;
  const model = createProgressModel(() => now);
  model.take({ type: 'step-started', id: 'a', title: 'a-1.0', bytes: 100_000 });
  model.headline();
  model.take({ type: 'step-progress', id: 'a', bytes: 50_000 });
  for (let second = 1; second <= 20; second += 1) {
    now = second * 1000;
    model.take({ type: 'step-progress', id: 'a', bytes: 50_000 + second * 1000 });
    model.headline();
  }
  assert.is(model.headline(), '0 of 1 done, 70 kB of 100 kB, 1 kB/s, 30 s left');
});

test('a size that becomes known on the way is counted from then on', () => {
  const model = createProgressModel(() => 0);
  model.take({ type: 'step-started', id: 'a', title: 'a-1.0' });
  model.take({ type: 'step-progress', id: 'a', bytes: 10 });
  assert.is(model.headline(), '0 of 1 done');
  assert.equal(model.lines(80), ['a-1.0  10 B']);
  model.take({ type: 'step-progress', id: 'a', bytes: 25, total: 100 });
  assert.is(model.headline(), '0 of 1 done, 25 B of 100 B');
  assert.equal(model.lines(80), [`a-1.0  ${progressBar(25, 100)}    25 B of 100 B`]);
});

test('a step without a size tells after a while how long it has been at work', () => {
  let now = 0;
  const model = createProgressModel(() => now);
  model.take({ type: 'step-started', id: 'a', title: 'web 1.0: install' });
  model.take({ type: 'step-started', id: 'b', title: 'b' });
  assert.equal(model.lines(80), ['web 1.0: install', 'b']);
  now = 75_000;
  assert.equal(model.lines(80), ['web 1.0: install  75 s', 'b                 75 s']);
});

test('more bytes than announced do not count as more than all', () => {
  const model = createProgressModel(() => 0);
  model.take({ type: 'step-started', id: 'a', title: 'a', bytes: 10 });
  model.take({ type: 'step-progress', id: 'a', bytes: 99 });
  assert.is(model.headline(), '0 of 1 done, 10 B of 10 B');
});

for (const columns of [40, 80, 200]) {
  test(`lines fit into ${columns} columns, many steps are summed up, and control characters do not pass`, () => {
    const model = createProgressModel(() => 0);
    for (let at = 0; at < 12; at += 1) {
      const title = `\u001b[2J${'long-name-'.repeat(30)}`;
      model.take({ type: 'step-started', id: String(at), title, bytes: at % 3 === 0 ? undefined : 123_400_000_000 });
      model.take({ type: 'step-progress', id: String(at), bytes: 12_340_000_000 });
      if (at % 4 === 0) model.take({ type: 'step-log', id: String(at), text: `said ${'much '.repeat(99)}` });
    }
    const lines = model.lines(columns);
    assert.equal(
      lines.filter((line) => line.length > columns - 4 || line.includes('\u001b')),
      [],
    );
    assert.is(lines.length, 9);
    assert.is(lines.at(-1), 'and 4 more');
  });
}

test.run();
