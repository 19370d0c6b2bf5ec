import { RUN } from '../../src/requests/node.ts';
import type { Field } from '../../src/core/field.ts';
import { savedOptions, withSavedOptions } from '../../src/steps/node/saved-options.ts';
import { command } from '../../src/cli/commands/install.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/saved-options');

function options(given: readonly string[]): Readonly<Record<string, unknown>> {
  return readArguments(command, given).request;
}

function words(...given: readonly string[]): ReturnType<typeof savedOptions> {
  return savedOptions(RUN.fields, options(given), { cwd: '/home/me' });
}

test('a plan remembers every option of a run but settings, which may be secret, and its own', () => {
  const left = Object.entries(RUN.fields).filter(([, { plan }]: readonly [string, Field]) => plan === undefined);
  assert.equal(
    left.map(([name]) => name),
    // Each run names the keys to trust again; the plan identifies packages by their digests.
    'kind flags set key requireSigned signature signedAs requireStatement plan installerText'.split(' '),
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
  const back = withSavedOptions(RUN.fields, options([]), saved);
  assert.equal([back['bundle'], back['reapply'], back['from']], ['/home/me/b.tar.gz', true, []]);
  const other = withSavedOptions(RUN.fields, options(['--dir', 'd']), saved);
  assert.equal([other['bundle'], other['dir'], other['reapply']], [undefined, 'd', true]);
});

test('a plan with a value that its option does not have is refused', () => {
  assert.throwsWith(
    () => withSavedOptions(RUN.fields, {}, { words: { preflights: 'perhaps' } }),
    'FILE_UNUSABLE',
    /value/,
  );
});

test.run();
