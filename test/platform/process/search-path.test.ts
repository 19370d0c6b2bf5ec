/** Where programs are looked for, whoever the user is. */
import { searchPath } from '../../../src/platform/process/search-path.ts';
import { runProgram } from '../../../src/platform/process/run-program.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('platform/process/search-path');

test('folders of administrators come last, each once', () => {
  assert.is(searchPath({ PATH: '/opt/bin:/bin' }), '/opt/bin:/bin:/usr/sbin:/sbin');
  assert.is(searchPath({ PATH: '/sbin:/bin' }, '/usr/local/bin'), '/sbin:/bin:/usr/sbin:/usr/local/bin');
  for (const env of [{}, { PATH: '' }]) assert.is(searchPath(env), '/usr/bin:/bin:/usr/sbin:/sbin');
});

test('a program of administrators is found by the PATH of an ordinary user, and finds others', async ({ signal }) => {
  const { stdout } = await runProgram('bash', ['-c', 'command -v pivot_root'], {
    env: { PATH: '/usr/bin:/bin' },
    signal,
  });
  assert.match(stdout, /^\/(?:usr\/)?sbin\/pivot_root\n$/);
});

test.run();
