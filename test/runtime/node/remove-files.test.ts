import { readdir } from 'node:fs/promises';
import { removeOurFiles } from '../../../src/runtime/node/remove-files.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('removal of files from an install folder');

test('a reset removes and names what a restore has kept, and leaves saved snapshots and files of others', async () => {
  await using box = await tree({
    'restore/kubernetes/pki/ca.key': '',
    // A restore was cut while it read the file.
    '.curlew-partial-1-a/kubernetes/pki/ca.key': '',
    'etcd/a.tar': '',
    'own.yaml': '',
    'records.json': '',
  });
  assert.equal(await removeOurFiles(box.path), ['restore', 'records.json', '.curlew-partial-1-a']);
  assert.equal((await readdir(box.path)).toSorted(), ['etcd', 'own.yaml']);
});

test.run();
