import { bootId } from '../../src/platform/process/process-tree.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('the boot of a machine');

test('without /proc, as in a bare chroot, it is UNSUPPORTED with how to mount it', async () => {
  assert.match(await bootId(), /^[0-9a-f-]{36}$/);
  const { hint } = await assert.rejectsWith(bootId('/none/boot_id'), 'UNSUPPORTED', /\/proc is not mounted/);
  assert.match(hint ?? '', 'mount -t proc proc /proc');
});

test.run();
