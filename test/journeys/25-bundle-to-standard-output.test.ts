/** A bundle that goes through a pipe instead of into a file. */
import { execa } from 'execa';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { publishTestPackages, specOf } from '../support/bundles.ts';
import { MAIN } from '../support/compiled.ts';
import { cleanEnvironment, curlew, curlewOk } from '../support/curlew.ts';
import { noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

// not fast: starts the command again and again
const test = suite('journeys/bundle-to-standard-output', { timeoutMs: 120_000 });

const WORDS = ['bundle', 'installer.yaml', '--from', 'store', '-o', '-'];

/** A store with a release of one package, and a spec; the tool for nodes makes the bundle larger than any pipe. */
async function box(signal: AbortSignal): Promise<Tree> {
  const made = await tree({ 'installer.yaml': specOf({ alpha: '1.0.0' }) });
  const files = [{ path: 'assets/a', data: noise(300_000) }];
  await publishTestPackages(made, [{ name: 'alpha', version: '1.0.0', files }], signal);
  return made;
}

/** A command line of bash in which `curlew` is the built one; its status is that of the first part of a pipe. */
async function shell(cwd: string, line: string) {
  const script = `set -o pipefail; curlew() { "${process.execPath}" "${MAIN}" "$@"; }\n${line}`;
  return execa('bash', ['-c', script], {
    cwd,
    env: cleanEnvironment({ cwd }),
    extendEnv: false,
    reject: false,
  });
}

test('through a pipe, or led into a file, it has the bytes of one that is written to a file', async ({ signal }) => {
  await using made = await box(signal);
  await curlewOk([...WORDS.slice(0, -1), 'file.tar.gz'], { cwd: made.path });
  const expected = await readFile(made.at('file.tar.gz'));
  for (const line of [`curlew ${WORDS.join(' ')} --verify | cat >b`, `curlew ${WORDS.join(' ')} >b`]) {
    const { exitCode, stdout, stderr } = await shell(made.path, line);
    assert.is(exitCode, 0, stderr);
    assert.is(stdout, '');
    assert.match(stderr, /^standard output: .* from release r1/m);
    assert.ok((await readFile(made.at('b'))).equals(expected), line);
  }
  const { exitCode } = await shell(made.path, `curlew ${WORDS.join(' ')} --quiet >>b`);
  assert.is(exitCode, 0);
  assert.ok((await readFile(made.at('b'))).equals(Buffer.concat([expected, expected])), 'appended');
});

test('a reader that leaves ends it with one line, and so does a full disk', async ({ signal }) => {
  await using made = await box(signal);
  const left = await shell(made.path, `curlew ${WORDS.join(' ')} --quiet | head -c 100 >b`);
  assert.is(left.exitCode, 25);
  assert.match(
    left.stderr,
    /^error FILE_UNUSABLE: cannot write to standard output: the reader closed the pipe before the end$/m,
  );
  assert.is((await readFile(made.at('b'))).byteLength, 100);
  const full = await shell(made.path, `curlew ${WORDS.join(' ')} --quiet >/dev/full`);
  assert.is(full.exitCode, 18);
  assert.match(full.stderr, /^error NO_SPACE: cannot write to standard output/m);
});

test('a standard output that is closed is refused, one that is thrown away is not', async ({ signal }) => {
  await using made = await box(signal);
  const closed = await shell(made.path, `curlew ${WORDS.join(' ')} --quiet >&-`);
  assert.is(closed.exitCode, 25);
  assert.match(
    closed.stderr,
    /^error FILE_UNUSABLE: cannot write to standard output: it is closed\n {2}hint: redirect it/m,
  );
  assert.is((await shell(made.path, `curlew ${WORDS.join(' ')} --quiet >/dev/null`)).exitCode, 0);
});

test('Ctrl-C ends it although nobody reads', async ({ signal }) => {
  await using made = await box(signal);
  const options = { cwd: made.path, env: cleanEnvironment({ cwd: made.path }) };
  const child = spawn(process.execPath, [MAIN, ...WORDS], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  // One chunk has come, so it is under way; nothing is read after it.
  await once(child.stdout, 'readable');
  child.kill('SIGINT');
  const [status] = (await once(child, 'exit')) as [number | null];
  assert.is(status, 130);
  child.stdout.destroy();
});

test('a terminal is refused, and so is JSON beside the bytes', async ({ signal }) => {
  await using made = await box(signal);
  const words = [process.execPath, `"${MAIN}"`, ...WORDS].join(' ');
  const shown = await execa('script', ['-qec', words, '/dev/null'], {
    cwd: made.path,
    reject: false,
    stdin: 'ignore',
  });
  assert.is(shown.exitCode, 64);
  assert.match(shown.stdout, /it is a terminal/);
  const json = await curlew([...WORDS, '--json'], { cwd: made.path });
  assert.is(json.exitCode, 64);
  assert.match(json.stderr, /^error USAGE: .*standard output contains/m);
  const plan = await curlewOk([...WORDS, '--dry-run', '--json'], { cwd: made.path });
  assert.is((JSON.parse(plan) as { release: string }).release, 'r1');
});

test.run();
