/** The action of this repository, its last step run with inputs as GitHub would fill them in, and the page about it. */
import { execa } from 'execa';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import * as assert from '../../support/assert.ts';
import { addonFiles, git, repository } from '../../support/ci.ts';
import { PRODUCT } from '../../support/compiled.ts';
import { cleanEnvironment, type Outcome } from '../../support/curlew.ts';
import { suite } from '../../support/suite.ts';
import type { Tree } from '../../support/tree.ts';

const test = suite('the action', { timeoutMs: 120_000 });

const ROOT = join(import.meta.dirname, '../../..');

interface Action {
  readonly inputs: Readonly<Record<string, { readonly required?: boolean }>>;
  readonly runs: {
    readonly steps: readonly { readonly run?: string; readonly env?: Readonly<Record<string, string>> }[];
  };
}

const action = parse(await readFile(join(ROOT, 'action.yml'), 'utf8')) as Action;
const page = await readFile(join(ROOT, 'docs/ci.md'), 'utf8');

async function act(box: Tree, inputs: Readonly<Record<string, string>>): Promise<Outcome> {
  const { run = '', env = {} } = action.runs.steps.at(-1) ?? {};
  const filled = Object.entries(env).map(([name, value]) => {
    const [, input = '-'] = /^\$\{\{ inputs\.([a-z-]+) \}\}$/.exec(value) ?? [];
    assert.ok(input in action.inputs, `${name}: ${value}`);
    return [name, inputs[input] ?? ''];
  });
  const added = { ...(Object.fromEntries(filled) as Record<string, string>), GITHUB_ACTION_PATH: join(ROOT, PRODUCT) };
  const { exitCode, stdout, stderr } = await execa('bash', ['-eo', 'pipefail', '-c', run], {
    cwd: box.path,
    env: { ...cleanEnvironment({ cwd: box.path, env: added }), GITHUB_REF_NAME: 'v2026.11.21-0' },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  return { exitCode: exitCode ?? 255, stdout, stderr };
}

test('publishes and promotes another repository, by inputs alone', async () => {
  await using box = await repository(addonFiles('web'));
  await git(box, 'tag', 'v2026.11.21-0');
  const stores = { staging: '.curlew/staging', production: '.curlew/dist' };
  for (const run of ['publish-staging', 'promote-production']) {
    const { exitCode, stdout, stderr } = await act(box, { run, ...stores });
    assert.is(exitCode, 0, stdout + stderr);
  }
  assert.is(await readFile(box.at('.curlew/dist/VERSION'), 'utf8'), 'v2026.11.21-0');
});

for (const run of ['', 'set-up', '../../bin/sh', 'with-samples']) {
  test(`"${run}" is nothing that it runs`, async () => {
    await using box = await repository(addonFiles('web'));
    const { exitCode, stderr } = await act(box, { run });
    assert.is(exitCode, 64);
    assert.match(stderr, 'run is one of');
  });
}

test('the page shows it in ten lines, and names every input', () => {
  const [, example = ''] = /## Ten lines[^]*?```yaml\n([^]*?)```/.exec(page) ?? [];
  assert.is(example.trimEnd().split('\n').length, 10);
  const { jobs } = parse(example) as { readonly jobs: { readonly 'add-ons': { readonly steps: readonly object[] } } };
  const used = jobs['add-ons'].steps.at(-1) as { readonly with: Readonly<Record<string, string>> };
  for (const name of Object.keys(used.with)) assert.ok(name in action.inputs, name);
  for (const name of Object.keys(action.inputs)) assert.match(page, `\`${name}\``);
});

test.run();
