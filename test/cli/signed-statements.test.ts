/** What a node asks of signed bundles beyond a signature: their kind, their name, their time, and that none is put back. */
import { execa } from 'execa';
import { createPrivateKey, createPublicKey, verify } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { memorySource, readTocText } from '../../src/formats/archive/read.ts';
import type { Command } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { trustOf } from '../../src/steps/open/trust.ts';
import { digestOf } from '../../src/core/digest.ts';
import { signArchive, type ArchiveStatement } from '../../src/formats/signing/archive-statement.ts';
import { signText } from '../../src/formats/signing/signature.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { tracer } from '../support/node-install.ts';
import { packageOf } from '../support/packages.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { DAY } from '../support/signing.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFolder } from '../support/web-server.ts';

// not fast: signs and proves again and again
const test = suite('cli: what signed bundles say', { timeoutMs: 120_000 });

const INVALID = 30;
const DOWNGRADE = 34;

async function ok(box: Tree, ...words: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runTraced(words, box);
  assert.is(exitCode, 0, stderr);
  return `${stdout}\n${stderr}`;
}

async function refused(box: Tree, code: number, message: RegExp, ...words: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await runTraced(words, box);
  assert.is(exitCode, code, `${words.join(' ')}: ${stderr}`);
  assert.match(stderr.replaceAll('\n', ' '), message);
}

/** Two bundles of one line, one of another, and a package; keys, but no signatures. */
async function boxOfBundles(): Promise<Tree> {
  const box = await tree({
    'old.tar.gz': bundleOf([tracer('aaa')]),
    'new.tar.gz': bundleOf([tracer('aaa', '# newer')]),
    'core.tar.gz': bundleOf([tracer('bbb')]),
    'web.tar.gz': packageOf('web', '1.0.0', [
      { path: 'Manifest', data: '' },
      { path: 'install.sh', data: 'web() { :; }\n' },
    ]).bytes,
  });
  await ok(box, 'keygen', 'our');
  await ok(box, 'keygen', 'their');
  return box;
}

async function sign(box: Tree, file: string, ...words: readonly string[]): Promise<string> {
  return ok(box, 'sign', file, '--key', 'our.key', ...words);
}

function installing(file: string, ...words: readonly string[]): readonly string[] {
  return ['install', '--root', 'root', '--unconfined', '--bundle', file, '--key', 'our.pub', ...words];
}

const FOLDER = 'root/var/lib/curlew';
const SEEN = `${FOLDER}/seen-bundles.json`;

async function loaded(name: string): Promise<Command> {
  const command = await COMMANDS.get(name)?.load();
  if (command === undefined) throw new Error(`no command ${name}`);
  return command;
}

async function seen(box: Tree): Promise<string | undefined> {
  return readFile(box.at(SEEN), 'utf8').catch(() => undefined);
}

/** The statement of a file with something else in it, by our key. */
async function forge(box: Tree, file: string, change: Partial<ArchiveStatement>): Promise<void> {
  const bytes = await readFile(box.at(file));
  const contents = digestOf(await readTocText(memorySource(file, bytes), { signal: never }));
  const signed = new Date();
  const right = { role: 'bundle', name: 'test', version: 1, signed, expires: undefined, makes: undefined } as const;
  const statement = { ...right, file: digestOf(bytes), contents, ...change };
  const key = createPrivateKey(await readFile(box.at('our.key')));
  await writeFile(box.at(`${file}.sigstore.json`), signArchive(statement, key));
}

test('sign says what a bundle and a package are, and verify says it again', async () => {
  await using box = await boxOfBundles();
  assert.match(
    await sign(box, 'new.tar.gz', '--number', '7', '--expires', '2w'),
    /^new\.tar\.gz\.sigstore\.json: the bundle test, version 7 until 20/m,
  );
  const [row] = JSON.parse(
    (await runTraced(['verify', 'new.tar.gz', '--key', 'our.pub', '--signed-as', 'test', '--json'], box)).stdout,
  ) as [{ signedAs: Record<string, unknown> }];
  const { role, name, version } = row.signedAs;
  assert.equal([role, name, version], ['bundle', 'test', 7]);
  const before = Math.floor(Date.now() / 1000);
  assert.match(await sign(box, 'web.tar.gz'), /: the package addons\/web\/1\.0\.0, version (\d+)\n/);
  const line = await ok(box, 'verify', 'web.tar.gz', '--key', 'our.pub');
  assert.ok(Number(/version (\d+), at/.exec(line)?.[1]) >= before, line);
  await refused(box, 64, /--name is for bundles/, 'sign', 'web.tar.gz', '--key', 'our.key', '--name', 'web');
});

