import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { digestOf, hexOf } from '../../src/core/digest.ts';
import { pathsBeside } from '../../src/ship/transfer/partial-file.ts';
import { createPace } from '../../src/ship/transfer/pull.ts';
import * as assert from '../support/assert.ts';
import { startCurlew, type Outcome } from '../support/curlew.ts';
import { noise } from '../support/packages.ts';
import { largePackage, notedBytes } from '../support/pulls.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles, serveFolder, startServer } from '../support/web-server.ts';

const test = suite('cli: pull', { timeoutMs: 240_000 });
const WEB = largePackage();
const NAME = 'web.tar.gz';

/** Resolves when a started pull has noted some bytes beyond those that were noted before; returns how many are. */
async function noted(box: Tree, before: number, signal: AbortSignal): Promise<number> {
  for (;;) {
    signal.throwIfAborted();
    const bytes = await notedBytes(pathsBeside(box.at(NAME)).note);
    if (bytes > before) return bytes;
    await wait(10);
  }
}

test('the file takes the name of the address, and what is there is told', async () => {
  await using box = await tree();
  await using server = await serveFiles({ [`dist/${NAME}`]: WEB.bytes });
  const { exitCode, stdout, stderr } = await runCommand(
    ['pull', `${server.url}/dist/${NAME}?token=secret123`],
    box.path,
  );
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, `${NAME}: ok, 10 MB, `);
  assert.match(stdout, `contents ${WEB.plan.index.tocDigest}`);
  assert.not.match(stdout + stderr, 'secret123');
  const again = await runCommand(['pull', `${server.url}/dist/${NAME}`, '-o', '.', '--json'], box.path);
  assert.match(again.stderr, `check existing ${NAME}: complete`);
  const { file, fetched, size } = JSON.parse(again.stdout) as Record<string, unknown>;
  assert.equal({ file, fetched, size }, { file: box.at(NAME), fetched: 0, size: WEB.bytes.byteLength });
});

test('a store in a folder is a place like others', async () => {
  await using box = await tree({ [`dist/${NAME}`]: WEB.bytes });
  const { exitCode, stderr } = await runCommand(
    ['pull', `missing/${NAME}`, `dist/${NAME}`, '-o', 'copy.tar.gz'],
    box.path,
  );
  assert.is(exitCode, 14, stderr);
  const second = await runCommand(['pull', `dist/none.tar.gz`, `dist/${NAME}`, '-o', 'copy.tar.gz'], box.path);
  assert.is(second.exitCode, 0, second.stderr);
  assert.match(second.stderr, 'there is no none.tar.gz; trying the next place');
  assert.ok((await readFile(box.at('copy.tar.gz'))).equals(WEB.bytes));
});

test('killed again and again, it comes to its end, and fetches nothing that was noted', async ({ signal }) => {
  await using box = await tree();
  await using server = await serveFolder(box.at('served'));
  await writeTreeFile(box, `served/${NAME}`, WEB.bytes);
  const words = ['pull', `${server.url}/${NAME}`, '--connections', '2'];
  let before = 200_000;
  for (let kills = 0; kills < 2; kills += 1) {
    const pulling = startCurlew([...words, '--limit-rate', '1M'], { cwd: box.path });
    before = await noted(box, before, signal);
    pulling.kill('SIGKILL');
    await pulling;
    assert.not.ok((await readdir(box.path)).includes(NAME));
  }
  const { exitCode, stdout, stderr } = await runCommand([...words, '--json'], box.path);
  assert.is(exitCode, 0, stderr);
  const { fetched } = JSON.parse(stdout) as { readonly fetched: number };
  assert.ok(fetched <= WEB.bytes.byteLength - before, `${fetched} bytes fetched, ${before} were noted`);
  assert.ok((await readFile(box.at(NAME))).equals(WEB.bytes));
  assert.equal((await readdir(box.path)).toSorted(), ['served', NAME]);
});

test('Ctrl-C keeps what has come, and says how to go on', async ({ signal }) => {
  await using box = await tree();
  await using server = await serveFiles({ [NAME]: WEB.bytes });
  const pulling = startCurlew(['pull', `${server.url}/${NAME}`, '--limit-rate', '1M', '--connections', '1'], {
    cwd: box.path,
  });
  await noted(box, 200_000, signal);
  pulling.kill('SIGINT');
  const { exitCode, stderr } = await pulling;
  assert.is(exitCode, 130, stderr);
  assert.match(stderr, /stopped after \d+ of 100\d+ bytes\n {2}hint: run the same command again to resume/);
  assert.equal((await readdir(box.path)).toSorted(), [`${NAME}.partial`, `${NAME}.partial.json`]);
  assert.is((await runCommand(['pull', `${server.url}/${NAME}`], box.path)).exitCode, 0);
});

