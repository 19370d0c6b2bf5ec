import type { OptionSpecs } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { wholeNumber } from '../../src/cli/values.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/read-arguments');
const options: OptionSpecs = {
  out: { type: 'string', short: 'o', help: '' },
  mirror: { type: 'string', multiple: true, help: '' },
  force: { type: 'boolean', help: '' },
};

/** Commands that use, or judge, any number of words. */
const UNLIMITED = [
  'build',
  'changed',
  'channel apply',
  'channel check',
  'channel explain',
  'channel plan',
  'channel status',
  'install',
  'installer env',
  'installer id',
  'installer resolve',
  'installer validate',
  'inventory',
  'join',
  'join-parts',
  'lint',
  'load-images',
  'outdated',
  'preflight',
  'provenance',
  'publish',
  'pull',
  'sbom',
  'sign',
  'uninstall',
  'upgrade',
  'verify',
  'versions',
];

function refusal(...words: readonly string[]): string {
  try {
    readArguments({ name: 'build', operands: '[addon…]', options }, words);
  } catch (error) {
    if (error instanceof CurlewError) return `${error.code} ${error.message} | ${error.hint ?? ''}`;
    throw error;
  }
  return 'taken';
}

test('words, values and flags are read', () => {
  const args = readArguments({ name: 'build', operands: '[addon…]', options }, [
    'a',
    '-o',
    'x',
    '--mirror=1',
    '--mirror',
    '2',
    'b',
    '--json',
  ]);
  assert.equal(args.operands, ['a', 'b']);
  assert.equal(
    [args.options['out'], args.options['mirror'], args.options['force'], args.globals.json],
    ['x', ['1', '2'], false, true],
  );
});

test('wrong words are refused with what was meant, or where it says more', () => {
  assert.is(refusal('--forse'), 'USAGE curlew build: unknown option --forse | did you mean --force?');
  assert.is(refusal('--zzzzzz'), 'USAGE curlew build: unknown option --zzzzzz | curlew build --help lists its options');
  assert.is(refusal('-x'), 'USAGE curlew build: unknown option -x | curlew build --help lists its options');
  assert.is(refusal('--out'), 'USAGE curlew build: --out requires a value | curlew build --help lists its options');
  assert.is(
    refusal('--out', '--force'),
    'USAGE curlew build: --out requires a value | write a value that begins with a dash as --out=-VALUE',
  );
  assert.is(refusal('-o'), 'USAGE curlew build: --out requires a value | curlew build --help lists its options');
  assert.is(
    refusal('--force=1'),
    'USAGE curlew build: --force does not accept a value | curlew build --help lists its options',
  );
  assert.is(
    refusal('--out', ''),
    'USAGE curlew build: --out has an empty value | curlew build --help lists its options',
  );
});

test('a file that is to be written must not end in a slash, which would be lost; an address may', () => {
  const file = { type: 'string', short: 'o', value: 'FILE', help: '' } as const;
  const read =
    (...words: readonly string[]) =>
    () =>
      readArguments({ name: 'bundle', operands: '', options: { output: file } }, words);
  assert.throwsWith(read('-o', 'dist/'), 'USAGE', /^curlew bundle: --output ends with a slash$/);
  assert.is(read('-o', 's3://b/p/')().options['output'], 's3://b/p/');
});

test('values have the type that their option reads, under names as programs write them', () => {
  const table = {
    to: { type: 'string', required: 'say with --to where', help: '' },
    'at-once': { type: 'string', read: (text, option) => `${option} ${text}`, help: '' },
    'ca-file': { type: 'string', multiple: true, help: '' },
    'dry-run': { type: 'boolean', help: '' },
  } satisfies OptionSpecs;
  const read = (...words: readonly string[]): unknown =>
    readArguments({ name: 'publish', operands: '', options: table }, words).options;
  const none = { atOnce: undefined, caFile: [], dryRun: false, json: false, quiet: false, help: false };
  assert.equal(read('--to', 'x'), { to: 'x', ...none });
  assert.equal(read('--to=x', '--at-once=3', '--ca-file=a', '--ca-file=b', '--dry-run', '-q'), {
    to: 'x',
    atOnce: '--at-once 3',
    caFile: ['a', 'b'],
    dryRun: true,
    json: false,
    quiet: true,
    help: false,
  });
  assert.throwsWith(() => read('--dry-run'), 'USAGE', /^curlew publish: say with --to where$/);
});

test('a value that its option cannot read is refused with where the options are listed', () => {
  const table = { jobs: { type: 'string', read: wholeNumber, help: '' } } satisfies OptionSpecs;
  const error = assert.throwsWith(
    () => readArguments({ name: 'prune', operands: '', options: table }, ['--jobs', '0']),
    'USAGE',
    /^--jobs 0: not a number from 1$/,
  );
  assert.is(error.hint, 'curlew prune --help lists its options');
});

test('every command refuses words beyond those that its help names', async () => {
  const unlimited: string[] = [];
  for (const [name, { load }] of COMMANDS) {
    const command = await load();
    const most = command.operands.split(' ').filter((word) => word !== '').length;
    const words = Array.from({ length: most }, (_, index) => `w${index}`);
    const needed = Object.entries(command.options).flatMap(([option, { required }]) =>
      required === undefined ? [] : [`--${option}=store@r1`],
    );
    assert.equal(readArguments(command, [...needed, ...words]).operands, words, name);
    if (command.operands.includes('…')) unlimited.push(name);
    else
      assert.throwsWith(() => readArguments(command, [...words, 'webby']), 'USAGE', /: unexpected argument "webby"$/);
  }
  assert.equal(unlimited.toSorted(), UNLIMITED);
});

test.run();
