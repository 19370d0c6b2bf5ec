/** Failures that a hook handles, the one that ends it, and its messages about them. */
import * as assert from '../../support/assert.ts';
import { hooks } from '../../support/hook-shell.ts';
import { suite } from '../../support/suite.ts';

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

test.run();