test('a bundle at an address is signed into the current folder, as its file is', async () => {
  await using box = await boxOfBundles();
  await using server = await serveFolder(box.path);
  await sign(box, 'new.tar.gz', '--number', '7');
  const [sum, bytes] = [await readFile(box.at('new.tar.gz.sha256')), await readFile(box.at('new.tar.gz'))];
  await mkdir(box.at('elsewhere'));
  const words = ['sign', `${server.url}/new.tar.gz`, '--key', '../our.key', '--number', '7'];
  const { exitCode, stderr } = await runCommand(words, box.at('elsewhere'));
  assert.is(exitCode, 0, stderr);
  assert.equal(await readFile(box.at('elsewhere/new.tar.gz.sha256')), sum);
  const key = createPublicKey(await readFile(box.at('our.pub')));
  assert.ok(verify('sha256', bytes, key, await readFile(box.at('elsewhere/new.tar.gz.sig'))));
  await ok(box, 'verify', 'new.tar.gz', '--key', 'our.pub', '--signature', 'elsewhere/new.tar.gz.sigstore.json');
  const twice = [`${server.url}/new.tar.gz`, `${server.url}/./new.tar.gz`];
  assert.is((await runCommand(['sign', ...twice, '--key', '../our.key'], box.at('elsewhere'))).exitCode, 64);
});

test('a bundle without a proper name of its own is called as its file, or as the words say', async () => {
  await using box = await boxOfBundles();
  const spec = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: "My cluster"\nspec: {}\n';
  await writeFile(box.at('odd.tar.gz'), bundleOf([tracer('aaa')], spec));
  assert.match(await sign(box, 'odd.tar.gz'), /: the bundle odd, version/);
  assert.match(await sign(box, 'odd.tar.gz', '--name', 'edge'), /: the bundle edge, version/);
  await writeFile(box.at('a b.tar.gz'), bundleOf([tracer('aaa')], spec));
  await refused(box, 64, /--name is required/, 'sign', 'a b.tar.gz', '--key', 'our.key');
  await writeFile(box.at('a\nb.tar.gz'), bundleOf([tracer('aaa')]));
  await refused(box, 64, /its file name contains a control character/, 'sign', 'a\nb.tar.gz', '--key', 'our.key');
});

test('a signed package does not pass for a bundle, nor a statement for what it is not about', async () => {
  await using box = await boxOfBundles();
  await sign(box, 'web.tar.gz');
  await refused(box, INVALID, /signed as the package addons\/web\/1\.0\.0, but a bundle/, ...installing('web.tar.gz'));
  await forge(box, 'web.tar.gz', {});
  await refused(box, INVALID, /it is the package .*, but signed as the bundle test/, ...installing('web.tar.gz'));
  await forge(box, 'new.tar.gz', { role: 'package', name: 'addons/aaa/1.0.0' });
  await refused(
    box,
    INVALID,
    /it is the bundle, but signed as the package/,
    'verify',
    'new.tar.gz',
    '--key',
    'our.pub',
  );
  await sign(box, 'core.tar.gz');
  const beside = ['--signature', 'core.tar.gz.sigstore.json'];
  await refused(box, INVALID, /belongs to another file/, ...installing('new.tar.gz', ...beside));
  assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
});

