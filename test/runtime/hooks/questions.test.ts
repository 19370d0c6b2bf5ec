import { readdir, readFile } from 'node:fs/promises';
import type { Ask, Question } from '../../../src/core/context.ts';
import * as assert from '../../support/assert.ts';
import { hooks } from '../../support/hook-shell.ts';
import { suite } from '../../support/suite.ts';

const test = suite('questions of hooks', { timeoutMs: 60_000 });

/** Answers in turn, and what it was asked. */
function answering(...answers: readonly (string | undefined)[]): { readonly ask: Ask; readonly asked: Question[] } {
  const asked: Question[] = [];
  return { asked, ask: async (question) => answers[asked.push(question) - 1] };
}

test('answers of each kind reach the hook, with what it has printed before', async () => {
  await using box = await hooks([
    `demo() {
      printf '\\e[33mRook is removed.\\e[0m\\nContinue? '
      confirmN && echo removed
      printf 'And this? '
      confirmY || echo kept
      printf 'Name: '
      prompt
      [ "$PROMPT_RESULT" = "a  \\\\b'c" ]
      prompt_secret
      [ "$PROMPT_RESULT" = hunter2 ]
    }`,
  ]);
  const { ask, asked } = answering('y', 'n', String.raw`a  \b'c`, 'hunter2');
  const { log } = await box.run('demo', { ask });
  assert.equal(
    asked.map(({ kind, lines }) => [kind, ...lines]),
    [
      ['no', 'Rook is removed.', 'Continue? (y/N)'],
      ['yes', 'removed', 'And this? (Y/n)'],
      ['text', 'kept', 'Name:'],
      ['secret'],
    ],
  );
  const text = await readFile(log, 'utf8');
  assert.not(`${text}${JSON.stringify(box.events)}`.includes('hunter2'));
  assert.not((await readdir(box.shell.folder)).some((name) => name.includes('answer')));
});

test('the default counts where nothing is typed', async () => {
  await using box = await hooks([
    'demo() { confirmY; ! confirmN; prompt; [ -z "$PROMPT_RESULT" ]; confirmN || echo no; }',
  ]);
  await box.run('demo', { ask: answering('', '', '', 'what').ask });
});

test('somebody who has gone is nobody: defaults with a warning, and prompt gives up', async () => {
  await using box = await hooks(['demo() { confirmY; ! confirmN; prompt; }']);
  const failed = await assert.rejectsWith(box.run('demo', { ask: answering().ask }), 'HOOK_FAILED');
  assert.match(failed.message, 'there is no terminal to answer it');
  assert.match(box.notes().join('\n'), /accepting prompt[^]*declining prompt/);
});

test('a question that cannot be asked leaves no hook waiting', async () => {
  await using box = await hooks(['demo() { confirmY; }']);
  await box.run('demo', {
    ask: async () => {
      throw new Error('the terminal is broken');
    },
  });
  assert.match(box.notes().join('\n'), 'cannot ask its question: the terminal is broken');
});

test('a hook that is stopped takes its question back', async () => {
  await using box = await hooks(['demo() { confirmY; echo went on; }']);
  const stop = new AbortController();
  let taken = false;
  const ask: Ask = async (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        taken = true;
        reject(new Error('stopped'));
      });
      stop.abort(new Error('enough'));
    });
  const gone = await box.run('demo', { ask, signal: stop.signal, graceMs: 100 }).then(
    () => 'finished',
    () => 'stopped',
  );
  assert.equal([gone, taken], ['stopped', true]);
  const limited: Ask = async (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('late')));
    });
  await assert.rejectsWith(box.run('demo', { ask: limited, limitMs: 300, graceMs: 100 }), 'HOOK_FAILED', /longer/);
});

test('questions in the background and of a hook that ends without an answer do no harm', async () => {
  await using box = await hooks(['demo() { confirmY & confirmN & wait; (sleep 60; confirmY) & }']);
  const { ask, asked } = answering('y', 'y');
  await box.run('demo', { ask, graceMs: 100 });
  assert.is(asked.length, 2);
});

test('a record that is no question of ours is passed over', async () => {
  await using box = await hooks([
    String.raw`demo() { printf 'question\tyes\t../../x\nquestion\tmaybe\t1-1\n' >&$CURLEW_CONTROL; }`,
  ]);
  const { ask, asked } = answering('y');
  await box.run('demo', { ask });
  assert.equal(asked, []);
});

test.run();
