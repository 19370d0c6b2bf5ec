/** Questions of hooks on a terminal: script(1) makes one. */
import { execa } from 'execa';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { questionText } from '../../src/cli/ask-operator.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import { shellQuote } from '../../src/core/shell-word.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { cleanEnvironment, curlew } from '../support/curlew.ts';
import { boxWith } from '../support/node-bundles.ts';
import { traced, tracer } from '../support/node-install.ts';
import { missing, unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';

const test = suite('cli/questions', { timeoutMs: 120_000 });

const ASKING = `aaa() {
  printf '\\nThe data of aaa is removed. Continue? '
  said=no; if confirmN; then said=yes; fi; echo "$said" >"$TRACE.said"
  printf 'Password: '
  prompt_secret
  [ "$PROMPT_RESULT" = hunter2 ] && echo typed >>"$TRACE.said"
}`;

/** The first question alone. */
const CONFIRMING = ASKING.replace(/ {2}printf 'Password[^]*said"\n/, '');

const onTerminal = unless(missing('script', 'stty'), test);

const TRIAL = ['install', '--bundle', 'b.tar.gz', '--root', 'root', '--unconfined'];

interface Terminal {
  /** Everything that was shown since the last look, once that holds a text. */
  readonly until: (text: string) => Promise<string>;
  readonly type: (text: string) => void;
  /** Exit status. */
  readonly ended: () => Promise<number | null>;
}

function terminal(child: ChildProcessWithoutNullStreams): Terminal {
  let shown = '';
  let look = (): void => undefined;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
    look();
  });
  const exit = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      resolve(code);
      look();
    });
  });
  return {
    until: async (text) => {
      while (!shown.includes(text)) {
        if (child.exitCode !== null) throw new Error(`it ended before ${text} was shown: ${shown}`);
        await new Promise<void>((resolve) => {
          look = resolve;
        });
      }
      const all = shown;
      shown = '';
      return all;
    },
    type: (text) => child.stdin.write(text),
    ended: async () => exit,
  };
}

async function boxWithQuestions(): Promise<Tree> {
  const box = await boxWith([tracer('aaa', ASKING)]);
  return box;
}

function start(box: Tree, more: readonly string[] = []): Terminal {
  const line = [process.execPath, MAIN, ...TRIAL, ...more].map(shellQuote).join(' ');
  const env = cleanEnvironment(traced(box, { TERM: 'xterm' }));
  return terminal(spawn('script', ['-qefc', `tty >tty; exec ${line}`, '/dev/null'], { cwd: box.path, env }));
}

onTerminal(
  'a question stands on the terminal with what was said before it, and the run goes on with the answer',
  async () => {
    await using box = await boxWithQuestions();
    const run = start(box);
    const asked = await run.until('(y/N)');
    assert.match(asked, /aaa asks:\s+The data of aaa is removed\. Continue\? \(y\/N\)/);
    run.type('y\r');
    await run.until('Password:');
    // Who pastes the answer at once must not see it either.
    const settings = await execa('stty', ['-a', '-F', (await readFile(box.at('tty'), 'utf8')).trim()]);
    assert.match(settings.stdout, / -echo /);
    run.type('hunter2\r');
    const rest = await run.until('installed');
    assert.not(rest.includes('hunter2'));
    assert.is(await run.ended(), 0);
    assert.is(await readFile(box.at('trace.said'), 'utf8'), 'yes\ntyped\n');
  },
);

onTerminal('Ctrl-C at a question, shown or hidden, stops the run', async () => {
  for (const answers of [[], ['\r']]) {
    await using box = await boxWithQuestions();
    const run = start(box);
    await run.until('(y/N)');
    for (const answer of answers) {
      run.type(answer);
      await run.until('Password:');
    }
    run.type('\u0003');
    assert.is(await run.ended(), 130);
    assert.is(await stat(box.at('root/var/lib/curlew/lock')).catch(() => 'free'), 'free');
  }
});

onTerminal('a run whose terminal is closed while it asks takes the default, and finishes', async () => {
  await using box = await boxWith([tracer('aaa', CONFIRMING)]);
  const line = [process.execPath, MAIN, ...TRIAL].map(shellQuote).join(' ');
  const env = cleanEnvironment(traced(box, { TERM: 'xterm' }));
  const child = spawn('script', ['-qefc', `trap '' HUP; ${line}; touch ended`, '/dev/null'], { cwd: box.path, env });
  await terminal(child).until('(y/N)');
  child.kill('SIGKILL');
  await appears(box.at('ended'));
  assert.is(await readFile(box.at('trace.said'), 'utf8'), 'no\n');
  const { applied } = await readRecords(box.at('root/var/lib/curlew'));
  assert.is(applied['aaa']?.finished, true);
});

test('--yes answers what hooks want confirmed; without a terminal the defaults count', async () => {
  await using box = await boxWith([tracer('aaa', CONFIRMING)]);
  const none = await curlew(TRIAL, traced(box));
  assert.equal([none.exitCode, await readFile(box.at('trace.said'), 'utf8')], [0, 'no\n'], none.stderr);
  assert.match(none.stderr, 'Automatically declining prompt');
  const yes = await curlew([...TRIAL, '--reapply', '--yes'], traced(box));
  assert.equal([yes.exitCode, await readFile(box.at('trace.said'), 'utf8')], [0, 'yes\n'], yes.stderr);
});

test('a question shows which answers there are, and nothing that drives a terminal', () => {
  assert.is(questionText({ addon: 'a', kind: 'yes', lines: ['Really?'] }), 'a asks:\n  Really? (Y/n) ');
  assert.is(questionText({ addon: 'a', kind: 'no', lines: ['x', '(y/N)'] }), 'a asks:\n  x\n  (y/N) ');
  assert.is(questionText({ addon: 'a', kind: 'text', lines: [] }), 'a asks:\n  a: ');
  assert.not(questionText({ addon: 'a', kind: 'text', lines: ['\u001b[2J'] }).includes('\u001b'));
});

test.run();
