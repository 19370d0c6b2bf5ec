/** Which add-ons a pull request touches, by git. */
import * as assert from '../../support/assert.ts';
import { addonFiles, ci, commit, git, repository } from '../../support/ci.ts';
import { suite } from '../../support/suite.ts';
import { writeTree } from '../../support/tree.ts';

const test = suite('scripts/ci/changed');

test('names what differs from where the branch began, in batches; what is gone or no version is left out', async () => {
  const files = { ...addonFiles('api'), ...addonFiles('db'), ...addonFiles('web'), ...addonFiles('old') };
  await using box = await repository(files);
  await git(box, 'switch', '--quiet', '--create', 'topic');
  await writeTree(box.path, {
    ...addonFiles('api', '1.0.0', 'other'),
    ...addonFiles('db', '2.0.0'),
    ...addonFiles('web', '1.0.0', 'other'),
    'addons/db/template/Manifest.tmpl': '',
    'README.md': 'more',
  });
  await git(box, 'rm', '--quiet', '-r', 'addons/old');
  await commit(box, 'second');
  // Whatever happens on main meanwhile is not of the branch.
  await git(box, 'switch', '--quiet', 'main');
  await writeTree(box.path, addonFiles('late'));
  await commit(box, 'meanwhile');
  await git(box, 'switch', '--quiet', 'topic');
  const { exitCode, stdout, stderr } = await ci(box, ['changed', 'main'], { BATCH: '2' });
  assert.is(exitCode, 0, stderr);
  assert.is(stdout, 'batches=["api/1.0.0 db/2.0.0","web/1.0.0"]');
});

test('nothing changed is an empty list', async () => {
  await using box = await repository(addonFiles('web'));
  assert.is((await ci(box, ['changed', 'HEAD'])).stdout, 'batches=[]');
});

test('a base that was not fetched is said', async () => {
  await using box = await repository(addonFiles('web'));
  const { exitCode, stderr } = await ci(box, ['changed'], { BASE: 'origin/main' });
  assert.is(exitCode, 1);
  assert.match(stderr, 'fetch-depth: 0');
});

test('names that are no names go no further', async () => {
  await using box = await repository(addonFiles('web'));
  for (const ADDONS of ['--out', '../../etc', '$(id)', 'a;b']) {
    const { exitCode, stderr } = await ci(box, ['lint'], { ADDONS });
    assert.is(exitCode, 1);
    assert.match(stderr, 'not the name of an add-on');
  }
});

test('lint annotates the lines of a pull request, and only in a workflow', async () => {
  await using box = await repository({ ...addonFiles('web'), 'addons/web/1.0.0/Manifest': 'asset page\n' });
  const there = await ci(box, ['lint'], { GITHUB_ACTIONS: 'true' });
  assert.is(there.exitCode, 10);
  assert.match(there.stdout, /^::error file=addons\/web\/1\.0\.0\/Manifest,line=1/m);
  assert.not.match((await ci(box, ['lint', 'web'])).stdout, '::error');
});

test.run();
