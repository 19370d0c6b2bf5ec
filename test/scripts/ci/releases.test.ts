/** From a commit to staging, and from its tag to production: the steps as workflows run them. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { addonFiles, ci, commit, git, repository } from '../../support/ci.ts';
import { suite } from '../../support/suite.ts';
import { writeTree, type Tree } from '../../support/tree.ts';

// not fast: clones and builds
const test = suite('scripts/ci/publish-staging and promote-production', { timeoutMs: 120_000 });

const TAG = 'v2026.11.21-0';
const STORES = { CURLEW_STAGING: '.curlew/staging', CURLEW_PRODUCTION: '.curlew/dist' };

/** Publishes the checked-out commit; the release that came of it. */
async function staged(box: Tree): Promise<string> {
  const { exitCode, stdout, stderr } = await ci(box, ['publish-staging'], STORES);
  assert.is(exitCode, 0, stdout + stderr);
  return stdout.slice(stdout.lastIndexOf('release=') + 'release='.length);
}

test('a commit is published as its day in UTC and its digits; what has not changed is copied', async () => {
  await using box = await repository({ ...addonFiles('web'), ...addonFiles('db') });
  const first = await staged(box);
  const head = await git(box, 'rev-parse', 'HEAD');
  assert.is(first, `v2026.11.21-${head.slice(0, 12)}`);
  assert.is(await readFile(box.at('.curlew/staging/VERSION'), 'utf8'), first);
  await writeTree(box.path, addonFiles('web', '1.0.0', 'other'));
  await commit(box, 'second');
  const { stdout } = await ci(box, ['publish-staging'], STORES);
  assert.match(stdout, new RegExp(`^db 1\\.0\\.0: unchanged since ${first}`, 'm'));
  assert.match(stdout, /^db 1\.0\.0: .*copied/m);
  assert.match(stdout, /^web 1\.0\.0: uploaded/m);
});

test('the same commit again is the same release', async () => {
  await using box = await repository(addonFiles('web'));
  const first = await staged(box);
  assert.is(await staged(box), first);
});

test('without a store it is said which variable is missing', async () => {
  await using box = await repository(addonFiles('web'));
  const { exitCode, stderr } = await ci(box, ['publish-staging'], { CURLEW_STAGING: '' });
  assert.is(exitCode, 1);
  assert.match(stderr, 'CURLEW_STAGING is not set');
});

test('what differs from the store is what a pull request tries', async () => {
  await using box = await repository({ ...addonFiles('web'), ...addonFiles('db') });
  await staged(box);
  await writeTree(box.path, { ...addonFiles('web', '1.0.0', 'other'), ...addonFiles('new') });
  const { exitCode, stdout, stderr } = await ci(box, ['changed'], { CURLEW_STORE: '.curlew/staging', BATCH: '1' });
  assert.is(exitCode, 0, stderr);
  assert.is(stdout, 'batches=["new/1.0.0","web/1.0.0"]');
});

test('a tag promotes the bytes that staging has of its commit, under its own name', async () => {
  await using box = await repository({ ...addonFiles('web'), ...addonFiles('db') });
  const release = await staged(box);
  await git(box, 'tag', TAG);
  for (const round of ['first', 'again']) {
    const { exitCode, stdout, stderr } = await ci(box, ['promote-production', TAG], STORES);
    assert.is(exitCode, 0, `${round}: ${stdout}${stderr}`);
  }
  assert.is(await readFile(box.at('.curlew/dist/VERSION'), 'utf8'), TAG);
  for (const name of ['web-1.0.0.tar.gz', 'db-1.0.0.tar.gz']) {
    const [tried, promoted] = [`.curlew/staging/${release}/${name}`, `.curlew/dist/${TAG}/${name}`];
    assert.equal(await readFile(box.at(promoted)), await readFile(box.at(tried)));
  }
});

test('later commits in staging do not reach production by an earlier tag', async () => {
  await using box = await repository(addonFiles('web'));
  await staged(box);
  await git(box, 'tag', TAG);
  const before = await readFile(box.at('.curlew/staging/VERSION'), 'utf8');
  await writeTree(box.path, addonFiles('web', '2.0.0'));
  await commit(box, 'second');
  assert.is.not(await staged(box), before);
  await git(box, 'switch', '--quiet', '--detach', TAG);
  const { exitCode, stderr } = await ci(box, ['promote-production'], { ...STORES, GITHUB_REF_NAME: TAG });
  assert.is(exitCode, 0, stderr);
  assert.not.match(await readFile(box.at(`.curlew/dist/${TAG}/index.json`), 'utf8'), '2.0.0');
});

for (const [title, tag, expected] of [
  ['a tag of another kind', 'v1.2.3', 'a release tag has the form v2026.11.20-0'],
  ['a tag that is an option', '--deep', 'a release tag has the form v2026.11.20-0'],
  ['a tag that is not there', 'v2026.11.21-7', 'is not the tag of the checked-out commit'],
  ['a tag of another commit', 'v2026.11.21-1', 'is not the tag of the checked-out commit'],
  ['a commit that staging never saw', TAG, 'NOT_FOUND'],
] as const) {
  test(`${title} promotes nothing`, async () => {
    await using box = await repository(addonFiles('web'));
    await staged(box);
    await git(box, 'tag', 'v2026.11.21-1');
    await writeTree(box.path, addonFiles('web', '2.0.0'));
    await commit(box, 'second');
    await git(box, 'tag', TAG);
    const { exitCode, stderr } = await ci(box, ['promote-production', tag], STORES);
    assert.ok(exitCode !== 0);
    assert.match(stderr, expected);
    assert.not.ok(existsSync(box.at('.curlew/dist/VERSION')));
  });
}

test.run();
