import { count, flag, one, text, texts, type Field } from '../../src/core/field.ts';
import { parametersOf, request, type Request } from '../../src/core/request.ts';
import { commandOf, COMMANDS } from '../../src/cli/commands.ts';
import { REQUESTS } from '../../src/cli/requests.ts';
import * as v from 'valibot';
import { operandsOf, readArguments } from '../../src/cli/read-arguments.ts';
import { MACHINE_ADD } from '../../src/requests/machine.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/read-arguments');
const addons = texts('addon', '', { operand: true });
const build = request(
  'build',
  { addons, out: text('DIR', '', { short: 'o' }), mirror: texts('HOST', '') },
  { force: flag('') },
);

/** Commands that use, or judge, any number of words. */
const UNLIMITED = [
  'build',
  'changed',
  'channel apply',
  'channel check',
  'channel explain',
  'channel plan',
  'channel status',
  'cluster apply',
  'cluster delete',
  'cluster diff',
  'cluster plan',
  'cluster status',
  'dev',
  'doctor',
  'fleet apply',
  'fleet approve',
  'fleet check',
  'fleet pause',
  'fleet plan',
  'fleet remove',
  'fleet resume',
  'fleet retry',
  'fleet rollback',
  'fleet status',
  'help',
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
  'support-bundle',
  'uninstall',
  'upgrade',
  'verify',
  'versions',
];

function refusal(...words: readonly string[]): string {
  try {
    readArguments({ of: build }, words);
  } catch (error) {
    if (error instanceof CurlewError) return `${error.code} ${error.message} | ${error.hint ?? ''}`;
    throw error;
  }
  return 'taken';
}

test('a machine of a provider has no address, which the hint about one says', () => {
  const words = ['paris.yaml', 'p3', '--bundle', 'b.tar.gz'];
  try {
    readArguments({ of: MACHINE_ADD }, words);
    assert.unreachable();
  } catch (error) {
    assert.match(String(error), 'add --address HOST');
    assert.match((error as CurlewError).hint ?? '', 'a machine of a provider has none: copy the entry of another one');
  }
});

test('words, values and flags are read', () => {
  const args = readArguments({ of: build }, ['a', '-o', 'x', '--mirror=1', '--mirror', '2', 'b', '--json']);
  assert.equal(args.request, { addons: ['a', 'b'], out: 'x', mirror: ['1', '2'] });
  assert.equal([args.options['force'], args.options.json], [false, true]);
});

test('wrong words are refused with what was meant, or where it says more', () => {
  assert.is(refusal('--forse'), 'USAGE curlew build: unknown option --forse | did you mean --force?');
  assert.is(refusal('--zzzzzz'), 'USAGE curlew build: unknown option --zzzzzz | curlew build --help lists its options');
  assert.is(refusal('-force'), 'USAGE curlew build: unknown option -force | did you mean --force?');
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
  const bundle = request('bundle', { output: text('FILE', '', { short: 'o' }) });
  const read =
    (...words: readonly string[]) =>
    () =>
      readArguments({ of: bundle }, words);
  assert.throwsWith(read('-o', 'dist/'), 'USAGE', /^curlew bundle: --output ends with a slash$/);
  assert.is(read('-o', 's3://b/p/')().request['output'], 's3://b/p/');
});

test('values have the type that their option reads, under names as programs write them', () => {
  const publish = request('publish', {
    to: text('STORE', '', { required: 'say with --to where' }),
    atOnce: one({ schema: v.string(), read: (given, option) => `${option} ${given}` })('N', ''),
    caFile: texts('FILE', ''),
    dryRun: flag(''),
  });
  const read = (...words: readonly string[]): unknown => readArguments({ of: publish }, words).request;
  const none = { atOnce: undefined, caFile: [], dryRun: false };
  assert.equal(read('--to', 'x'), { to: 'x', ...none });
  assert.equal(read('--to=x', '--at-once=3', '--ca-file=a', '--ca-file=b', '--dry-run', '-q'), {
    to: 'x',
    atOnce: '--at-once 3',
    caFile: ['a', 'b'],
    dryRun: true,
  });
  assert.throwsWith(() => read('--dry-run'), 'USAGE', /^curlew publish: say with --to where$/);
});

