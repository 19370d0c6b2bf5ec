/** Failures that a hook handles, the one that ends it, and its messages about them. */
import { writeFile } from 'node:fs/promises';
import { hookFailure } from '../../../src/runtime/hooks/hook-failure.ts';
import * as assert from '../../support/assert.ts';
import { hooks } from '../../support/hook-shell.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('failures that hooks handle');

for (const [title, before, expansion, message] of [
  ['in a subshell', 'echo "$(false)"', '$((1/0))', '1/0: division by 0'],
  ['in a subshell before an unset variable', 'echo "$(false)"', '${DEMO_ZONE:?set it}', 'DEMO_ZONE: set it'],
  ['after set +e', 'set +e; false', '$((1/0))', '1/0: division by 0'],
  ['of bail in a subshell', '(bail handled) || true', '$((1/0))', '1/0: division by 0'],
] as const) {
  test(`a handled failure ${title} is not taken for the error in an expansion that follows`, async () => {
    await using box = await hooks([`demo() {\n  ${before}\n  local one="${expansion}"\n}`]);
    const { message: text } = await assert.rejectsWith(
      box.run('demo'),
      'HOOK_FAILED',
      /^demo: demo failed with status/,
    );
    assert.match(text.split('\n', 1)[0] ?? '', `install.sh:3: ${message}`);
  });
}

test('a handled failure in a subshell is not taken for what ended a hook without a place', async () => {
  await using box = await hooks(['demo() {\n  echo "$(false)"\n  exec bash -c "exit 4"\n}']);
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', /ended with status 4 at an unknown line, as after exec/);
});

test('from set +e in a hook to set -e, neither failing commands nor its status make it fail', async () => {
  for (const body of ['false; return 3', 'false']) {
    await using box = await hooks([`demo() { set +e; ${body}; }`]);
    await box.run('demo');
  }
  for (const [body, failure] of [
    ['false; set -e; return 3', /status 3 at .* in demo: return 3/],
    ['set -e; false; :', /status 1 at .* in demo: false/],
    ['exit 3', /status 3 at .* in demo: exit 3/],
    ['exit 0', /called exit before its end/],
    [': $((1/0))', /1\/0: division by 0/],
  ] as const) {
    await using box = await hooks([`demo() { set +e; ${body}; }`]);
    await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', failure);
  }
});

test('an add-on that names itself in its messages is named once', async () => {
  await using box = await hooks([
    'demo() {\n  logWarn "demo: care"\n  logStep "demos: all"\n  bail "demo: no disk"\n}',
  ]);
  const failure = /^demo: demo gave up at \S+install\.sh:4 in demo: no disk$/m;
  await assert.rejectsWith(box.run('demo'), 'HOOK_FAILED', failure);
  assert.equal(box.notes(), ['demo: care', 'demo: demos: all', 'demo: no disk']);
});

test('the files of a hook in a sandbox are named as the user can open them', async () => {
  await using box = await tree({ log: '' });
  const node = { directory: '/trial/var/lib/curlew', seen: '/var/lib/curlew' };
  const file = '/var/lib/curlew/addons/demo/1/install.sh';
  const at = { function: 'demo', file, line: 2 };
  const place = { ...at, depth: 0, status: 1, command: 'false' };
  const stage = { kind: 'stage', stage: 'source', what: file } as const;
  for (const [notes, output, why] of [
    [{ place }, '', 'failed with status 1 at FILE:2 in demo: false'],
    [{ bail: { kind: 'bail', ...at, text: 'no' } }, '', 'gave up at FILE:2 in demo: no'],
    [{ stage }, '', 'ended with status 1 while FILE was read at an unknown line, as after exec'],
    [{ stage }, `${file}: line 3: syntax error near x`, 'failed: FILE:3: syntax error near x'],
    [{}, `${file}: line 3: X: unbound variable`, 'failed with status 1 at FILE:3: X: unbound variable'],
  ] as const) {
    await writeFile(box.at('log'), output);
    const failed = { addon: 'demo', function: 'demo', node, log: box.at('log'), notes, exit: 1 };
    const { message } = await hookFailure(failed);
    assert.match(message, `demo: demo ${why.replace('FILE', '/trial/var/lib/curlew/addons/demo/1/install.sh')}`);
  }
});

test.run();
