/** scripts/tools in little checkouts, with tools that are made in no time; the true ones are made for test/components. */
import { execa } from 'execa';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, copyFile, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { TOOLS } from '../bench/tools.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';

const test = suite('scripts/tools');
const ROOT = join(import.meta.dirname, '../..');

/** A program that prints its own folder; `made` gets a line each time a tool is made. */
const TABLE = `
TOOLS_TABLE='
word   default  fake    inputs/word  bin/word
pair   default  fake    -            pair/one,pair/two
far    all      fake    -            bin/far
broken -        broken  -            bin/broken
'
tools_make_by_fake() {
  local file
  for file in \${3//,/ }; do
    mkdir -p "$(dirname "$1/$file")"
    printf '#!/bin/sh\\ncd "$(dirname "$0")" && pwd\\n' >"$1/$file"
    chmod 0755 "$1/$file"
  done
  echo "$3" >>made
}
tools_make_by_broken() {
  echo 'no such compiler'
  false
  echo 'not reached'
}
`;

async function checkout(): Promise<Tree> {
  const files = ['scripts/tools', 'scripts/support/tools.bash'];
  const texts = await Promise.all(files.map(async (file) => [file, await readFile(join(ROOT, file), 'utf8')] as const));
  const box = await tree({ ...Object.fromEntries(texts), 'inputs/word': 'first' });
  await appendFile(box.at('scripts/support/tools.bash'), TABLE);
  return box;
}

interface Said {
  readonly status: number | undefined;
  readonly all: string;
}

