import { digestOf } from '../../src/core/digest.ts';
import { formatOmitted, osFolderOf, parseOmitted } from '../../src/core/omitted.ts';
import type { PackageFile } from '../../src/core/package.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/omitted');

function file(path: string, size = 3): PackageFile {
  return { path, mode: 0o644, size, digest: digestOf(path) };
}

const FILES = [file('ubuntu-22.04/archives/a.deb'), file('rhel-8/b.rpm', 4), file('rhel-8/repodata/c', 0)];

test('what was left out is read as it was written, in one order', () => {
  const text = formatOmitted(FILES);
  assert.is(formatOmitted(FILES.toReversed()), text);
  const { files, folders, bytes } = parseOmitted(text, 'p');
  assert.equal(
    files.map(({ path }) => path),
    ['rhel-8/b.rpm', 'rhel-8/repodata/c', 'ubuntu-22.04/archives/a.deb'],
  );
  assert.equal([folders, bytes], [['ubuntu-22.04', 'rhel-8'], 7]);
  assert.is(formatOmitted(files), text);
});

test('only what lies in a folder of a system that is known belongs to one', () => {
  for (const [path, folder] of [
    ['rhel-8/x', 'rhel-8'],
    ['rhel-8/a/b', 'rhel-8'],
    ['rhel-8', undefined],
    ['rhel-80/x', undefined],
    ['data/rhel-8/x', undefined],
    ['constructor/x', undefined],
  ] as const) {
    assert.is(osFolderOf(path), folder, path);
  }
});

const digest = digestOf('x');
const row = ['rhel-8/x', 0o644, 1, digest] as const;
const many = (files: readonly unknown[], format: unknown = 1): string => `${JSON.stringify({ files, format })}\n`;

for (const [title, text, message] of [
  ['text', 'x', /not JSON/],
  ['a list', '[]', /not an object/],
  ['no files', many([]), /: files: empty$/],
  ['files that are no list', `${JSON.stringify({ files: {}, format: 1 })}\n`, /: files: not a list$/],
  [
    'a script of the add-on',
    many([['install.sh', 0o755, 1, digest]]),
    /"install\.sh" is outside the operating system folders/,
  ],
  ['a file beside the folders', many([['rhel-8', 0o644, 1, digest]]), /is outside the operating/],
  ['a folder that is no system', many([['assets/x', 0o644, 1, digest]]), /is outside the operating/],
  [
    'a path that leads out',
    many([['rhel-8/../install.sh', 0o644, 1, digest]]),
    /files\[0\]\[0\]: not a safe relative path/,
  ],
  ['a mode that no package has', many([['rhel-8/x', 0o4755, 1, digest]]), /files\[0\]\[1\]: not 420 or 493/],
  ['a negative size', many([['rhel-8/x', 0o644, -1, digest]]), /files\[0\]\[2\]: not a size/],
  ['a digest that is none', many([['rhel-8/x', 0o644, 1, 'sha256:1']]), /files\[0\]\[3\]: not a sha256 digest/],
  ['more than belongs to a file', many([[...row, 1]]), /files\[0\]\[4\]: unexpected/],
  ['a file twice', many([row, row]), /files\[1\]: repeated or out of order/],
  ['another order', many([row, ['rhel-8/a', 0o644, 1, digest]]), /files\[1\]: repeated or out of order/],
  ['something else beside them', `${JSON.stringify({ files: [row], format: 1, more: 1 })}\n`, /not canonical/],
  ['other spaces', JSON.stringify({ files: [row], format: 1 }, undefined, 1), /not canonical/],
  ['sizes of more than can be counted', many([row, ['rhel-8/y', 0o644, Number.MAX_SAFE_INTEGER, digest]]), /: sizes$/],
] as const) {
  test(`refused: ${title}`, () => {
    assert.throwsWith(() => parseOmitted(text, 'p'), 'PACKAGE_INVALID', message);
  });
}

test('another format is reported as such', () => {
  assert.throwsWith(() => parseOmitted(many([row], 2), 'p'), 'UNSUPPORTED', /has the unsupported format 2/);
});

test.run();