test('a bundle under another name is refused: another than the words say, or than the node has had', async () => {
  await using box = await boxOfBundles();
  await sign(box, 'new.tar.gz', '--name', 'edge');
  await sign(box, 'core.tar.gz', '--name', 'core');
  await refused(
    box,
    INVALID,
    /signed as the bundle edge, not as core/,
    ...installing('new.tar.gz', '--signed-as', 'core'),
  );
  await ok(box, ...installing('new.tar.gz'));
  await refused(
    box,
    INVALID,
    /signed as the bundle core; this node has bundles of this key named edge/,
    ...installing('core.tar.gz', '--allow-downgrade'),
  );
  await ok(box, ...installing('core.tar.gz', '--signed-as', 'core'));
  await ok(box, ...installing('core.tar.gz'));
  await ok(box, ...installing('new.tar.gz'));
});

test('a bundle that is put back behind what the node has seen is refused by every command of the node', async () => {
  await using box = await boxOfBundles();
  await sign(box, 'old.tar.gz', '--number', '1');
  await sign(box, 'new.tar.gz', '--number', '2');
  await ok(box, ...installing('old.tar.gz'));
  await ok(box, ...installing('new.tar.gz', '--dry-run'));
  await ok(box, ...installing('old.tar.gz'));
  await ok(box, ...installing('new.tar.gz'));
  const before = await seen(box);
  const words = ['--bundle', 'old.tar.gz', '--key', 'our.pub'];
  const node = ['--root', 'root', '--unconfined'];
  const where = ['--install-dir', FOLDER];
  const put = /test, version 1, but this node has already seen version 2/;
  await refused(box, DOWNGRADE, put, 'install', ...node, ...words);
  await refused(box, DOWNGRADE, put, 'install', ...node, ...words, '--dry-run');
  await refused(box, DOWNGRADE, put, 'upgrade', ...node, ...words);
  await mkdir(box.at('worker/var/lib/curlew'), { recursive: true });
  await writeFile(box.at('worker/var/lib/curlew/seen-bundles.json'), before ?? '');
  await refused(box, DOWNGRADE, put, 'join', '--root', 'worker', '--unconfined', ...words);
  await refused(box, DOWNGRADE, put, 'preflight', ...where, ...words);
  await refused(box, DOWNGRADE, put, 'load-images', '--dry-run', ...where, ...words);
  await refused(box, DOWNGRADE, put, 'verify', 'old.tar.gz', '--key', 'our.pub', ...where);
  await ok(box, 'verify', 'old.tar.gz', '--key', 'our.pub', ...where, '--allow-downgrade');
  await ok(box, ...installing('old.tar.gz', '--allow-downgrade'));
  assert.is(await seen(box), before, 'what was seen was forgotten');
  await refused(box, DOWNGRADE, put, 'install', ...node, ...words);
});

test('an unpacked bundle is held to the same, and one that is signed again is the same bundle', async () => {
  await using box = await boxOfBundles();
  await sign(box, 'old.tar.gz', '--number', '1');
  const first = await readFile(box.at('old.tar.gz.sigstore.json'));
  await sign(box, 'old.tar.gz', '--number', '5');
  await ok(box, ...installing('old.tar.gz'));
  await writeFile(box.at('old.tar.gz.sigstore.json'), first);
  await ok(box, ...installing('old.tar.gz'));
  await sign(box, 'new.tar.gz', '--number', '4');
  await mkdir(box.at('unpacked'));
  await execa('tar', ['-xzf', box.at('new.tar.gz'), '-C', box.at('unpacked')]);
  const unpacked = installing('', '--signature', 'new.tar.gz.sigstore.json').map((word) =>
    word === '--bundle' ? '--dir' : word,
  );
  const words = unpacked.map((word) => (word === '' ? 'unpacked' : word));
  await refused(box, DOWNGRADE, /test, version 4, but this node has already seen version 5/, ...words);
  await sign(box, 'new.tar.gz', '--number', '6');
  await ok(box, ...words);
  await refused(
    box,
    DOWNGRADE,
    /test, version 1, but this node has already seen version 6/,
    ...installing('old.tar.gz'),
  );
});

