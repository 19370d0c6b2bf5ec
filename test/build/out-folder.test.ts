import * as assert from '../support/assert.ts';
import { readdir } from 'node:fs/promises';
import { claim } from '../../src/platform/files/claim.ts';
import { sweepOut } from '../../src/build/build.ts';
import { ownerOf } from '../support/partials.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('build/out-folder');

const DAY = 86_400_000;

/** The claim of a process that has ended: its number is this one's, it started at another time. */
const dead = `${ownerOf({ start: '1' })} x\n`;

test('what a killed build left stays for the build that goes on with it, and is removed after 30 days', async () => {
  await using box = await tree({ '.a-1.tar.gz.partial': 'half', '.a-1.tar.gz.claim': dead, 'a-1.tar.gz': 'whole' });
  await sweepOut(box.path, Date.now() + 29 * DAY);
  assert.equal((await readdir(box.path)).toSorted(), ['.a-1.tar.gz.claim', '.a-1.tar.gz.partial', 'a-1.tar.gz']);
  await sweepOut(box.path, Date.now() + 31 * DAY);
  assert.equal(await readdir(box.path), ['a-1.tar.gz']);
});

test('what a living process has claimed stays, however old it is', async () => {
  await using box = await tree({ '.a-1.tar.gz.partial': 'half' });
  await using _held = await claim(box.at('a-1.tar.gz'));
  await sweepOut(box.path, Date.now() + 400 * DAY);
  assert.equal((await readdir(box.path)).toSorted(), ['.a-1.tar.gz.claim', '.a-1.tar.gz.partial']);
});

test('other files and folders are left alone', async () => {
  const names = ['.a.partial/x', '.b-1.tar.gz.partial/x', 'b-1.tar.gz', 'notes.claim', 'c.tar.gz.partial'];
  await using box = await tree(Object.fromEntries(names.map((name) => [name, ''])));
  const before = await readdir(box.path);
  await sweepOut(box.path, Date.now() + 400 * DAY);
  assert.equal(await readdir(box.path), before);
  await sweepOut(box.at('none'), Date.now());
});

test.run();
