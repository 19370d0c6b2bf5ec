/** The folders of a run that is prepared. */
import { readdir } from 'node:fs/promises';
import { plainPlace } from '../../../src/runtime/node/node-place.ts';
import * as assert from '../../support/assert.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run } from '../../support/node-install.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('runtime/prepare');

test('a sandbox that another run has removed is not created again, with a root that is open to other users', async () => {
  await using box = await tree();
  const place = { ...plainPlace(box.at('root/node')), confined: true };
  await assert.rejectsWith(
    run(box, await packagesOf(bundleOf([])), { place }),
    'FILE_UNUSABLE',
    /^cannot lock .*root\/node: /,
  );
  assert.equal(await readdir(box.path), []);
});

test.run();
