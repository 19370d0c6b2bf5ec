import { execa } from 'execa';
import { open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { capLog } from '../../../src/runtime/hooks/log-cap.ts';
import { linesFrom } from '../../../src/runtime/hooks/log-tail.ts';
import { membersOf } from '../../../src/platform/process/process-tree.ts';
import * as assert from '../../support/assert.ts';
import { hooks } from '../../support/hook-shell.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

// own process: the program that limits a log ends some time after the last one that writes to it
const test = suite('runtime/log-cap', { timeoutMs: 60_000 });

const SCRIPTS = join(import.meta.dirname, '../../../scripts');
const KIB = 1 << 10;
const CAP = { most: 256 * KIB, head: 16 * KIB, tail: 32 * KIB };
const NOTE = /\n\[curlew: (\d+) bytes of this log are left out here\]\n/;
const PATH = process.env['PATH'] ?? '';

/** 64 bytes a line, numbered from 1; the bash that prints `count` of them. */
const numbered = (count: number): string => `seq -f '%063.0f' 1 ${count}`;

/** Until the log takes up less on the disk: while somebody has it open, it has a hole. */
async function below(path: string, bytes: number): Promise<void> {
  while ((await stat(path)).blocks * 512 > bytes) await wait(10);
}

test('a log keeps its beginning and its end, and says how much is left out between them', async () => {
  await using box = await hooks([`demo() { ${numbered(100_000)}; echo the end; }`]);
  await box.run('demo', { logCap: CAP });
  const text = await readFile(box.at('runs/r1/demo.log'), 'latin1');
  const whole = 100_000 * 64 + 'the end\n'.length;
  assert.match(text, /^0+1\n0+2\n/);
  assert.match(text, /0+99999\n0+100000\nthe end\n$/);
  assert.is(text.match(new RegExp(NOTE, 'g'))?.length, 1);
  const dropped = Number(NOTE.exec(text)?.[1]);
  const [note = ''] = NOTE.exec(text) ?? [];
  assert.ok(text.length <= CAP.head + CAP.most + note.length, `${text.length} bytes`);
  assert.is(dropped + text.length - note.length, whole);
  assert.equal(await readdir(box.at('runs/r1')).then((names) => names.filter((name) => name.endsWith('.rest'))), []);
});

for (const what of ['mkfifo', 'mkdir', 'ln -s /dev/zero', 'ln -s /nowhere/log']) {
  test(`a hook that puts something else into the place of its log fails as others do: ${what}`, async () => {
    await using box = await hooks([
      `demo() { rm "$DIR/runs/r1/demo.log"; ${what} "$DIR/runs/r1/demo.log"; return 3; }`,
    ]);
    await assert.rejectsWith(box.run('demo', { logCap: CAP }), 'HOOK_FAILED', /demo failed with status 3/);
    assert.equal((await linesFrom(box.at('runs/r1/demo.log'), 0)).lines, []);
  });
}

test('a log below the limit is left as it is', async () => {
  await using box = await hooks([`demo() { ${numbered(4000)}; }`]);
  await box.run('demo', { logCap: CAP });
  assert.is((await stat(box.at('runs/r1/demo.log'))).size, 256_000);
});

test('a failure quotes the end of a log that was cut', async () => {
  await using box = await hooks([`demo() { ${numbered(100_000)}; echo the reason; return 3; }`]);
  await assert.rejectsWith(box.run('demo', { logCap: CAP }), 'HOOK_FAILED', /the reason/);
});

test('a second try adds to what was left out before', async () => {
  await using box = await hooks([`demo() { ${numbered(50_000)}; }`]);
  await box.run('demo', { logCap: CAP });
  const first = Number(NOTE.exec(await readFile(box.at('runs/r1/demo.log'), 'latin1'))?.[1]);
  await box.run('demo', { logCap: CAP, attempt: 2 });
  const text = await readFile(box.at('runs/r1/demo.log'), 'latin1');
  assert.ok(Number(NOTE.exec(text)?.[1]) > first + 2_000_000, text.slice(CAP.head, CAP.head + 100));
});

for (const said of ['999999999999999999', '0999']) {
  test(`a hook that prints what stands for ${said} bytes does not keep its next try from being cut`, async () => {
    const line = `\\n[curlew: ${said} bytes of this log are left out here]\\n\\0`;
    await using box = await hooks([
      `demo() { [ "$CURLEW_ATTEMPT" = 1 ] && { head -c ${CAP.head} /dev/zero; printf '${line}'; return 0; }; ${numbered(50_000)}; }`,
    ]);
    await box.run('demo', { logCap: CAP });
    await box.run('demo', { logCap: CAP, attempt: 2 });
    const { size } = await stat(box.at('runs/r1/demo.log'));
    assert.ok(size <= CAP.head + CAP.most, `${size} bytes`);
  });
}

test('what a hook leaves behind does not fill the disk either, and is not held up', async () => {
  await using box = await hooks([
    // It gets its own session before the hook ends: what is not is ended with it.
    `demo() { ( setsid bash -c 'touch begun; until [ -e go ]; do sleep 0.05; done; ${numbered(100_000).replaceAll("'", '"')}
       touch printed; until [ -e stop ]; do sleep 0.05; done' & ) ; until [ -e begun ]; do sleep 0.01; done; }`,
  ]);
  const { daemons } = await box.run('demo', { logCap: CAP });
  assert.ok(daemons.length > 0);
  await writeFile(box.at('go'), '');
  while (!(await readdir(box.path)).includes('printed')) await wait(10);
  await below(box.at('runs/r1/demo.log'), CAP.most);
  while (!NOTE.test(await readFile(box.at('runs/r1/demo.log'), 'latin1'))) await wait(10);
  await writeFile(box.at('stop'), '');
  const marker = `CURLEW_HOOK=${box.shell.run}/demo`;
  while (membersOf({ session: -1, marker }).outside.length > 0) await wait(10);
});

test('a log is cut when whoever began it was killed, and the hook goes on', async () => {
  await using box = await tree({ log: '', 'cap.mjs': '' });
  const writer = execa('bash', ['-c', `until [ -e go ]; do sleep 0.05; done; ${numbered(100_000)}; echo the end`], {
    cwd: box.path,
    stdout: { file: box.at('log'), append: true },
    reject: false,
  });
  const killed = execa(
    'bash',
    [
      '-c',
      `bash "$0" log ${CAP.most} ${CAP.head} ${CAP.tail} 3>>log < <(sleep 600) & kill -9 "$$"`,
      join(SCRIPTS, 'cap-log.sh'),
    ],
    { cwd: box.path, reject: false, stdout: 'ignore', stderr: 'ignore' },
  );
  await killed;
  await writeFile(box.at('go'), '');
  assert.is((await writer).exitCode, 0);
  await below(box.at('log'), CAP.most);
  assert.match(await readFile(box.at('log'), 'latin1'), /the end\n$/);
});

test('a log whose name is gone is cut too', async () => {
  await using box = await tree({ log: '' });
  const settle = capLog(box.at('log'), await open(box.at('log'), 'a'), { scripts: SCRIPTS, path: PATH, cap: CAP });
  const { stdout } = await execa(
    'bash',
    [
      '-c',
      `exec 5>>log; rm log; ${numbered(20_000)} >&5; until (( $(stat -Lc %b /proc/$$/fd/5) * 512 < ${CAP.most} )); do sleep 0.05; done; stat -Lc %b /proc/$$/fd/5`,
    ],
    { cwd: box.path },
  );
  assert.ok(Number(stdout) * 512 <= CAP.most, stdout);
  await settle();
});

test('lines that were asked for from behind the end of a cut log are its last', async () => {
  await using box = await tree({ log: 'one\ntwo\n' });
  assert.equal(await linesFrom(box.at('log'), 1000), { lines: ['one', 'two', ''], end: 8 });
});

test.run();
