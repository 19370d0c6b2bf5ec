import { SIGNED_OPTIONS } from '../../src/cli/options.ts';
import { INSTALL, type InstallRequest } from '../../src/app/install.ts';
import { savedOptions, withSavedOptions } from '../../src/app/node/saved-options.ts';
import { install } from '../../src/cli/commands/install.ts';
import { PLAN_OPTIONS, RUN_OPTIONS } from '../../src/cli/node-options.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { SAVED_OPTIONS } from '../../src/runtime/run/saved-options.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/saved-options');

function options(given: readonly string[]): InstallRequest {
  return readArguments(install, given).options as unknown as InstallRequest;
}

function words(...given: readonly string[]): ReturnType<typeof savedOptions> {
  return savedOptions(options(given), { cwd: '/home/me' });
}

test('a plan remembers every option of a run but settings, which may be secret, and its own', () => {
  // Each run names the keys to trust again; the plan identifies packages by their digests.
  const other = [SAVED_OPTIONS, PLAN_OPTIONS, SIGNED_OPTIONS].flatMap((options) => Object.keys(options));
  const known = new Set([...other, 'set']);
  assert.equal(
    Object.keys(RUN_OPTIONS).filter((name) => !known.has(name)),
    [],
  );
});

test('paths are kept absolute, addresses without what is secret in them', () => {
  assert.equal(words('--bundle', 'b.tar.gz', '--adopt', '--set', 'a.b=c'), {
    bundle: '/home/me/b.tar.gz',
    adopt: true,
  });
  assert.equal(words('--from', 'store', '--from', 'https://me:pw@host/dist?token=1'), {
    from: ['/home/me/store', 'https://host/dist'],
  });
});

test('what the plan remembers comes back, unless the command line says where packages are', () => {
  const saved = { words: words('--bundle', 'b.tar.gz', '--reapply') };
  const back = withSavedOptions(options([]), saved, INSTALL);
  assert.equal([back.bundle, back.reapply, back.from], ['/home/me/b.tar.gz', true, []]);
  const other = withSavedOptions(options(['--dir', 'd']), saved, INSTALL);
  assert.equal([other.bundle, other.dir, other.reapply], [undefined, 'd', true]);
});

test('a plan with a value that its option does not have is refused', () => {
  assert.throwsWith(
    () => withSavedOptions({}, { words: { preflights: 'perhaps' } }, INSTALL),
    'FILE_UNUSABLE',
    /value/,
  );
});

test.run();
