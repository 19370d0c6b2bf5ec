import { symlink } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import { readCollected } from '../../../src/build/host-packages/listing.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Files } from '../../support/tree.ts';

const test = suite('build/host-packages/listing');

const sum = (text: string): string => digestOf(text).slice('sha256:'.length);
const row = (file: string, content: string, repository = 'http://user:word@example.org/debian/'): string =>
  `${file}\tname\t1:2.0-1\tall\t${sum(content)}\t${repository}\n`;

const ANSWER: Files = {
  'result/packages.tsv': row('b_2.0-1_all.deb', 'b') + row('a_2.0-1_all.deb', 'a'),
  'result/requires': 'libc6\nlibc.so.6(GLIBC_2.17)(64bit)\n',
  'result/fetched': '2\n',
  'out/a_2.0-1_all.deb': 'a',
  'out/b_2.0-1_all.deb': 'b',
  'out/Packages': 'Package: a\n',
  'out/repodata/repomd.xml': '<xml/>',
};

const doing = 'fetch packages';

test('a whole answer: packages by file with their sizes, and no secret of a repository', async ({ signal }) => {
  await using box = await tree(ANSWER);
  const { packages, requires, fetched } = await readCollected(
    { answer: box.at('result'), folder: box.at('out'), doing },
    { signal },
  );
  assert.equal(packages, [
    {
      file: 'a_2.0-1_all.deb',
      name: 'name',
      version: '1:2.0-1',
      arch: 'all',
      digest: digestOf('a'),
      repository: 'http://example.org/debian/',
      size: 1,
    },
    {
      file: 'b_2.0-1_all.deb',
      name: 'name',
      version: '1:2.0-1',
      arch: 'all',
      digest: digestOf('b'),
      repository: 'http://example.org/debian/',
      size: 1,
    },
  ]);
  assert.equal(requires, ['libc6', 'libc.so.6(GLIBC_2.17)(64bit)']);
  assert.is(fetched, 2);
});

for (const [what, files, message] of [
  ['a way out of the folder', { 'result/packages.tsv': row('../a.deb', 'a') }, /is not valid/],
  ['an option for dpkg as a file name', { 'result/packages.tsv': row('--force-all.deb', 'a') }, /is not valid/],
  ['a file twice', { 'result/packages.tsv': row('a_2.0-1_all.deb', 'a').repeat(2) }, /twice/],
  ['a package that is not there', { 'result/packages.tsv': row('c_1_all.deb', 'c') }, /is not in the listing/],
  ['a line without a repository', { 'result/packages.tsv': 'a.deb\ta\t1\tall\t00\n' }, /is not valid/],
  ['a digest that is none', { 'result/packages.tsv': 'a.deb\ta\t1\tall\t00\thttp://x/\n' }, /not a sha256/],
  ['a package beside the listing', { 'out/sub/stray.rpm': 'x' }, /stray\.rpm is not in the listing/],
  ['a number of bytes that is none', { 'result/fetched': '-1' }, /is not a number/],
] as const) {
  test(`${what} is refused`, async ({ signal }) => {
    await using box = await tree({ ...ANSWER, ...files });
    const reading = readCollected({ answer: box.at('result'), folder: box.at('out'), doing }, { signal });
    await assert.rejectsWith(reading, 'PACKAGE_INVALID', message);
  });
}

test('a file with other content than listed is refused', async ({ signal }) => {
  await using box = await tree({ ...ANSWER, 'out/a_2.0-1_all.deb': 'A' });
  const reading = readCollected({ answer: box.at('result'), folder: box.at('out'), doing }, { signal });
  await assert.rejectsWith(reading, 'DIGEST_MISMATCH', /a_2\.0-1_all\.deb/);
});

test('a link to a file outside is refused', async ({ signal }) => {
  await using box = await tree(ANSWER);
  await symlink('/etc/passwd', box.at('out/passwd'));
  const reading = readCollected({ answer: box.at('result'), folder: box.at('out'), doing }, { signal });
  await assert.rejectsWith(reading, 'PACKAGE_INVALID', /passwd is not a regular file/);
});

test('an answer that lacks a part is refused', async ({ signal }) => {
  await using box = await tree({ 'out/x': '', 'result/fetched': '0' });
  const reading = readCollected({ answer: box.at('result'), folder: box.at('out'), doing }, { signal });
  await assert.rejectsWith(reading, 'PACKAGE_INVALID', /wrote no packages\.tsv/);
});

test.run();
