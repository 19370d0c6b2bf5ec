/** Completion of command lines: what is offered, and the scripts in real shells. */
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { execa } from 'execa';
import { REQUESTS } from '../../src/cli/requests.ts';
import { complete } from '../../src/cli/complete.ts';
import { parametersOf } from '../../src/core/request.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { curlew } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree, type Files, type Tree } from '../support/tree.ts';

const test = suite('cli/complete', { timeoutMs: 60_000 });

const sha256 = `sha256:${'0'.repeat(64)}`;
const amd64 = { file: 'rook-1.1.0.tar.gz', digest: sha256, sha256, size: 1, unpacked: 1, images: [] };
const entry = { tree: 'addons', requires: [], fulfills: [], packages: { amd64 } };
const CATALOG = {
  format: 1,
  release: 'v2.0.0',
  addons: [{ name: 'rook', versions: [{ version: '1.1.0', ...entry }] }],
};
const FOLDER: Files = {
  'addons/web/1.0.0/Manifest': '',
  'addons/web/1.1.0/Manifest': '',
  'packages/tools/2.0/Manifest': '',
  'dist/VERSION': 'v2.0.0\n',
  'dist/v2.0.0/index.json': JSON.stringify(CATALOG),
  'dist/v10.0.0/index.json': '{}',
  'dist/external/x': '',
  'node/var/lib/curlew/addons/ekco/1/Manifest': '',
};

async function values(box: Tree, ...words: readonly string[]): Promise<readonly string[]> {
  return (await complete(words, box.path)).candidates.map(({ value }) => value);
}

test('every command and every option of it is completed', async () => {
  await using box = await tree();
  for (const of of REQUESTS) {
    const { name } = of;
    const [first = '', second] = name.split(' ');
    assert.ok((await values(box, first.slice(0, -1))).includes(first), name);
    if (second !== undefined) assert.ok((await values(box, first, second.slice(0, -1))).includes(second), name);
    const found = await values(box, ...name.split(' '), '--');
    for (const [option] of parametersOf(of).options) assert.ok(found.includes(`--${option}`), `${name} --${option}`);
  }
});

for (const [title, words, expected, paths] of [
  ['a command after a global option', ['--json', 'versio'], ['versions', 'version'], 'none'],
  ['values of an option', ['install', '--preflights', 'enforce-'], ['enforce-warnings'], 'none'],
  ['values after an equals sign', ['install', '--preflights=ig'], ['--preflights=ignore'], 'none'],
  ['values of an option before the command', ['--arch', 'amd64', 'build', '--image-format', 'o'], ['oci'], 'none'],
  ['add-ons of the folder', ['build', ''], ['web', 'tools'], 'none'],
  ['versions of an add-on', ['build', 'web/'], ['web/1.0.0', 'web/1.1.0'], 'none'],
  ['releases of a store', ['bundle', '--from', 'dist', '--release', 'v'], ['v10.0.0', 'v2.0.0'], 'none'],
  ['add-ons of a store', ['versions', '--from=dist', ''], ['rook'], 'none'],
  ['versions of a store', ['versions', '--from', 'dist', 'rook@'], ['rook@1.1.0'], 'none'],
  ['add-ons of a node', ['why', '--root', 'node', ''], ['ekco'], 'none'],
  ['files', ['inspect', ''], [], 'files'],
  ['folders', ['new', '--dir', ''], [], 'folders'],
  ['shells', ['completion', ''], ['bash', 'zsh', 'fish'], 'none'],
  ['topics of help', ['help', 'channel', 'pl'], ['plan'], 'none'],
  ['nothing after the operands', ['why', 'ekco', ''], [], 'none'],
  ['nothing for a command that does not exist', ['nothing', ''], [], 'none'],
  ['nothing for a remote store', ['versions', '--from', 's3://bucket/x', ''], [], 'none'],
  ['nothing for a store that is broken', ['versions', '--from', 'dist', '--release', 'v10.0.0', ''], [], 'none'],
  ['nothing for a store that does not exist', ['versions', '--from', 'nowhere', ''], [], 'none'],
] as const) {
  test(`completion offers ${title}`, async () => {
    await using box = await tree(FOLDER);
    const found = await complete(words, box.path);
    assert.equal([found.candidates.map(({ value }) => value), found.paths], [expected, paths]);
  });
}

test('an option is offered once, unless it can be repeated', async () => {
  await using box = await tree();
  assert.equal(await values(box, 'install', '--bundle', 'b', '--bun'), []);
  assert.equal(await values(box, 'install', '--from', 'b', '--fro'), ['--from']);
});

test('a folder without add-ons offers none', async () => {
  await using box = await tree();
  assert.equal(await values(box, 'build', ''), []);
});

test('a slash without a name offers nothing', async () => {
  await using box = await tree(FOLDER);
  assert.equal(await values(box, 'build', '/'), []);
});

test('a store that does not answer offers nothing, and completion ends', async () => {
  await using box = await tree({ 'dead/x': '' });
  // Who opens it for reading waits for a writer.
  await execa('mkfifo', [box.at('dead/VERSION')]);
  const words = ['__complete', 'versions', '--from', 'dead', ''];
  const { stdout, stderr } = await curlew(words, { cwd: box.path });
  assert.equal([stdout, stderr], ['none', '']);
  // Without a name to read, the process ends by itself.
  assert.is((await curlew(['__complete', 'versi'], { cwd: box.path })).exitCode, 0);
});

