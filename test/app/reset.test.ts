import { requireNoNode } from '../../src/app/reset.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/reset');
const directory = '/var/lib/curlew';

test('a node that is not among what a reset removes is named, and not called nothing', async () => {
  await using box = await tree({ 'curlew/restart': '', 'kubelet.conf': '' });
  const error = await assert.rejectsWith(requireNoNode({ directory, removed: ['containerd'] }, box.path), 'NOT_FOUND');
  assert.match(error.message, `/var/lib/curlew does not record it, and ${box.path} has a node`);
  assert.match(error.hint ?? '', 'kubeadm reset --force');
  await requireNoNode({ directory, removed: ['containerd', 'kubernetes'] }, box.path);
});

test('a machine without a node, and a node that another program has made, have nothing to remove', async () => {
  await using box = await tree({ 'none/x': '', 'other/kubelet.conf': '', 'reset/curlew/restart': '' });
  for (const name of ['none', 'other', 'reset']) await requireNoNode({ directory, removed: [] }, box.at(name));
});

test.run();
