import { CurlewError } from '../../src/core/errors.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { COMMANDS, missingHere, withOffer, withPlace } from '../../src/cli/commands.ts';
import { overview } from '../../src/cli/overview.ts';
import { REQUESTS } from '../../src/cli/requests.ts';
import { commandHelp, helpAbout } from '../../src/cli/help.ts';
import { renderFailure } from '../../src/cli/render/failure.ts';
import { NO_PAINT } from '../../src/cli/render/paint.ts';
import { calledAs, helpCalledAs, NAMES, suggesting } from '../../src/cli/suggested-commands.ts';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { boxWith } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/suggested-commands', { timeoutMs: 60_000 });

async function suggested(command: string, words: readonly string[], text: string): Promise<string> {
  const found = await COMMANDS.get(command)?.load();
  if (found === undefined) throw new Error(command);
  return suggesting(REQUESTS, readArguments(found, words))(text);
}

for (const [words, text, expected] of [
  [['--root', '/t', '--bundle', 'b'], 'curlew status shows it', 'curlew status --root /t shows it'],
  [
    ['--install-dir=/a b', '--root=r', '--unconfined'],
    'curlew rollback aaa goes back; or curlew status.',
    "curlew rollback --install-dir '/a b' --root r --unconfined aaa goes back; or curlew status --install-dir '/a b' --root r.",
  ],
  [['ha', 'kurl-install-directory=/opt'], 'curlew logs', 'curlew logs --install-dir /opt/kurl'],
  [
    ['--root', '/t', '--kubeconfig', 'my.conf', '--context', 'lab'],
    'curlew rollback aaa restores 1.0.0; curlew status shows it',
    'curlew rollback --root /t --kubeconfig my.conf --context lab aaa restores 1.0.0; curlew status --root /t shows it',
  ],
  [['--bundle', 'b'], 'curlew status shows it', 'curlew status shows it'],
  [
    ['--from', 's3://b/p', '--s3-region', 'r', '--config', 'c'],
    'curlew pull s3://b/x, or curlew verify x',
    'curlew pull --config c --s3-region r s3://b/x, or curlew verify --config c x',
  ],
  [['--root', '/t'], 'curlew keygen, curlew install --help, curlew installer, curlew-status', undefined],
  [
    ['--from', 's3://b/p', '--s3-endpoint', 'http://127.0.0.1:9000', '--s3-path-style', '--root', '/t'],
    'curlew reindex s3://b/p rebuilds it',
    'curlew reindex --s3-endpoint http://127.0.0.1:9000 --s3-path-style s3://b/p rebuilds it',
  ],
  [
    ['--from', 's3://b/p', '--s3-region', 'r'],
    'curlew channel check s3://b/c.yaml shows the lines; curlew channel check --help; curlew channel',
    'curlew channel check --s3-region r s3://b/c.yaml shows the lines; curlew channel check --help; curlew channel',
  ],
] as const) {
  test(`a suggested command is about the same place: ${words.join(' ')}`, async () => {
    assert.is(await suggested('install', words, text), expected ?? text);
  });
}

for (const [called, expected] of [
  ['./tasks.sh', './tasks.sh status --root /t shows it; ./install.sh --root /t --dry-run'],
  ['/a b/tasks.sh', "'/a b/tasks.sh' status --root /t shows it; '/a b/install.sh' --root /t --dry-run"],
  [
    '/var/cache/x/curlew',
    '/var/cache/x/curlew status --root /t shows it; /var/cache/x/curlew install --root /t --dry-run',
  ],
] as const) {
  test(`where curlew is not in PATH, what is suggested is called as it was: ${called}`, async () => {
    const found = await COMMANDS.get('status')?.load();
    if (found === undefined) throw new Error('status');
    const complete = suggesting(REQUESTS, readArguments(found, ['--root', '/t']), called);
    assert.is(complete('curlew status shows it; curlew install --dry-run'), expected);
  });
}

test('on a node, commands and pages that its curlew does not have keep their names, and a hint says where they are', async () => {
  const found = await COMMANDS.get('status')?.load();
  if (found === undefined) throw new Error('status');
  const complete = suggesting(REQUESTS, readArguments(found, []), './tasks.sh', missingHere(false));
  for (const [hint, expected, place] of [
    ['curlew status shows it; see curlew doctor', './tasks.sh status shows it; see ./tasks.sh doctor', undefined],
    ['curlew help upgrade; curlew help node; curlew help USAGE', undefined, undefined],
    ['curlew versions --from s lists them', 'curlew versions --from s lists them', 'curlew versions'],
    ['curlew bundle --since creates one; curlew status', undefined, 'curlew bundle'],
    ['see curlew help install.md', 'see curlew help install.md', 'curlew help install.md'],
    ['curlew help configuration describes it', 'curlew help configuration describes it', 'curlew help configuration'],
  ] as const) {
    const shown = calledAs(complete(hint), './tasks.sh', missingHere(false));
    const wanted =
      expected ?? hint.replaceAll('curlew status', './tasks.sh status').replaceAll('curlew help', './tasks.sh help');
    assert.is(shown, wanted);
    const end = place === undefined ? '' : `; run ${place} on the machine that makes bundles`;
    assert.is(withPlace(shown, missingHere(false)), `${wanted}${end}`);
    assert.is(withPlace(shown, missingHere(true)), shown);
  }
  assert.is(calledAs('curlew help install.md', './tasks.sh', missingHere(true)), './tasks.sh help install.md');
});

