import { createProgressModel, progressBar } from '../../../src/cli/render/terminal.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/render/terminal');

test('a bar has one width, however much is done', () => {
  for (const done of [-1, 0, 1, 50, 99, 100, 200]) assert.is(progressBar(done, 100).length, 26);
  assert.match(progressBar(50, 100), /^█{10}·{10} {2}50 %$/);
  assert.match(progressBar(0, 0), /100 %$/);
});

test('the headline counts steps and bytes, and tells the time left once it can', () => {
  let now = 0;
  const model = createProgressModel(() => now);
  model.take({ type: 'step-started', id: 'a', title: 'a-1.0', bytes: 1000 });
  model.take({ type: 'step-started', id: 'b', title: 'b-1.0' });
  model.take({ type: 'step-progress', id: 'a', bytes: 500 });
  assert.is(model.headline(), '0 of 2 done, 500 B of 1 kB');
  now = 4000;
  assert.is(model.headline(), '0 of 2 done, 500 B of 1 kB, 4.0 s left');
  model.take({ type: 'step-done', id: 'b', outcome: 'unchanged' });
  model.take({ type: 'step-done', id: 'a', outcome: 'built' });
  assert.is(model.headline(), '2 of 2 done, 1 kB of 1 kB');
  assert.equal(model.lines(80), []);
});

test('what a program says last stands behind the title of its step', () => {
  const model = createProgressModel(() => 0);
  model.take({ type: 'step-started', id: 'a', title: 'build rhel-9' });
  model.take({ type: 'step-log', id: 'a', text: 'Step 1/2 : FROM base' });
  model.take({ type: 'step-log', id: 'a', text: `Step 2/2 : RUN \u001b[2J${'x'.repeat(200)}` });
  model.take({ type: 'step-log', id: 'unknown', text: 'nobody hears this' });
  const [line = ''] = model.lines(76);
  assert.match(line, /^build rhel-9: Step 2\/2 : RUN [^\u001b]+x$/);
  assert.ok(line.length <= 76);
  model.take({ type: 'step-done', id: 'a', outcome: 'built' });
  assert.equal(model.lines(76), []);
});

test('lines fit into eighty columns, many steps are summed up, and control characters do not pass', () => {
  const model = createProgressModel(() => 0);
  for (let at = 0; at < 12; at += 1) {
    model.take({ type: 'step-started', id: String(at), title: `\u001b[2J${'long-name-'.repeat(12)}`, bytes: 1e9 });
  }
  const lines = model.lines(76);
  assert.ok(
    lines.every((line) => line.length <= 76 && !line.includes('\u001b')),
    lines.join('\n'),
  );
  assert.is(lines.at(-1), 'and 4 more');
});

test.run();
