/** The question before a reset, on a terminal: script(1) makes one. */
import { execa } from 'execa';
import { stat } from 'node:fs/promises';
import { shellQuote } from '../../src/core/shell-word.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { cleanEnvironment, curlewOk } from '../support/curlew.ts';
import { boxWith } from '../support/node-bundles.ts';
import { traced, tracer } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';

const test = suite('cli/confirm', { timeoutMs: 120_000 });

interface Answered {
  readonly exitCode: number | undefined;
  /** What the terminal shows behind the question. */
  readonly shown: string;
}

/** Types the answer when the question stands there. */
async function answered(box: Tree, answer: string): Promise<Answered> {
  const words = [process.execPath, MAIN, 'reset', '--root', box.at('root'), '--unconfined'];
  const command = `stty rows 24 cols 80; exec ${words.map(shellQuote).join(' ')}`;
  const child = execa('script', ['-qefc', command, '/dev/null'], {
    cwd: box.path,
    reject: false,
    env: cleanEnvironment({ cwd: box.path, env: { TERM: 'xterm', NO_COLOR: '1' } }),
    extendEnv: false,
    stdin: 'pipe',
  });
  let text = '';
  let isAsked = false;
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
    if (isAsked || !text.includes('[y/N]')) return;
    isAsked = true;
    // Longer than until a command without a result shows what it does: nothing may be drawn over the question.
    setTimeout(() => child.stdin.write(answer), 800);
  });
  const { exitCode } = await child;
  const plain = text.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]|\r/g, '');
  assert.match(plain, `Remove everything on this node that was installed in ${box.at('root')}`);
  return { exitCode, shown: plain.slice(plain.indexOf('[y/N]') + '[y/N]'.length) };
}

async function isThere(box: Tree): Promise<boolean> {
  return (await stat(box.at('root/var/lib/curlew')).catch(() => undefined)) !== undefined;
}

if ((await execa('script', ['--version'], { reject: false })).exitCode === 0) {
  test('no, Ctrl-C and the end of the input change nothing and say so; yes does it', async () => {
    await using box = await boxWith([tracer('aaa')]);
    await curlewOk(['install', '--root', 'root', '--unconfined', '--bundle', 'b.tar.gz'], traced(box));
    for (const answer of ['n\r', '\r', 'yellow\r', '\u0003', '\u0004', 'y\u0003']) {
      const { exitCode, shown } = await answered(box, answer);
      const typed = JSON.stringify([answer, shown]);
      assert.is(exitCode, 130, typed);
      assert.ok(/^[^\n]*\n(?:nothing has changed|canceled)\n$/.test(shown), typed);
      assert.ok(await isThere(box), typed);
    }
    const { exitCode, shown } = await answered(box, 'y\r');
    assert.is(exitCode, 0, shown);
    assert.match(shown, /aaa +1\.0\.0 +removed\nremoved from [^]*?records\.json/);
    assert.not(await isThere(box));
  });
} else test.skip('the question before a reset', 'there is no script(1)');

test.run();
