/** Bundles whose command is stopped. */
import { readdir } from 'node:fs/promises';
import { bundle } from '../../src/app/bundle.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { tracerPackage } from '../support/node-install.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('bundles that are canceled');

test('a bundle that is canceled says that nothing was written, and nothing is', async ({ signal }) => {
  await using box = await tree({ 'installer.yaml': specOf({ aaa: 'latest' }) });
  await publishTestPackages(box, [tracerPackage('aaa', '1.0.0')], signal);
  const stop = new AbortController();
  const before = await readdir(box.path);
  const request = { spec: 'installer.yaml', from: 'store', output: 'b.tar.gz' } as const;
  const context = { signal: stop.signal, report: () => undefined, env: {}, cwd: box.path };
  stop.abort(new Error('stopped'));
  await assert.rejectsWith(bundle(request, context), 'CANCELLED', /^canceled; nothing was written$/);
  assert.equal(await readdir(box.path), before);
});

test.run();
