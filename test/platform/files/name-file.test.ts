import { symlink } from 'node:fs/promises';
import { refuseExisting, requireFolder } from '../../../src/platform/files/name-file.ts';
import * as assert from '../../support/assert.ts';
import { runCommand } from '../../support/run-command.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('names of files that are to be written');

for (const [name, message, hint] of [
  ['none/b', /none does not exist$/, /^create it first \(mkdir -p \S+none\), or/],
  ['https:/a.example/b', /does not exist$/, /^it is an address, and a file is expected: write a file, and copy it$/],
  ['file/b', /file is not a folder$/, /^specify another file$/],
  ['folder', /it is a folder$/, /^specify a file in it$/],
] as const) {
  test(`${name} is refused before anything is written, with what to do`, async () => {
    await using box = await tree({ file: '', 'folder/a': '' });
    const error = await assert.rejectsWith(refuseExisting(box.at(name), true), 'FILE_UNUSABLE', message);
    assert.match(error.hint ?? '', hint);
  });
}

test('a folder that cannot be read is not said to be missing', async () => {
  await using box = await tree();
  await symlink('loop', box.at('loop'));
  await assert.rejectsWith(requireFolder(box.at('loop/b')), 'FILE_UNUSABLE', /too many symbolic links/);
});

test('keys and new add-ons with a name that cannot be are the words of the operator, and refused as such', async () => {
  await using box = await tree();
  const keys = await runCommand(['keygen', 'none/release'], box.path);
  assert.is(keys.exitCode, 25);
  assert.match(keys.stderr, `${box.at('none')} does not exist\n  hint: create it first (mkdir -p`);
  const addon = await runCommand(['new', 'Web'], box.path);
  assert.equal(
    [addon.exitCode, addon.stderr.split('\n')[0]],
    [64, 'error USAGE: new: "Web" is not a name for an add-on'],
  );
});

test.run();
