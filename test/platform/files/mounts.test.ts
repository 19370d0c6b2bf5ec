import { mountOf, parseMounts } from '../../../src/platform/files/mounts.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('files/mounts');

const MOUNTINFO = [
  '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw',
  '23 22 8:2 / /var rw - xfs /dev/sdb rw',
  '24 23 8:3 / /var/lib/with\\040blank rw - ext4 /dev/sdc rw',
  '25 22 8:5 / /mnt rw shared:7 master:3 - vfat /dev/sde1 rw',
  '26 23 8:4 / /var rw - ext4 /dev/sdd rw',
  'damaged',
  '',
].join('\n');

for (const [path, mountPoint, device, type] of [
  ['/etc', '/', '8:1', 'ext4'],
  ['/variable', '/', '8:1', 'ext4'],
  ['/var', '/var', '8:4', 'ext4'],
  ['/var/lib/x', '/var', '8:4', 'ext4'],
  ['/var/lib/with blank/x', '/var/lib/with blank', '8:3', 'ext4'],
  ['/mnt/x', '/mnt', '8:5', 'vfat'],
] as const) {
  test(`${path} lies on ${mountPoint}`, () => {
    assert.equal(mountOf(path, parseMounts(MOUNTINFO)), { mountPoint, device, type, noexec: false });
  });
}

test.run();