async function tools(box: Tree, words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Said> {
  const options = { cwd: box.path, env, reject: false, all: true, stdin: 'ignore' } as const;
  const { exitCode, all } = await execa(box.at('scripts/tools'), [...words], options);
  return { status: exitCode, all };
}

async function succeeds(box: Tree, ...words: readonly string[]): Promise<string> {
  const { status, all } = await tools(box, words);
  assert.is(status, 0, all);
  return all;
}

async function madeIn(box: Tree): Promise<readonly string[]> {
  const text = await readFile(box.at('made'), 'utf8').catch(() => '');
  return text.split('\n').filter((line) => line !== '');
}

/** A second checkout, and an archive of the first one's tools beside it. */
async function packed(tier: string): Promise<{ readonly from: Tree; readonly to: Tree; readonly archive: string }> {
  const [from, to] = [await checkout(), await checkout()];
  await succeeds(from, 'prepare', tier);
  await succeeds(from, 'pack', tier, 'tools.tar.gz');
  for (const name of ['tools.tar.gz', 'tools.tar.gz.sha256']) await copyFile(from.at(name), to.at(name));
  return { from, to, archive: to.at('tools.tar.gz') };
}

test('the true table: every tool has a version and a recipe', async () => {
  const { stdout } = await execa(join(ROOT, 'scripts/tools'), ['--list']);
  const [head = '', ...lines] = stdout.split('\n');
  assert.match(head, /^name +tier +version +state +size +minutes +recipe$/);
  assert.ok(lines.length > 10);
  for (const line of lines)
    assert.match(line, /^[a-z][a-z0-9.-]* +(default|all|-) +[\w.-]+[\da-f] +(present|missing) .* [0-9a-f]{12}$/);
});

test('each tool that a benchmark needs is in the true table', async () => {
  const { stdout } = await execa(join(ROOT, 'scripts/tools'), ['--list']);
  const known = new Set(stdout.split('\n').map((line) => line.split(' ')[0]));
  const named = Object.values(TOOLS).flat();
  assert.ok(named.length > 5);
  assert.equal(
    named.filter((name) => !known.has(name)),
    [],
  );
});

test('each program that a test names is a file of the true table', async () => {
  const { stdout } = await execa('bash', ['-c', 'source scripts/support/tools.bash; echo "$TOOLS_TABLE"'], {
    cwd: ROOT,
  });
  const files = new Set(stdout.split('\n').flatMap((line) => line.split(/ +/)[4]?.split(',') ?? []));
  const sources = (await readdir(join(ROOT, 'test'), { recursive: true })).filter((file) => file.endsWith('.ts'));
  const named = await Promise.all(
    sources.map(async (file) => {
      const text = await readFile(join(ROOT, 'test', file), 'utf8');
      // A name that is only known at run time is in no table, and fails.
      const calls = [...text.matchAll(/(?<!function )\boracle\('?([^')]*)'?\)/g)];
      return calls.map(([, name = '']) => `${file}: ${posix.join('bin', name)}`);
    }),
  );
  assert.ok(named.flat().length > 20);
  assert.equal(
    named.flat().filter((one) => !files.has(one.split(': ')[1] ?? '')),
    [],
  );
});

test('prepare makes the missing tools of a tier, once', async () => {
  await using box = await checkout();
  assert.match(await succeeds(box, 'prepare', 'default'), /^word +ok [^]*^tools: 0 present, 2 made in \d+ s$/m);
  assert.equal([...(await madeIn(box))].toSorted(), ['bin/word', 'pair/one,pair/two']);
  assert.match(await succeeds(box, 'prepare', 'default'), /^tools: 2 present, 0 made in \d+ s$/);
  assert.match(await succeeds(box, 'prepare', 'all'), /^far +ok [^]*^tools: 2 present, 1 made/m);
  await succeeds(box, 'word', 'pair', 'far');
  assert.is((await madeIn(box)).length, 3);
  assert.equal(await readdir(box.at('.curlew/tools/partial')), []);
});

test('a tool is missing when its recipe has changed, or a file of it is gone', async () => {
  await using box = await checkout();
  await succeeds(box, 'prepare', 'default');
  const key = await succeeds(box, 'key', 'default');
  assert.match(key, /^[0-9a-f]{64}$/);
  await writeFile(box.at('inputs/word'), 'second');
  assert.match(await succeeds(box, '--list'), /^word .* missing [^]*^pair .* present /m);
  assert.is.not(await succeeds(box, 'key', 'default'), key);
  assert.match(await succeeds(box, 'prepare', 'default'), 'tools: 1 present, 1 made');

  await appendFile(box.at('scripts/support/tools.bash'), 'tools_make_by_fake() { touch "$1/pair"; }\n');
  assert.match(await succeeds(box, '--list'), /^word .* missing [^]*^pair .* missing /m);
  await writeFile(box.at('inputs/word'), 'first');
  await appendFile(box.at('scripts/support/tools.bash'), TABLE);
  assert.is(await succeeds(box, 'key', 'default'), key);
  await rm(box.at('.curlew/tools/pair/two'));
  assert.match(await succeeds(box, 'prepare', 'default'), /^tools: 0 present, 2 made/m);
});

test('a tool that fails is reported with the end of its output, and nothing of it is kept', async () => {
  await using box = await checkout();
  await appendFile(box.at('scripts/support/tools.bash'), 'TOOLS_TABLE="${TOOLS_TABLE/broken -/broken all}"\n');
  const { status, all } = await tools(box, ['prepare', 'all']);
  assert.is(status, 1);
  assert.match(
    all,
    /^broken +FAILED +\d+ s, status 1\n {2}\| no such compiler\n {2}the whole output: \S+broken\.log$/m,
  );
  assert.match(all, /^tools: 0 present, 3 made in \d+ s, 1 failed$/m);
  assert.not.match(all, 'not reached');
  assert.equal(await readdir(box.at('.curlew/tools/partial')), []);
});

test('a signal ends what is being made', async ({ signal }) => {
  await using box = await checkout();
  const slow = 'tools_make_word() { touch begun; sleep 1000; }\n';
  await appendFile(box.at('scripts/support/tools.bash'), slow);
  const child = spawn(box.at('scripts/tools'), ['prepare', 'default'], { stdio: 'ignore', signal });
  const ended = once(child, 'exit');
  while (!existsSync(box.at('begun'))) {
    signal.throwIfAborted();
    await pause(5);
  }
  child.kill('SIGTERM');
  assert.equal(await ended, [130, null]);
  // Whoever makes the tool has its lock, down to the last process.
  await execa('flock', [box.at('.curlew/tools/locks/word'), 'true'], { cancelSignal: signal });
});

test('what was packed works in another checkout, where nothing is left to make', async () => {
  const { from, to } = await packed('all');
  await using _ = from;
  await using box = to;
  assert.is(await succeeds(box, 'unpack', 'tools.tar.gz'), 'tools: 3 unpacked, 0 present');
  assert.match(await succeeds(box, 'prepare', 'all'), /^tools: 3 present, 0 made/);
  assert.equal(await madeIn(box), []);
  for (const path of ['bin/word', 'pair/two', 'bin/far']) {
    const { stdout } = await execa(box.at('.curlew/tools', path));
    assert.is(stdout, join(box.path, '.curlew/tools', path, '..'));
  }
  assert.match(await succeeds(box, '--list'), /^far +all .* 0\.0 +[0-9a-f]{12}$/m);
  assert.is(await succeeds(box, 'unpack', 'tools.tar.gz'), 'tools: 0 unpacked, 3 present');
});

test('an archive without its digest, or with another one, is refused', async () => {
  const { from, to, archive } = await packed('default');
  await using _ = from;
  await using box = to;
  await appendFile(archive, 'more');
  const changed = await tools(box, ['unpack', archive]);
  assert.is(changed.status, 1);
  assert.match(changed.all, 'error: ' + archive + ' does not match ' + archive + '.sha256');
  await rm(`${archive}.sha256`);
  const bare = await tools(box, ['unpack', archive]);
  assert.is(bare.status, 1);
  assert.match(bare.all, `cannot be verified without ${archive}.sha256`);
  assert.is(existsSync(box.at('.curlew/tools/bin')), false);
});

test('an archive of another architecture is refused', async () => {
  const { from, to, archive } = await packed('default');
  await using _ = from;
  await using box = to;
  await writeTree(box.path, { 'path/uname': '#!/bin/sh\necho riscv64\n' });
  const { status, all } = await tools(box, ['unpack', archive], { PATH: `${box.at('path')}:${process.env['PATH']}` });
  assert.is(status, 1);
  assert.match(all, /tools\.tar\.gz was packed on \S+ \S+, and this is riscv64 /);
  assert.equal(await readdir(box.at('.curlew/tools')), ['partial']);
});

test('of an archive of other recipes only those tools are taken that would be made the same way', async () => {
  const { from, to } = await packed('default');
  await using _ = from;
  await using box = to;
  await writeFile(box.at('inputs/word'), 'second');
  const said = await succeeds(box, 'unpack', 'tools.tar.gz');
  assert.match(said, /^tools: 1 unpacked, 0 present\n.*left out: word$/);
  assert.match(await succeeds(box, 'prepare', 'default'), /^word +ok [^]*^tools: 1 present, 1 made/m);
});

test('only a whole tier is packed', async () => {
  await using box = await checkout();
  await succeeds(box, 'word');
  const { status, all } = await tools(box, ['pack', 'default', 'tools.tar.gz']);
  assert.is(status, 1);
  assert.match(all, 'nothing to pack of pair: run scripts/tools prepare default');
  assert.is(existsSync(box.at('tools.tar.gz')), false);
});

for (const words of [[], ['nonsense'], ['word', 'nonsense']]) {
  test(`"${words.join(' ')}" is answered with what there is`, async () => {
    await using box = await checkout();
    const { status, all } = await tools(box, words);
    assert.is(status, 64);
    assert.match(all, /usage: scripts\/tools NAME/);
    assert.equal(await madeIn(box), []);
  });
}

test.run();
