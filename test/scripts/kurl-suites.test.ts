import { execa } from 'execa';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files } from '../support/tree.ts';

const test = suite('scripts/kurl-suites');
const SCRIPT = join(import.meta.dirname, '../../scripts/kurl-suites');

/** The part of shunit2 that suites need: functions by name, one after the other. */
const RUNNER = `assertEquals() { [ "$2" = "$3" ] || { echo "ASSERT:$1 expected $2, was $3"; exit 1; }; }
[ "\${1-}" != -- ] || shift
for name in "$@"; do "$name"; done
`;
const SCRIPTS: Files = {
  shunit2: RUNNER,
  'kurl/scripts/common/common.sh': `kebab_to_camel() { echo 'aB'; }
only_there() { echo 1; }
`,
};

async function compared(suiteText: string): Promise<{ readonly status: number | undefined; readonly said: string }> {
  await using box = await tree({
    ...SCRIPTS,
    'kurl/scripts/common/test/x-test.sh': `. ./scripts/common/common.sh\n${suiteText}. shunit2\n`,
  });
  const { exitCode, stdout } = await execa(SCRIPT, ['kurl', '--shunit2', 'shunit2'], { cwd: box.path, reject: false });
  return { status: exitCode, said: stdout };
}

test('a test that passes on both is counted, each by itself', async () => {
  const { status, said } = await compared(`testOne() { assertEquals x aB "$(kebab_to_camel a-b)"; }
function test_two() { assertEquals y 1 1; }
function test_not_there() { assertEquals z 1 2; }
`);
  assert.match(said, "2 pass on both, 0 only on the repository's scripts, 1 on neither");
  assert.match(said, 'does not pass on the scripts of the repository: scripts/common/test/x-test.sh test_not_there');
  assert.is(status, 0);
});

test('one that passes on the scripts of the repository alone is shown, and fails', async () => {
  const { status, said } = await compared(`test_it() { assertEquals 'what is there' 1 "$(only_there)"; }\n`);
  assert.match(
    said,
    /FAILS HERE: scripts\/common\/test\/x-test\.sh test_it\n(?: {2}\| .*\n)* {2}\| ASSERT:what is there/,
  );
  assert.is(status, 1);
});

test('what is no such repository, or has no shunit2, is refused', async () => {
  await using box = await tree(SCRIPTS);
  const refused = async (...words: readonly string[]): Promise<string> =>
    (await execa(SCRIPT, words, { cwd: box.path, reject: false })).stderr;
  assert.match(await refused('.'), 'has no scripts/common: it is not a kURL-style repository');
  assert.match(await refused('kurl', '--shunit2', 'nowhere'), 'nowhere is missing: apt-get install shunit2');
  assert.match(await refused(), 'one TREE is needed');
});

test.run();