test('a run asks once more when it has the lock: another one may have seen a newer bundle meanwhile', async () => {
  await using box = await boxOfBundles();
  await sign(box, 'old.tar.gz', '--number', '1');
  await sign(box, 'new.tar.gz', '--number', '2');
  const words = installing('old.tar.gz');
  const args = readArguments(await loaded('install'), words.slice(1));
  const context = { cwd: box.path, env: { HOME: box.path }, report: () => undefined, ask: undefined, signal: never };
  const trust = await trustOf(args.request, context, { role: 'bundle', directory: box.at(FOLDER) });
  const contents = await readTocText(memorySource('b', await readFile(box.at('old.tar.gz'))), { signal: never });
  const signed = await trust?.check('old.tar.gz', contents, box.at('old.tar.gz'));
  await ok(box, ...installing('new.tar.gz'));
  const before = await seen(box);
  await assert.rejectsWith(signed?.remember() ?? Promise.resolve(), 'DOWNGRADE', /already seen version 2/);
  assert.is(await seen(box), before);
});

test('only what was proved is noted, in one file that says so or stops the run', async () => {
  await using box = await boxOfBundles();
  await sign(box, 'new.tar.gz', '--number', '9');
  const their = installing('new.tar.gz').map((word) => (word === 'our.pub' ? 'their.pub' : word));
  await refused(box, INVALID, /was not made with/, ...their);
  assert.is(await seen(box), undefined);
  await ok(box, ...installing('new.tar.gz', '--key', 'their.pub'));
  const { keys } = JSON.parse((await seen(box)) ?? '') as { keys: Record<string, unknown> };
  assert.equal(
    Object.values(keys).map((names) => Object.keys(names as object)),
    [['test']],
  );
  for (const text of ['{', '{}', '{"format":2,"keys":{}}', '{"format":1,"keys":{"k":{"test":{"version":-1}}}}']) {
    await writeFile(box.at(SEEN), text);
    await refused(box, 25, /the bundles seen before are unknown/, ...installing('new.tar.gz'));
  }
});

test('a statement that is over or from the future is refused, and nothing of it is noted', async () => {
  await using box = await boxOfBundles();
  const ago = new Date(Date.now() - 10 * DAY);
  await forge(box, 'new.tar.gz', { signed: ago, expires: new Date(Date.now() - 1000), version: 900 });
  await refused(box, INVALID, /test until .*, but the clock of this machine shows/, ...installing('new.tar.gz'));
  await forge(box, 'new.tar.gz', { signed: new Date(Date.now() + 2 * DAY), version: 900 });
  await refused(box, INVALID, /but the clock of this machine shows/, ...installing('new.tar.gz', '--allow-downgrade'));
  assert.is(await seen(box), undefined);
  await forge(box, 'new.tar.gz', { signed: ago, expires: new Date(Date.now() + DAY) });
  await ok(box, ...installing('new.tar.gz'));
});

test('a signature over contents alone holds, is told as binding nothing, and is refused after a statement', async () => {
  await using box = await boxOfBundles();
  const key = createPrivateKey(await readFile(box.at('our.key')));
  const contents = await readTocText(memorySource('b', await readFile(box.at('old.tar.gz'))), { signal: never });
  await writeFile(box.at('old.tar.gz.sigstore.json'), signText(contents, key));
  const told = /warning: .*old\.tar\.gz: its signature covers no name, version or time/;
  assert.match(await ok(box, ...installing('old.tar.gz', '--require-signed')), told);
  assert.match(await ok(box, 'verify', 'old.tar.gz', '--key', 'our.pub'), told);
  await refused(box, INVALID, /but the name test is required/, ...installing('old.tar.gz', '--signed-as', 'test'));
  await refused(box, INVALID, /sign it again/, ...installing('old.tar.gz', '--require-statement'));
  await sign(box, 'new.tar.gz');
  await ok(box, ...installing('new.tar.gz'));
  for (const more of [[], ['--require-signed']]) {
    await refused(box, DOWNGRADE, /covers no name.* this node has already seen/, ...installing('old.tar.gz', ...more));
  }
  assert.match(await ok(box, ...installing('old.tar.gz', '--allow-downgrade')), told);
});

test('verify wants the very file that was signed, not only its contents', async () => {
  await using box = await boxOfBundles();
  await forge(box, 'new.tar.gz', { file: digestOf('as it was packed before') });
  await refused(box, 15, /: it is not the file that was signed/, 'verify', 'new.tar.gz', '--key', 'our.pub');
});

test.run();
