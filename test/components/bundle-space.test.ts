import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import { writeBundleFile } from '../../src/ship/bundle/write/write-bundle.ts';
import * as assert from '../support/assert.ts';
import { planTestBundle, publishTestPackages, specOf } from '../support/bundles.ts';
import { noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('components/bundle-space');
const run = promisify(execFile);

if (process.getuid?.() !== 0) {
  test.skip('a disk without room', 'mounting a small file system needs root');
} else {
  test('a disk without room is told before the first byte', async ({ signal }) => {
    await using box = await tree({ 'disk/.keep': '' });
    const packages = [{ name: 'big', version: '1', files: [{ path: 'blob', data: noise(3 << 20) }] }];
    const store = await publishTestPackages(box, packages, signal);
    const planned = await planTestBundle(store, specOf({ big: 'latest' }), signal);
    await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', box.at('disk')]);
    try {
      let started = false;
      const report = (): void => {
        started = true;
      };
      const options = { force: false, verify: false, report, signal };
      await assert.rejectsWith(
        writeBundleFile(planned.plan, planned.sources, box.at('disk/b.tar.gz'), options),
        'NO_SPACE',
      );
      assert.not.ok(started);
      assert.equal(await readdir(box.at('disk')), []);
    } finally {
      await run('umount', [box.at('disk')]);
    }
  });
}

test.run();
