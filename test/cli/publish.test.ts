import { readdir } from 'node:fs/promises';
import { publish } from '../../src/app/publish.ts';
import * as assert from '../support/assert.ts';
import { addon } from '../support/builds.ts';
import { noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/publish');

for (const [what, code, request] of [
  ['a store of an unknown kind', 'UNSUPPORTED', { to: 'ftp://host/x' }],
  ['a release string that is none', 'USAGE', { to: 'store', release: '../r1' }],
  ['a commit that is none', 'USAGE', { to: 'store', commit: 'main' }],
] as const) {
  test(`${what} is refused before anything is built`, async ({ signal }) => {
    await using box = await tree(addon('a', ''));
    const context = { cwd: box.path, env: {}, report: noReport, signal };
    await assert.rejectsWith(publish(request, context), code);
    assert.equal(await readdir(box.path), ['addons']);
  });
}

test.run();