test('commands in results are called as the operator calls the program, and nothing else is changed', () => {
  for (const [text, expected] of [
    ['Remove its Node: curlew node remove one --yes', 'Remove its Node: ./tasks.sh node remove one --yes'],
    ['curlew reset --yes; curlew join-token here', './tasks.sh reset --yes; ./tasks.sh join-token here'],
    ['curlew has installed nothing on this node', undefined],
    ['/var/lib/x/bin/curlew status, curlew-status', undefined],
  ] as const) {
    assert.is(suggesting(NAMES, { request: {} }, './tasks.sh')(text), expected ?? text);
  }
});

test('a result names commands as the program was called', async () => {
  await using box = await tree();
  const { stdout } = await curlew(['new', 'web'], { cwd: box.path, env: { CURLEW_CALLED: '/b/tasks.sh' } });
  assert.match(stdout, /^next: \/b\/tasks.sh dev /m);
});

test('wrong words without another hint lead to the help of their command', async () => {
  await using box = await tree();
  for (const words of [['install'], ['bundle'], ['serve']]) {
    const { exitCode, stderr } = await runCommand(words, box.path);
    assert.equal([exitCode, stderr.split('hint: ')[1]], [64, `curlew ${words[0]} --help lists its options`]);
  }
});

test('hints of failures on a trial node lead back to it', async () => {
  const fails = (version: string): string => `aaa() { [ "$AAA_VERSION" = 1.0.0 ]; } # ${version}`;
  await using box = await boxWith([tracer('aaa', fails('1.0.0'))]);
  const place = ['--root', box.at('root'), '--install-dir', '/opt/trial', '--unconfined'];
  assert.is((await runTraced(['install', '--bundle', 'b.tar.gz', ...place], box)).exitCode, 0);
  await using newer = await boxWith([tracer('aaa', fails('2.0.0'), '2.0.0')]);
  const upgraded = await runTraced(['install', '--bundle', newer.at('b.tar.gz'), ...place], box);
  assert.is(upgraded.exitCode, 20);
  const rollback = `curlew rollback --install-dir /opt/trial --root ${box.at('root')} --unconfined aaa restores 1.0.0`;
  assert.match(upgraded.stderr, rollback);
  const unknown = await runCommand(['logs', '--run', 'none', ...place.slice(0, 4)], box.path);
  assert.match(unknown.stderr, `curlew logs --install-dir /opt/trial --root ${box.at('root')} lists the runs`);
  const done = rollback.split(' ').slice(1, 8);
  assert.is((await runTraced(done, box)).exitCode, 0, 'what is suggested works');
});

test('what new suggests works from where it was run', async () => {
  await using box = await tree({ 'elsewhere/x': '' });
  const made = await runCommand(['new', 'web', '--dir', 'elsewhere', '--template'], box.path);
  assert.match(made.stdout, /^next: curlew dev elsewhere\/addons\/web --kubeconfig FILE/m);
  assert.match(made.stdout, /^later: curlew generate --dir elsewhere web when/m);
});

test('no help text with the path of the scripts of a bundle is wider than eighty columns', async () => {
  const helps = [overview(true), overview(false)];
  for (const [, { load }] of COMMANDS) helps.push(commandHelp(await load()));
  for (const topic of ['commands', 'pages', 'channel', 'USAGE']) helps.push(await helpAbout([topic]));
  for (const help of helps) {
    const shown = helpCalledAs(help, './tasks.sh');
    assert.equal(
      shown.split('\n').filter((line) => line.length > 80 && !line.startsWith('  ')),
      [],
    );
    assert.is(shown.replaceAll(/\s+/g, ' '), calledAs(help, './tasks.sh').replaceAll(/\s+/g, ' '));
  }
  assert.match(helpCalledAs(overview(true), './tasks.sh'), /^Usage: \.\/tasks\.sh COMMAND \[options\]\nPacks /);
});

test('on a node, a command that is not for nodes asks for no options', () => {
  const error = new CurlewError('USAGE', 'curlew publish: add --to with the target store');
  const refused = withOffer(error, 'publish', false) as CurlewError;
  const { message, hint } = refused;
  assert.not.match(renderFailure(refused, NO_PAINT), '--to');
  assert.is(message, 'curlew publish is not offered on a node');
  assert.is(hint, 'run it on the machine that makes bundles');
  assert.is(withOffer(error, 'publish', true), error);
  assert.is(withOffer(error, 'status', false), error);
  const failed = new CurlewError('UNSUPPORTED', 'the curlew for nodes cannot make a bundle');
  assert.is(withOffer(failed, 'bundle', false), failed);
});

test.run();
