import { execa } from 'execa';
import { appendFile } from 'node:fs/promises';
import { followControl, parseControlLine, type ControlRecord } from '../../../src/runtime/hooks/control.ts';
import { endOfLog, lastLines, plainLogLine } from '../../../src/runtime/hooks/log-tail.ts';
import * as assert from '../../support/assert.ts';
import { compiledModule } from '../../support/compiled.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('control records and log tails');

test('a record keeps its fields', () => {
  assert.equal(parseControlLine('log\tstep\ta\\tb\\nc\\\\n'), { kind: 'log', level: 'step', text: 'a\tb\nc\\n' });
  assert.equal(parseControlLine('error\t0\t3\tdemo\t/x.sh\t12\tgrep x'), {
    kind: 'error',
    place: { depth: 0, status: 3, function: 'demo', file: '/x.sh', line: 12, command: 'grep x' },
  });
});

test('a line that is no record is nothing', () => {
  for (const line of ['', 'log', 'log\tloud\tx', 'stage\tx', 'unknown\tx', '\u0000']) {
    assert.is(parseControlLine(line), undefined, line);
  }
});

test('records are handed over whole, however they are written, and endless lines are dropped', async () => {
  await using box = await tree({ control: 'log\tinfo\tfirst\n' });
  const records: ControlRecord[] = [];
  const follower = await followControl(box.at('control'), (record) => records.push(record));
  await appendFile(box.at('control'), 'log\tinf');
  await appendFile(box.at('control'), `o\tsecond\nlog\tinfo\t${'x'.repeat(1 << 20)}\nlog\tinfo\tthird\n`);
  await follower.finish();
  await follower.finish();
  assert.equal(
    records.map((record) => (record.kind === 'log' ? record.text : record.kind)),
    ['first', 'second', 'third'],
  );
});

const WATCHES = 'records are followed on a machine that has no file watches left';
const FEW = 'echo 0 >/proc/sys/user/max_inotify_instances; exec "$@"';
const words = ['-Ur', 'bash', '-c', FEW, 'bash'] as const;
if ((await execa('unshare', [...words, 'true'], { reject: false })).exitCode === 0) {
  test(WATCHES, async () => {
    await using box = await tree({ control: '' });
    const script = `
      import { appendFileSync } from 'node:fs';
      import { followControl } from ${JSON.stringify(compiledModule('src/runtime/hooks/control.ts'))};
      const seen = new Promise((resolve) => followControl(process.argv[1], resolve));
      appendFileSync(process.argv[1], 'absent\\tdemo\\n');
      setInterval(() => undefined, 1000);
      console.log((await seen).function);
      process.exit(0);`;
    const node = [process.execPath, '--input-type=module', '--eval', script];
    const { stdout } = await execa('unshare', [...words, ...node, box.at('control')]);
    assert.is(stdout, 'demo');
  });
} else {
  test.skip(WATCHES, 'no user namespaces here');
}

test('the last lines of a long log are read without the rest', async () => {
  await using box = await tree({ log: `${'y'.repeat(300_000)}\n${'z'.repeat(1000)}\n\n\nend\n` });
  const lines = await lastLines(box.at('log'), 2);
  assert.is(lines.length, 2);
  assert.is(lines[0]?.length, 400);
  assert.is(lines[1], 'end');
  assert.equal(await lastLines(box.at('none'), 2), []);
});

test('the end of a log is its text in full, without colours and blank lines around it', async () => {
  const long = 'j'.repeat(1000);
  await using box = await tree({
    log: `\n\u001b[0;32mdone\u001b[0m\n\n  ${long}\n\n`,
    huge: `${'y'.repeat(70_000)}\nlast\n`,
  });
  assert.is(await endOfLog(box.at('log')), `done\n\n  ${long}`);
  assert.is(await endOfLog(box.at('huge')), 'last');
  assert.is(await endOfLog(box.at('none')), '');
});

test('what is left of a line on the screen', () => {
  assert.is(plainLogLine('\u001b[0;31mred\u001b[0m \u001b]0;title\u0007x\r'), 'red x');
  assert.is(plainLogLine('10%\r50%\r100% done'), '100% done');
});

test.run();
