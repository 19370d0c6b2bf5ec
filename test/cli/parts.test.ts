import { copyFile, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { execa } from 'execa';
import type { Ask } from '../../src/core/context.ts';
import { digestOf } from '../../src/core/digest.ts';
import { ERROR_CODES, type ErrorCode } from '../../src/core/errors.ts';
import { formatHead, parseHead } from '../../src/core/parts.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { noise } from '../support/packages.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli/parts', { timeoutMs: 120_000 });

const HEAD = 'parts/b.tar.gz.parts.json';
const PARTS = [1, 2, 3].map((number) => `b.tar.gz.part-00${number}`);

async function ok(box: Tree, ...words: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runTraced(words, box);
  assert.is(exitCode, 0, stderr);
  return stdout;
}

async function refused(box: Tree, code: ErrorCode, message: RegExp, words: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await runTraced(words, box);
  assert.is(exitCode, ERROR_CODES[code], stderr);
  assert.match(stderr, new RegExp(`^error ${code}: .*(?:${message.source})`, 'm'));
}

const SIGNATURES = ['b.tar.gz.sha256', 'b.tar.gz.sig', 'b.tar.gz.sigstore.json'];

/** A signed bundle of some 250 kB, and its parts below `parts/`. */
async function partsBox(): Promise<Tree> {
  const box = await tree({ 'parts/.keep': '' });
  const { files, ...addon } = tracer('aaa');
  await writeFile(box.at('b.tar.gz'), bundleOf([{ ...addon, files: { ...files, 'assets/x.gz': noise(250_000) } }]));
  await ok(box, 'keygen', 'our');
  await ok(box, 'keygen', 'their');
  await ok(box, 'sign', 'b.tar.gz', '--key', 'our.key');
  await ok(box, 'split', 'b.tar.gz', '--size', '100KB', '-o', 'parts/b.tar.gz', '--verify');
  return box;
}

test('a signed bundle that is split is verified, read and installed from its parts, and joined again', async () => {
  await using box = await partsBox();
  const beside = ['.keep', ...PARTS, 'b.tar.gz.parts.json', 'b.tar.gz.parts.sha256', ...SIGNATURES];
  assert.equal((await readdir(box.at('parts'))).toSorted(), beside);
  await execa('sha256sum', ['--check', '--strict', 'b.tar.gz.parts.sha256'], { cwd: box.at('parts') });
  assert.match(await ok(box, 'verify', HEAD, '--key', 'our.pub'), /^signed with .*our\.pub$/m);
  await refused(box, 'SIGNATURE_INVALID', /was not made with .*their\.pub/, ['verify', HEAD, '--key', 'their.pub']);
  const whole = JSON.parse(await ok(box, 'inspect', 'b.tar.gz', '--json')) as object;
  assert.equal(JSON.parse(await ok(box, 'inspect', HEAD, '--json')), { ...whole, path: HEAD });
  const trial = ['install', '--root', 'root', '--unconfined', '--bundle', HEAD, '--key', 'our.pub', '--require-signed'];
  assert.match(await ok(box, ...trial), /^aaa {2}1\.0\.0 {2}installed/);
  const joined = await ok(box, 'join-parts', HEAD, '-o', 'parts/b.tar.gz');
  assert.match(joined, /b\.tar\.gz: \d+ kB from 3 parts\nno signature was checked: /);
  assert.ok((await readFile(box.at('parts/b.tar.gz'))).equals(await readFile(box.at('b.tar.gz'))));
  assert.match(await ok(box, 'verify', 'parts/b.tar.gz', '--key', 'our.pub'), /^signed with/m);
});

/** Parts that are as their head file says, and not as they were signed; their table of contents is. */
async function altered(box: Tree): Promise<void> {
  const [first = ''] = PARTS;
  const bytes = await readFile(box.at('parts', first));
  bytes.writeUInt8(bytes.readUInt8(50_000) ^ 1, 50_000);
  await writeFile(box.at('parts', first), bytes);
  const head = parseHead(await readFile(box.at(HEAD), 'utf8'), HEAD);
  const parts = head.parts.map((part) => (part.name === first ? { ...part, digest: digestOf(bytes) } : part));
  await writeFile(box.at(HEAD), formatHead({ ...head, parts }));
}

/** Parts of another bundle under the same names, with the signature of ours. */
async function exchanged(box: Tree): Promise<void> {
  const { files, ...addon } = tracer('bbb');
  await writeFile(box.at('other.tar.gz'), bundleOf([{ ...addon, files: { ...files, 'assets/x.gz': noise(250_000) } }]));
  await rm(box.at('parts'), { recursive: true });
  await mkdir(box.at('parts'));
  await ok(box, 'split', 'other.tar.gz', '--size', '100KB', '-o', 'parts/b.tar.gz');
  for (const name of SIGNATURES) await copyFile(box.at(name), box.at('parts', name));
}

for (const [what, harm, code, message] of [
  ['other bytes than were signed', altered, 'DIGEST_MISMATCH', /it is not the file that was signed/],
  ['another bundle than was signed', exchanged, 'SIGNATURE_INVALID', /belongs to another file/],
] as const) {
  test(`a head file and parts that agree on ${what} are not joined where a key is named`, async () => {
    await using box = await partsBox();
    const { stderr } = await runTraced(['verify', 'b.tar.gz', '--key', 'our.pub'], box);
    assert.match(stderr, /^hash .*b\.tar\.gz: sha256:[0-9a-f]{64}$/m);
    const ways = [['-o', 'parts/b.tar.gz'], ['-o', '-'], ['--check']];
    for (const way of ways) {
      const good = await ok(box, 'join-parts', HEAD, ...way, '--key', 'our.pub');
      if (!way.includes('-')) assert.match(good, /^signed with .*our\.pub$/m);
    }
    await rm(box.at('parts/b.tar.gz'));
    await harm(box);
    const before = await readdir(box.at('parts'));
    for (const way of ways) await refused(box, code, message, ['join-parts', HEAD, ...way, '--key', 'our.pub']);
    assert.equal(await readdir(box.at('parts')), before);
    assert.match(await ok(box, 'join-parts', HEAD, '--check'), /^no signature was checked: .* is not verified/m);
  });
}

test('parts in a folder that does not exist are refused with its path, and need no medium', async () => {
  await using box = await tree();
  await writeFile(box.at('b.tar.gz'), bundleOf([{ name: 'demo', version: '1.0', files: { 'install.sh': '' } }]));
  const words = ['split', 'b.tar.gz', '--size', '100KB', '-o', 'none/b.tar.gz'];
  await refused(box, 'FILE_UNUSABLE', /cannot write .*none\/b\.tar\.gz: .*none does not exist/, words);
  await refused(box, 'NOT_FOUND', /write parts to \S*none: no such folder/, ['split', 'b.tar.gz', '--to', 'none']);
});

test('a part that cannot be written is named, and not the bundle as if reading it had failed', async () => {
  await using box = await partsBox();
  const words = ['split', 'b.tar.gz', '--size', '100KB', '-o', 'y'];
  const limited = ['-c', 'ulimit -f 1; exec "$0" "$@"', process.execPath, MAIN, ...words];
  const { exitCode, stderr } = await execa('bash', limited, { cwd: box.path, reject: false });
  assert.is(exitCode, ERROR_CODES.FILE_UNUSABLE, stderr);
  assert.match(stderr, /^error FILE_UNUSABLE: cannot write .*\/y\.part-001: .*file too large/im);
});

test('parts that never were one file are signed as the file that they make', async () => {
  await using box = await partsBox();
  await rm(box.at('parts/b.tar.gz.sigstore.json'));
  await refused(box, 'SIGNATURE_INVALID', /there is no signature .*parts\/b\.tar\.gz\.sigstore\.json/, [
    'verify',
    HEAD,
    '--key',
    'our.pub',
  ]);
  assert.match(await ok(box, 'sign', HEAD, '--key', 'our.key'), /^parts\/b\.tar\.gz\.sigstore\.json: /);
  await copyFile(box.at('parts/b.tar.gz.sigstore.json'), box.at('b.tar.gz.sigstore.json'));
  await ok(box, 'verify', HEAD, 'b.tar.gz', '--key', 'our.pub');
});

test('what is wrong with parts is named by every command that reads them, and nothing is installed', async () => {
  await using box = await partsBox();
  const [first = '', second = ''] = PARTS.map((name) => `parts/${name}`);
  await rename(box.at(second), box.at('away'));
  const lacks = /b\.tar\.gz\.part-002 is missing/;
  const install = ['install', '--root', 'root', '--unconfined', '--bundle', HEAD];
  for (const words of [['verify', HEAD], ['inspect', HEAD], ['join-parts', HEAD, '-o', 'x'], install]) {
    await refused(box, 'NOT_FOUND', lacks, words);
  }
  const checked = await runTraced(['join-parts', HEAD, '--check'], box);
  assert.is(checked.exitCode, 14);
  assert.equal(
    checked.stdout.split('\n').map((line) => line.split(/ {2,}/)[1]),
    ['is valid', 'is missing', 'is valid'],
  );
  await copyFile(box.at(first), box.at(second));
  await refused(box, 'DIGEST_MISMATCH', /part-002 is a copy of b\.tar\.gz\.part-001/, ['verify', HEAD]);
  await refused(box, 'DIGEST_MISMATCH', /part-002 is a copy of b\.tar\.gz\.part-001/, ['join-parts', HEAD, '-o', 'x']);
  assert.is((await runTraced(['join-parts', HEAD, '--check', '--json'], box)).exitCode, 15);
  assert.equal(
    (await readdir(box.path)).filter((name) => name === 'x' || name === 'root'),
    [],
  );
  await mkdir(box.at('medium'));
  await rename(box.at('away'), box.at('medium', PARTS[1] ?? ''));
  await ok(box, 'join-parts', HEAD, 'medium', '-o', 'x');
});

test('media get their parts, the head file and the signature', async () => {
  await using box = await partsBox();
  await mkdir(box.at('one'));
  const done = await runTraced(['split', 'b.tar.gz', '--to', 'one', '--size', '200KB'], box);
  assert.match(done.stdout, /one\/b\.tar\.gz\.parts\.json: 2 parts, /);
  assert.match(done.stderr, /^[^\n]*one: 2 parts, \d+ kB$/m);
  assert.match(done.stderr, /one: 2 parts, .* are on disk: it can be unmounted and removed/);
  await ok(box, 'verify', 'one/b.tar.gz.parts.json', '--key', 'our.pub');
  await refused(box, 'FILE_EXISTS', /the file already exists/, ['split', 'b.tar.gz', '--to', 'one', '--size', '200KB']);
});

test('parts are split again under the name of the bundle, in another folder or otherwise named', async () => {
  await using box = await partsBox();
  await mkdir(box.at('one'));
  await ok(box, 'split', HEAD, '--size', '200KB', '--to', 'one');
  const names = ['b.tar.gz.part-001', 'b.tar.gz.part-002', 'b.tar.gz.parts.json', 'b.tar.gz.parts.sha256'];
  assert.equal((await readdir(box.at('one'))).toSorted(), [...names, ...SIGNATURES]);
  await ok(box, 'verify', 'one/b.tar.gz.parts.json', '--key', 'our.pub');
  const before = await readdir(box.at('parts'));
  await symlink('parts', box.at('link'));
  for (const words of [
    ['--size', '200KB'],
    ['--size', '200KB', '--force'],
    ['-o', 'parts/b.tar.gz', '--size', '200KB', '--force'],
    ['--to', 'one,link', '--force'],
  ]) {
    await refused(box, 'USAGE', /would replace their source .*parts\/b\.tar\.gz\.part/, ['split', HEAD, ...words]);
  }
  assert.equal(await readdir(box.at('parts')), before);
  await ok(box, 'join-parts', HEAD, '--check');
  await ok(box, 'split', HEAD, '-o', 'parts/c.tar.gz', '--size', '200KB');
  await ok(box, 'join-parts', 'parts/c.tar.gz.parts.json', '--check');
});

test('whoever sits at the terminal is asked for the next medium, and may stop', async () => {
  await using box = await partsBox();
  const [, second = ''] = PARTS;
  await rename(box.at('parts', second), box.at('away'));
  const asked: string[] = [];
  const ask: Ask = async ({ lines }) => {
    asked.push(lines.join('\n'));
    await rename(box.at('away'), box.at('parts', second));
    return '';
  };
  const stop: Ask = async () => 'q';
  const join = ['join-parts', HEAD, '-o', 'x'];
  const stopped = await runCommand(join, box.path, {}, { ask: stop });
  assert.is(stopped.exitCode, ERROR_CODES.CANCELLED);
  assert.match(stopped.stderr, /part-002 is missing: nothing was joined/);
  const joined = await runCommand(join, box.path, {}, { ask });
  assert.is(joined.exitCode, 0, joined.stderr);
  assert.is(asked.length, 1);
  assert.match(
    asked[0] ?? '',
    /^b\.tar\.gz\.part-002 is missing\.\nMount the next medium so that its parts are in .*parts\./,
  );
  assert.ok((await readFile(box.at('x'))).equals(await readFile(box.at('b.tar.gz'))));
});

test('wrong words are refused before anything happens', async () => {
  await using box = await tree({ 'b.tar.gz': 'no bundle' });
  for (const [words, message] of [
    [['split'], /specify one file/],
    [['split', 'b.tar.gz'], /add --size or --to/],
    [['split', 'b.tar.gz', '--size', '0'], /--size 0: not a size in bytes/],
    [['split', 'b.tar.gz', '--size', 'large'], /not a size in bytes/],
    [['split', 'b.tar.gz', '--to', 'a,,b'], /contains an empty name/],
    [['split', 'b.tar.gz', '--to', 'a', '-o', 'x/y'], /-o names a folder, and so does --to/],
    [['join-parts', '-o', 'x'], /specify the head file/],
    [['join-parts', 'h.parts.json'], /add -o with the output file/],
    [['join-parts', 'h.parts.json', '-o', 'x', '--check'], /add -o with the output file/],
    [
      ['join-parts', 'b.tar.gz', '-o', 'x'],
      /b\.tar\.gz is not a head file: its name is that of the bundle followed by \.parts/,
    ],
    [
      ['join-parts', 'https://u:p@h/b.parts.json?k=v', '-o', 'x'],
      /: https:\/\/h\/b\.parts\.json is not a file: download/,
    ],
    [['bundle', 'spec', '--from', 'store', '--split', '1G'], /specify the parts with -o/],
    [['bundle', 'spec', '--from', 'store', '--split', '1G', '-o', 's3://u:p@b/x'], /folders, not to s3:\/\/b\/x$/],
    [['bundle', 'spec', '--from', 'store', '--to', 's3://b/x'], /written to folders, not to s3:\/\/b\/x$/],
    [['split', 'b.tar.gz', '--size', '1G', '-o', 's3://b/x'], /written to folders, not to s3:\/\/b\/x$/],
    [['split', 'b.tar.gz', '--size', '1G', '-o', '-'], /--output -: the output must be a file/],
    [['split', 's3://b/x', '--size', '1G'], /s3:\/\/b\/x is not a file/],
  ] as const) {
    await refused(box, 'USAGE', message, words);
  }
  await refused(box, 'PACKAGE_INVALID', /too short to be a package/, ['split', 'b.tar.gz', '--size', '1K']);
  await refused(box, 'NOT_FOUND', /no such file/, ['join-parts', 'none.parts.json', '-o', 'x']);
  assert.equal(await readdir(box.path), ['b.tar.gz']);
});

test('a part that is taken for the bundle leads to its head file', async () => {
  await using box = await tree({ 'b.tar.gz.part-001': Buffer.alloc(100) });
  const { exitCode, stderr } = await runCommand(['inspect', 'b.tar.gz.part-001'], box.path);
  assert.is(exitCode, 16);
  assert.match(
    stderr,
    `it is one part of a file\n  hint: use the head file next to it: ${box.at('b.tar.gz.parts.json')}`,
  );
});

test.run();
