import { execaSync } from 'execa';
import { findAddons } from '../../src/manifest/find-addons.ts';
import { lintAddons, type LintReport } from '../../src/manifest/lint.ts';
import * as assert from '../support/assert.ts';
import { writeCorpus } from '../support/corpus.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('components/shellcheck');
const searchPath = process.env['PATH'] ?? '/usr/bin:/bin';
const installed = execaSync('shellcheck', ['--version'], { reject: false }).exitCode === 0;

async function lint(box: Tree, signal: AbortSignal): Promise<LintReport> {
  return lintAddons(await findAddons(box.path, [], { signal }), {
    shellcheck: true,
    complete: true,
    searchPath,
    signal,
  });
}

function check(title: string, script: string, expected: readonly string[]): void {
  if (!installed) {
    test.skip(title, 'shellcheck is not installed');
    return;
  }
  test(title, async ({ signal }) => {
    await using box = await tree({ 'addons/ekco/1/Manifest': '', 'addons/ekco/1/install.sh': script });
    const report = await lint(box, signal);
    assert.is(report.shellcheck, 'ran');
    assert.equal(
      report.diagnostics.map(
        ({ code, severity, place }) => `${place.line}:${place.column}+${place.length} ${severity} ${code}`,
      ),
      expected,
    );
  });
}

check('a warning of shellcheck is a warning, at its place', 'ekco() {\n  cd x\n  rm "$1"\n}\n', [
  '2:3+4 warning shellcheck/SC2164',
]);
check('an error of shellcheck is an error', 'ekco() {\n  ls $@\n}\n', ['2:6+2 error shellcheck/SC2068']);
check('columns count UTF-16 units', 'ekco() {\n  echo "\u{1F600}" $@\n}\n', ['2:13+2 error shellcheck/SC2068']);
check(
  'what does not apply to sourced files is left out',
  'ekco() {\n  . "$DIR/x.sh"\n  echo "$lower"\n}\nunused=1\n',
  [],
);
check('notes of style are left out', 'ekco() {\n  echo $1\n}\n', []);
check('a directive in the script is honoured', 'ekco() {\n  # shellcheck disable=SC2164\n  cd x\n}\n', []);
check('a comment ignores a rule of shellcheck', 'ekco() {\n  # curlew-lint-ignore shellcheck/SC2164\n  cd x\n}\n', []);
check(
  'a comment that ignores nothing of shellcheck is told',
  'ekco() { # curlew-lint-ignore shellcheck/SC2164\n  :\n}\n',
  ['1:31+17 warning lint/unused-ignore'],
);
check('a script with a syntax error is told of once', 'ekco() {\n', ['2:1+1 error install/syntax']);

if (installed) {
  test('many scripts in one run: each finding goes to its own', async ({ signal }) => {
    await using box = await tree({});
    await writeCorpus(box.path, { count: 612 });
    const { diagnostics } = await lint(box, signal);
    assert.equal(
      diagnostics.filter(({ code }) => code !== 'image/latest' && code !== 'asset/no-digest'),
      [],
    );
  });
}

test.run();
