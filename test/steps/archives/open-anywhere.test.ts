import { documentPath, isAddress, openAnywhere, requireUnwritten } from '../../../src/steps/archives/open-anywhere.ts';
import * as assert from '../../support/assert.ts';
import { noReport } from '../../support/context.ts';
import { writePackage } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('steps/archives/open-anywhere');

test('a path is one in the current folder, without a commit', async ({ signal }) => {
  await using box = await tree();
  await writePackage(box.at('web.tar.gz'), 'web', '1.0', []);
  const context = { cwd: box.path, env: {}, report: noReport, signal };
  await using found = await openAnywhere('web.tar.gz', {}, context);
  assert.equal([found.whole, found.commit], [box.at('web.tar.gz'), undefined]);
  await assert.rejectsWith(openAnywhere('none.tar.gz', {}, context), 'NOT_FOUND', /none\.tar\.gz/);
});

test('a document is beside a path, and in the current folder for an address', () => {
  assert.is(documentPath('/srv/bundle.tar.gz', 'bundle.tar.gz'), '/srv/bundle.tar.gz');
  assert.is(documentPath('s3://b/dist/bundle.tar.gz', 'bundle.tar.gz'), 'bundle.tar.gz');
  assert.ok(isAddress('https://h/x') && !isAddress('./a:b'));
  assert.throwsWith(() => documentPath('https://h/..', '..'), 'USAGE', /its file name/);
});

test('a document never replaces one of the same command', () => {
  requireUnwritten('a.cdx.json', ['b.cdx.json']);
  assert.throwsWith(() => requireUnwritten('a.json', ['a.json']), 'USAGE', /already written it for another file/);
});

test.run();
