/** What every workflow and the action keep to, beyond what linters of workflows know. */
import { existsSync } from 'node:fs';
import { access, constants, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { parse } from 'yaml';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('workflows');

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly needs?: string;
  readonly 'timeout-minutes'?: number;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly strategy?: {
    readonly matrix: {
      readonly include?: readonly { readonly command?: string }[];
      readonly scenario?: readonly string[];
      readonly shard?: readonly number[];
    };
  };
  readonly steps: readonly Step[];
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: unknown;
  readonly concurrency?: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

const ROOT = join(import.meta.dirname, '../../..');
const FOLDER = join(ROOT, '.github/workflows');
const names = (await readdir(FOLDER)).toSorted();
const texts = new Map<string, string>();
for (const name of names) texts.set(name, await readFile(join(FOLDER, name), 'utf8'));
/** A step whose output is what a script prints. */
const OUTPUT = /^key="\$\((.+)\)" && echo "key=\$key" >>"\$GITHUB_OUTPUT"$/;
const action = await readFile(join(ROOT, 'action.yml'), 'utf8');

test('release.yml: packs after all tests and the check of Node, signs what was packed, then publishes', () => {
  const { jobs } = parse(texts.get('release.yml') ?? '') as Workflow;
  const order = ['test', 'pack', 'publish'].map((name) => {
    const { needs, steps = [] } = jobs[name] ?? {};
    const runs = steps.flatMap(
      ({ run = '' }) => /^scripts\/(?:ci\/)?(test|node-published|release-\w+)/.exec(run)?.[1] ?? [],
    );
    return [needs, ...runs];
  });
  assert.equal(order, [
    [undefined, 'test'],
    ['test', 'node-published', 'release-pack', 'release-site'],
    ['pack', 'release-sign', 'release-publish'],
  ]);
});

test('check.yml: its jobs run every test of the default tier, in shards that know the same times, and the checks', () => {
  const { jobs } = parse(texts.get('check.yml') ?? '') as Workflow;
  const lines = Object.entries(jobs).flatMap(([name, { steps }]) => steps.map(({ run = '' }) => `${name}: ${run}`));
  for (const line of [
    'check: scripts/check',
    'fast: scripts/test --fast --no-check',
    'full: .ci/run --rest --shard "$SHARD/2"',
  ])
    assert.ok(lines.includes(line), line);
  assert.equal(jobs['full']?.strategy?.matrix.shard, [1, 2]);
  assert.is(jobs['full']?.needs, 'times');
  const folders = ['', '-1', '-2'].map((name) => `.curlew/times/test-times${name}`);
  assert.ok(lines.includes(`keep-times: scripts/ci/test-times ${folders.join(' ')}`));
});

test('nightly.yml: every scenario of the grid has a job', async () => {
  const { jobs } = parse(texts.get('nightly.yml') ?? '') as Workflow;
  const { stdout } = await execa(join(ROOT, 'scripts/grid'), ['list']);
  const scenarios = stdout
    .slice(0, stdout.indexOf('\n\n'))
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '');
  assert.ok(scenarios.length > 10, scenarios.join());
  assert.equal([...(jobs['grid']?.strategy?.matrix.scenario ?? [])].toSorted(), scenarios.toSorted());
});

test('are these', () => {
  const kinds = ['addons-pr', 'check', 'nightly', 'promote-production', 'publish-staging', 'release', 'update-addons'];
  assert.equal(
    names,
    kinds.map((kind) => `${kind}.yml`),
  );
});

for (const [name, text] of texts) {
  const workflow = parse(text) as Workflow;
  const jobs = Object.entries(workflow.jobs);
  const steps = jobs.flatMap(([, job]) => job.steps);

  test(`${name}: may read and no more by default, runs once at a time, and every job has an end`, () => {
    assert.equal(workflow.permissions, { contents: 'read' });
    assert.ok(workflow.concurrency !== undefined);
    for (const [job, { 'timeout-minutes': minutes }] of jobs) assert.ok((minutes ?? 0) > 0, job);
  });

  test(`${name}: a checkout leaves no credentials behind`, () => {
    for (const { uses, with: given } of steps) {
      if (uses?.startsWith('actions/checkout@') === true) assert.is(given?.['persist-credentials'], false);
    }
  });

  test(`${name}: what strangers propose gets neither secrets nor rights`, () => {
    assert.not.ok('pull_request_target' in workflow.on || 'workflow_run' in workflow.on);
    if (!('pull_request' in workflow.on)) return;
    assert.not.match(text, /secrets\.|github\.token|: write/);
  });

  test(`${name}: every step is a script that is there and can be run`, async () => {
    for (const { run: line } of steps) {
      if (line === undefined || line.startsWith('git config ')) continue;
      const run = OUTPUT.exec(line)?.[1] ?? line;
      assert.not.match(run, '${{', 'values come by the environment');
      const scripts = run.split(' ').filter((word) => /^(scripts|\.ci)\//.test(word));
      assert.ok(scripts.length > 0 && run.startsWith(scripts[0] ?? '-') && !run.includes('\n'), run);
      for (const script of scripts) await access(join(ROOT, script), constants.X_OK);
    }
    const commands = jobs.flatMap(([, { strategy }]) => strategy?.matrix.include ?? []);
    for (const { command = '' } of commands) {
      const [script = '-'] = command.split(' ').filter((word) => !word.startsWith('-'));
      await access(join(ROOT, script), constants.X_OK);
    }
  });
}

test('actions are pinned by their commit, with the version beside it', () => {
  for (const text of [...texts.values(), action]) {
    for (const [line] of text.matchAll(/^.*\buses:.*$/gm)) {
      assert.match(line, /uses: actions\/[a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    }
  }
});

test('the same action has the same commit everywhere', () => {
  const commits = new Map<string, string>();
  for (const [, name = '', pin = ''] of [...texts.values(), action]
    .join('\n')
    .matchAll(/uses: ([^@/]+\/[^@/]+)[^@]*@(.+)$/gm)) {
    assert.is(commits.get(name) ?? pin, pin, name);
    commits.set(name, pin);
  }
});

test('the action runs scripts of its own checkout, with inputs in the environment', () => {
  const { runs } = parse(action) as { readonly runs: { readonly steps: readonly Step[] } };
  const lines = runs.steps.flatMap(({ run }) => run ?? []);
  for (const line of lines) {
    const [, script = '-'] = /^"\$GITHUB_ACTION_PATH\/(scripts\/ci\/[a-z-]+)"$/.exec(line) ?? [];
    assert.ok(existsSync(join(ROOT, script)), line);
  }
  assert.is(lines.length, 2);
});

test.run();