test('a value that its option cannot read is refused with where the options are listed', () => {
  const prune = request('prune', { jobs: count('N', '') });
  const error = assert.throwsWith(
    () => readArguments({ of: prune }, ['--jobs', '0']),
    'USAGE',
    /^--jobs 0: not a number from 1$/,
  );
  assert.is(error.hint, 'curlew prune --help lists its options');
});

test('every command refuses words beyond those that its help names', async () => {
  const unlimited: string[] = [];
  for (const [name, { load }] of COMMANDS) {
    const command = await load();
    const operands = operandsOf(command.of);
    const words = parametersOf(command.of).operands.map(([, { values }], index) => values?.[0] ?? `w${index}`);
    const needed = parametersOf(command.of).options.flatMap(([option, { required }]) =>
      required === undefined ? [] : [`--${option}=store@r1`],
    );
    const takes = (...more: readonly string[]) => readArguments(command, [...needed, ...words, ...more]);
    takes();
    if (operands.includes('…')) unlimited.push(name);
    else assert.throwsWith(() => takes('webby'), 'USAGE', /: unexpected argument "webby"$/);
  }
  assert.equal(unlimited.toSorted(), UNLIMITED);
});

/** The least that a command accepts, and one more option. */
function leastWith(of: Request, option: string): readonly string[] {
  const { operands, options } = parametersOf(of);
  const valueOf = (name: string, { takes }: Field): readonly string[] =>
    takes === 'nothing' ? [`--${name}`] : [`--${name}`, 'x'];
  return [
    ...operands.flatMap(([, { required }]) => (required === undefined ? [] : ['x'])),
    ...options.flatMap(([name, field]) =>
      field.required === undefined && name !== option ? [] : valueOf(name, field),
    ),
  ];
}

const NEEDY = REQUESTS.flatMap((of) =>
  parametersOf(of).options.flatMap(([name, { with: other }]) => (other === undefined ? [] : [{ of, name, other }])),
);

test('an option that is for another one is refused without it, and its help says so', async () => {
  assert.ok(NEEDY.length > 10);
  for (const { of, name, other } of NEEDY) {
    const options = new Map(parametersOf(of).options);
    assert.ok(options.has(other) && options.get(name)?.help.startsWith(`with --${other}: `), `${of.name} --${name}`);
    const error = await assert.rejectsWith(
      Promise.resolve().then(() => readArguments({ of }, leastWith(of, name))),
      'USAGE',
    );
    assert.is(error.message, `curlew ${of.name}: --${name} requires --${other}`);
    assert.is(error.hint, `add --${other}, or omit --${name}`);
  }
});

test('help says that an option requires another one only where the parser refuses it without', async () => {
  const said = await Promise.all(
    REQUESTS.map(async (of) => {
      const { details } = await commandOf(of.name);
      const texts = [details ?? '', ...parametersOf(of).options.map(([, { help }]) => help)];
      return texts.flatMap((text) =>
        [...text.matchAll(/--([\w-]+) requires --([\w-]+)/g)].map(([, name, other]) => `${of.name} ${name} ${other}`),
      );
    }),
  );
  const kept = new Set(NEEDY.map(({ of, name, other }) => `${of.name} ${name} ${other}`));
  assert.equal(
    said.flat().filter((one) => !kept.has(one)),
    [],
  );
  // Their sandbox is more than the option: steps/node/target refuses them.
  const ofSandbox = new Set(['network', 'env', 'kubeconfig', 'unconfined']);
  for (const of of REQUESTS) {
    for (const [name, field] of parametersOf(of).options) {
      const isSaid = /^with --[\w-]+[:,]/.test(field.help);
      assert.is(isSaid && field.with === undefined && !ofSandbox.has(name), false, `${of.name} --${name}`);
    }
  }
});

test('with a saved plan, which may have the other one, an option is not refused', () => {
  const of = REQUESTS.find(({ name }) => name === 'install');
  assert.ok(of);
  assert.is(readArguments({ of }, ['--plan', 'p.json', '--release', 'v1']).request['release'], 'v1');
});

test.run();