/** A folder with `curlew` in `bin`, and the environment that finds it. */
async function shellBox(): Promise<{ readonly box: Tree; readonly env: Readonly<Record<string, string>> }> {
  const box = await tree(FOLDER);
  await mkdir(box.at('bin'));
  await writeFile(box.at('bin/curlew'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
  await chmod(box.at('bin/curlew'), 0o755);
  return { box, env: { PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}`, HOME: box.path, LC_ALL: 'C.UTF-8' } };
}

/** On a busy machine, what is read from folders may come too late for one completion; the key is pressed again then. */
async function prints(shell: string, script: string, expected: readonly string[]): Promise<void> {
  const { box, env } = await shellBox();
  await using _ = box;
  let lines: readonly string[] = [];
  for (let tries = 0; tries < 5 && lines.join() !== expected.join(); tries += 1) {
    const { stdout } = await execa(shell, ['-c', script], { cwd: box.path, env, extendEnv: false });
    lines = stdout.split('\n').filter((line) => line !== '');
  }
  assert.equal(lines, expected);
}

/**
 * Completes a line in bash as readline does, and prints what replaces the end of it, which is the second argument, and the options
 * for paths.
 */
const BASH = `source <(curlew completion bash)
complete -p curlew
compopt() { echo "compopt $*"; }
asked() { COMP_LINE="$1"; COMP_POINT=\${#1}; _curlew curlew "$2"; printf '[%s]\\n' "\${COMPREPLY[@]}"; }
`;

for (const [line, replaced, expected] of [
  ['curlew keyg', 'keyg', ['[keygen]']],
  ['curlew install --preflights=enforce-', 'enforce-', ['[enforce-warnings]']],
  ['curlew versions --from dist rook@1', '@1', ['[@1.1.0]']],
  ['curlew versions --from dist rook@1', 'rook@1', ['[rook@1.1.0]']],
  ['curlew new --dir ', '', ['compopt -o dirnames', '[]']],
  ['curlew inspect b', 'b', ['compopt -o default', '[]']],
  ['curlew uninstall --root node ', '', ['[ekco]']],
] as const) {
  test(`bash completes ${line}, of which it replaces ${JSON.stringify(replaced)}`, async () => {
    await prints('bash', `${BASH}asked '${line}' '${replaced}'`, ['complete -F _curlew curlew', ...expected]);
  });
}

/** What a terminal with bash gives to `curlew` when a line is typed, then Tab, then Enter. */
async function typedInBash(line: string): Promise<string> {
  const { box, env } = await shellBox();
  await using _ = box;
  const real = box.at('bin/real');
  await rename(box.at('bin/curlew'), real);
  const program = `#!/bin/sh\ncase "$1" in __complete | completion) exec '${real}' "$@" ;; esac\necho "ran: $* :"\n`;
  await writeFile(box.at('bin/curlew'), program, { mode: 0o755 });
  const child = execa('script', ['-qefc', 'bash --norc --noprofile -i', '/dev/null'], {
    cwd: box.path,
    env: { ...env, TERM: 'dumb', PS1: 'ready>', HISTFILE: '' },
    extendEnv: false,
    reject: false,
  });
  const lines = ['source <(curlew completion bash)\r', `${line}\t\r`, 'exit\r'];
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
    if (text.split('ready>').length > 4 - lines.length) child.stdin.write(lines.shift() ?? '');
  });
  await child;
  return /ran: (.*?) *:/.exec(text)?.[1] ?? text;
}

if ((await execa('script', ['--version'], { reject: false })).exitCode === 0) {
  for (const [line, expected] of [
    ['curlew versions --from dist rook@1', 'versions --from dist rook@1.1.0'],
    ['curlew install --preflights=enforce-', 'install --preflights=enforce-warnings'],
    ['curlew keyg', 'keygen'],
  ] as const) {
    test(`in a terminal, Tab after ${line} completes it`, async () => {
      let found = '';
      // A completion may come too late here, too.
      for (let tries = 0; tries < 5 && found !== expected; tries += 1) found = await typedInBash(line);
      assert.is(found, expected);
    });
  }
} else {
  test.skip('Tab completes in a terminal', 'script is not installed');
}

async function has(shell: string): Promise<boolean> {
  return (await execa(shell, ['--version'], { reject: false })).exitCode === 0;
}

if (await has('fish')) {
  for (const [line, expected] of [
    ['curlew keyg', ['keygen\tCreate a key pair for signing']],
    ['curlew install --preflights=ig', ['--preflights=ignore']],
    ['curlew channel pl', ['plan\tPlan an upgrade of Kubernetes with its add-ons']],
    ['curlew build web/1.1', ['web/1.1.0']],
  ] as const) {
    test(`fish completes ${line}`, async () => {
      await prints('fish', `curlew completion fish | source; complete -C '${line}'`, expected);
    });
  }
} else {
  test.skip('fish completes command lines', 'fish is not installed');
}

if (await has('zsh')) {
  /** Stands in for the functions of zsh's own completion, which work only in its line editor. */
  const zsh = `compdef() { print -r -- "compdef $*"; }
compadd() { print -rl -- "\${values[@]}"; }
_files() { print -r -- "_files $* $PREFIX"; }
source <(curlew completion zsh)
asked() { words=("\${(@z)1}"); CURRENT=$#words; PREFIX="$words[-1]"; _curlew; }
`;
  for (const [line, expected] of [
    ['curlew keyg', ['keygen']],
    ['curlew versions --from dist rook@1', ['rook@1.1.0']],
    ['curlew new --dir x', ['_files -/ x']],
  ] as const) {
    test(`zsh completes ${line}`, async () => {
      await prints('zsh', `${zsh}asked '${line}'`, ['compdef _curlew curlew', ...expected]);
    });
  }
} else {
  test.skip('zsh completes command lines', 'zsh is not installed');
}

test.run();
