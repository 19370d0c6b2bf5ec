/** Functions of the kubernetes package that a command calls: how they end is how the command ends. */
import type { Context } from '../../../src/core/context.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { kubernetesTask } from '../../../src/steps/node/kubernetes-task.ts';
import { writeRecords } from '../../../src/runtime/node/records.ts';
import { NO_RECORDS, settingsDigest } from '../../../src/runtime/plan/records.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('steps/node/kubernetes-task');
const digest = settingsDigest({});
const NONE = Array.from({ length: 300 }, (_, place) => `  goroutine ${place}`);

/** Calls a function with this body, in a folder that has kubernetes; returns its error, and what it has printed. */
async function taskOf(
  body: string,
  words: readonly string[] = [],
  called = 'kubernetes_try',
): Promise<readonly [CurlewError | undefined, string]> {
  await using box = await tree({
    'packages/kubernetes/1.34.4/install.sh': `kubernetes_try() {\n${body}\n}\n`,
  });
  await writeRecords(box.path, {
    ...NO_RECORDS,
    extracted: [{ tree: 'packages', name: 'kubernetes', version: '1.34.4', digest }],
    applied: {
      kubernetes: { version: '1.34.4', digest, settings: digest, run: '20260101T000000Z-0000', finished: true },
    },
  });
  const lines: string[] = [];
  const context: Context = {
    signal: never,
    report: (event) => {
      if (event.type === 'note') lines.push(event.text);
    },
    env: { PATH: process.env['PATH'] },
    cwd: box.path,
    user: 0,
  };
  const error = await kubernetesTask(box.path, [called, ...words], context).then(
    () => undefined,
    (thrown: unknown) => {
      if (thrown instanceof CurlewError) return thrown;
      throw thrown;
    },
  );
  return [error, lines.join('\n')];
}

test('a function that succeeds gets its words, the folder and the version, and its output is shown', async () => {
  assert.equal(await taskOf('echo "$1 $KUBERNETES_VERSION"; [[ "$DIR" == "$PWD" ]]', ['a b']), [
    undefined,
    'a b 1.34.4',
  ]);
});

test('a function that gives up fails the command with its reason', async () => {
  const [error, shown] = await taskOf('echo begun; bail "kubernetes: nothing is changed: use another file"; echo more');
  assert.equal([error?.code, error?.message], ['HOOK_FAILED', 'kubernetes: nothing is changed: use another file']);
  assert.is(shown, 'begun\nkubernetes: nothing is changed: use another file');
});

test('a command that fails in a function fails the command, which quotes the end of its output', async () => {
  const [error, shown] = await taskOf(
    `printf '%s\\n' ${NONE.map((line) => `'${line}'`).join(' ')}; (exit 3); echo more`,
  );
  assert.is(error?.code, 'HOOK_FAILED');
  assert.match(error?.message ?? '', /^kubernetes: kubernetes_try: status 3\n {2}\| {3}goroutine 295\n/);
  assert.is(error?.message.split('\n').length, 6);
  assert.is(error?.cause, undefined);
  assert.is(shown.split('\n').length, 300);
});

test('a package of an earlier version, without the function, is named with the way past it', async () => {
  const [error] = await taskOf('true', [], 'kubernetes_repair');
  assert.is(error?.code, 'HOOK_FAILED');
  assert.match(
    error?.message ?? '',
    /^kubernetes: the package of this node is of an earlier version, .*: run \.\/install\.sh of the new bundle/,
  );
});

test.run();
