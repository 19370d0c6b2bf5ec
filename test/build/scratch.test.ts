import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { makeScratch } from '../../src/build/cache.ts';
import * as assert from '../support/assert.ts';
import { deadPartialName } from '../support/partials.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('temporary folders of builds');

test('a build removes what killed builds have left, and nothing of one that runs', async () => {
  await using box = await tree({ [`unfinished/${deadPartialName()}/image.tar`]: 'half of it' });
  const running = basename(await makeScratch(box.path));
  const own = basename(await makeScratch(box.path));
  assert.equal((await readdir(box.at('unfinished'))).toSorted(), [running, own].toSorted());
});

test.run();