test('a page that is no bundle, or not the one with the digest, leaves nothing, because nothing could be resumed', async () => {
  await using box = await tree();
  await using server = await startServer(() => ({ status: 200, body: 'page '.repeat(200) }));
  const pull = async (...words: readonly string[]): Promise<string> => {
    const { exitCode, stderr } = await runCommand(['pull', `${server.url}/healthz`, ...words], box.path);
    assert.ok(exitCode !== 0, stderr);
    assert.equal(await readdir(box.path), []);
    return stderr;
  };
  assert.match(await pull(), `PACKAGE_INVALID: ${server.url}/healthz: not a package or bundle of curlew`);
  await pull('--sha256', hexOf(digestOf('another page')));
});

test('with a key, the signature beside the file is checked first, and comes along', async () => {
  await using box = await tree();
  await writeTreeFile(box, `served/${NAME}`, WEB.bytes);
  await using server = await serveFolder(box.at('served'));
  for (const name of ['release', 'other']) await runCommand(['keygen', name], box.path);
  const pull = async (...words: readonly string[]): Promise<Outcome> =>
    runCommand(['pull', `${server.url}/${NAME}`, ...words], box.path);
  const unsigned = await pull('--key', 'release.pub');
  assert.is(unsigned.exitCode, 30, unsigned.stderr);
  assert.match(unsigned.stderr, `there is no signature ${server.url}/${NAME}.sigstore.json`);
  const signed = await runCommand(['sign', `served/${NAME}`, '--key', 'release.key'], box.path);
  assert.is(signed.exitCode, 0, signed.stderr);
  const wrong = await pull('--key', 'other.pub');
  assert.is(wrong.exitCode, 30, wrong.stderr);
  assert.not.ok((await readdir(box.path)).some((name) => name.startsWith('web')));
  const sent = server.log.filter(
    ({ path, headers }) => path === `/${NAME}` && String(headers['range'] ?? '').startsWith('bytes=0-'),
  ).length;
  assert.is(sent, 0, 'nothing but the end was asked for');
  const right = await pull('--key', 'other.pub', '--key', 'release.pub');
  assert.is(right.exitCode, 0, right.stderr);
  assert.match(right.stdout, /signed with .*release\.pub/);
  assert.is((await runCommand(['verify', NAME, '--key', 'release.pub'], box.path)).exitCode, 0);
  const nobody = await pull('--require-signed');
  assert.is(nobody.exitCode, 64, nobody.stderr);
  // A signature that came another way.
  await rm(box.at(NAME));
  await rm(box.at(`served/${NAME}.sigstore.json`));
  const elsewhere = await pull('--key', 'release.pub', '--signature', `${NAME}.sigstore.json`);
  assert.is(elsewhere.exitCode, 0, elsewhere.stderr);
});

test('any file is taken with its sha256', async () => {
  const data = noise(300_000, 5);
  await using box = await tree();
  await using server = await serveFiles({ 'disk.img': data });
  const wrong = await runCommand(['pull', `${server.url}/disk.img`], box.path);
  assert.is(wrong.exitCode, 16, wrong.stderr);
  assert.match(wrong.stderr, '--sha256 HEX');
  const right = await runCommand(
    ['pull', `${server.url}/disk.img`, '--sha256', hexOf(digestOf(data)).toUpperCase()],
    box.path,
  );
  assert.is(right.exitCode, 0, right.stderr);
  assert.is((await stat(box.at('disk.img'))).size, 300_000);
});

test('words that mean nothing are refused before anybody is asked', async () => {
  await using box = await tree();
  const cases = [
    [[], 'no address given'],
    [['http://127.0.0.1:1/a', '--connections', '0'], 'from 1 to 16'],
    [['http://127.0.0.1:1/a', '--connections', '17'], 'from 1 to 16'],
    [['http://127.0.0.1:1/a', '--limit-rate', 'fast'], 'not a size in bytes'],
    [['http://127.0.0.1:1/a', '--sha256', 'abc'], 'not 64 hexadecimal digits'],
    [['http://127.0.0.1:1/a', '-o', '-'], 'the output must be a file'],
    [['http://127.0.0.1:1/'], 'no file'],
    [['s3://bucket'], 'no file'],
  ] as const;
  for (const [words, message] of cases) {
    const { exitCode, stderr } = await runCommand(['pull', ...words], box.path);
    assert.is(exitCode, 64, `${words.join(' ')}: ${stderr}`);
    assert.match(stderr, message);
  }
  assert.equal(await readdir(box.path), []);
});

test('a limit on speed counts all bytes, and does not make up for time in which nothing came', () => {
  let now = 1000;
  const pace = createPace(1000, () => now);
  assert.is(pace(500), 500);
  assert.is(pace(500), 1000);
  now += 1000;
  assert.is(pace(100), 100);
  now += 60_000;
  assert.is(pace(2000), 2000);
});

async function writeTreeFile(box: Tree, path: string, data: Uint8Array): Promise<void> {
  await mkdir(box.at('served'), { recursive: true });
  await writeFile(box.at(path), data);
}

test.run();
