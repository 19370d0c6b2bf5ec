/** Workflows and the action in the eyes of the linters that are made for them. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { oracle, ROOT } from '../components/support/programs.ts';

const test = suite('linters of workflows', { timeoutMs: 120_000 });

const UNSAFE = `on: pull_request_target
jobs:
  a:
    runs-on: ubuntu-24.04
    steps:
      - run: echo \${{ github.event.pull_request.title }} \${{ nothing.there }}
`;

for (const [name, program, words] of [
  ['actionlint', oracle('actionlint'), ['-no-color']],
  ['zizmor', oracle('zizmor'), ['--offline', '--quiet', '--no-progress', '--persona', 'pedantic']],
] as const) {
  if (!existsSync(program)) {
    test.skip(`${name} finds nothing`, `missing: scripts/tools ${name}`);
    continue;
  }
  const files = name === 'zizmor' ? ['.github', 'action.yml'] : [];

  test(`${name} finds nothing`, async () => {
    const { exitCode, all } = await execa(program, [...words, ...files], { cwd: ROOT, reject: false, all: true });
    assert.is(exitCode, 0, all);
  });

  test(`${name} would find what is unsafe`, async () => {
    await using box = await tree({ 'unsafe.yml': UNSAFE });
    const { exitCode, all } = await execa(program, [...words, 'unsafe.yml'], {
      cwd: box.path,
      reject: false,
      all: true,
    });
    assert.ok(exitCode !== 0 && all.includes('unsafe.yml'), all);
  });
}

test.run();
