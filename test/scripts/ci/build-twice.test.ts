/** Two builds of the same add-ons are the same bytes, or that is an error. */
import { appendFile, readFile } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { addonFiles, ci, repository } from '../../support/ci.ts';
import { suite } from '../../support/suite.ts';
import { writeTree } from '../../support/tree.ts';

const test = suite('scripts/ci/build-twice', { timeoutMs: 120_000 });

test('what builds to the same bytes twice passes, and is said on the page of the run', async () => {
  await using box = await repository({ ...addonFiles('web'), ...addonFiles('db') });
  await writeTree(box.path, { '.curlew/page': '' });
  const { exitCode, stdout, stderr } = await ci(box, ['build-twice'], { GITHUB_STEP_SUMMARY: box.at('.curlew/page') });
  assert.is(exitCode, 0, stdout + stderr);
  const page = await readFile(box.at('.curlew/page'), 'utf8');
  assert.match(
    page,
    /### Built twice\n\n```text\n[0-9a-f]{64} {2}db-1\.0\.0\.tar\.gz\n[0-9a-f]{64} {2}web-1\.0\.0\.tar\.gz\n```/,
  );
});

test('a package that holds what git does not know differs elsewhere, and fails', async () => {
  await using box = await repository({ ...addonFiles('web'), ...addonFiles('db') });
  await writeTree(box.path, { 'addons/web/1.0.0/notes.ignored': 'mine alone' });
  await appendFile(box.at('addons/web/1.0.0/page.html'), 'not committed, yet known to git');
  const { exitCode, stdout } = await ci(box, ['build-twice'], { ADDONS: 'web/1.0.0 db/1.0.0' });
  assert.is(exitCode, 1);
  assert.match(stdout, /^web-1\.0\.0\.tar\.gz: the two builds differ/m);
  assert.not.match(stdout, /^db-1\.0\.0\.tar\.gz: /m);
});

test.run();
