import { mkdir, readFile } from 'node:fs/promises';
import { NO_PAINT } from '../../src/cli/render/paint.ts';
import { limitsOf, plainAddress, tlsOf, tokenOf } from '../../src/app/serve.ts';
import { command } from '../../src/cli/commands/serve.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import type { CommandContext } from '../../src/cli/command.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import { makeKeyPair, publicPart, readPrivateKey } from '../../src/formats/signing/keys.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages } from '../support/bundles.ts';
import { noReport } from '../support/context.ts';
import { startCurlew } from '../support/curlew.ts';
import { madePackage, publishAs, publishFiveThousand } from '../support/releases.ts';
import { DAY, memory } from '../support/signing.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

const test = suite('cli/serve');

/** What the command reads from these words, over some store. */
function optionsOf(...words: readonly string[]): Readonly<Record<string, unknown>> {
  return readArguments(command, ['--store', 'store', ...words]).request;
}

for (const [text, host, port] of [
  ['127.0.0.1:8080', '127.0.0.1', 8080],
  ['[::1]:0', '::1', 0],
  [':8080', undefined, 8080],
  ['localhost:65535', 'localhost', 65_535],
] as const) {
  test(`--listen ${text} is understood`, () => assert.equal(optionsOf('--listen', text)['listen'], { host, port }));
}

for (const text of ['8080', '127.0.0.1', '127.0.0.1:65536', 'http://127.0.0.1:80', '::1:80', 'a b:80', 'x:80/y', '']) {
  test(`--listen ${JSON.stringify(text)} is refused`, () => {
    assert.throwsWith(() => optionsOf('--listen', text), 'USAGE', /--listen/);
  });
}

test('limits are numbers from 1; only the grace may be none', () => {
  const limits = limitsOf(optionsOf('--max-connections', '5', '--idle-timeout', '7', '--grace', '0'));
  assert.equal([limits.connections, limits.idleMs, limits.graceMs], [5, 7000, 0]);
  for (const [name, text] of [
    ['max-connections', '0'],
    ['idle-timeout', '0'],
    ['max-connections', '-1'],
    ['grace', '1s'],
    ['grace', '99999999'],
  ] as const) {
    assert.throwsWith(() => optionsOf(`--${name}=${text}`), 'USAGE', new RegExp(name));
  }
});

test('addresses that clients are sent to are plain, without a slash at the end, and hold no secret', () => {
  assert.is(plainAddress('https://cdn.example/dist/', '--redirect'), 'https://cdn.example/dist');
  for (const text of [
    'cdn.example',
    'ftp://x/',
    'https://u:p@x/',
    'https://x/?a=b',
    'https://x/#y',
    "https://x/';reboot;'",
  ]) {
    assert.throwsWith(() => plainAddress(text, '--public-url'), 'USAGE', /--public-url/);
  }
});

test('a store is needed, operands are not, and a log has one of its forms', () => {
  assert.throwsWith(() => readArguments(command, []), 'USAGE', /--store/);
  assert.throwsWith(() => optionsOf('/srv/dist'), 'USAGE', /unexpected argument/);
  assert.throwsWith(() => optionsOf('--log', 'xml'), 'USAGE', /json, text, none/);
});

test('who may post is said by a flag and a token, and the token is never told', async ({ signal }) => {
  await using box = await tree({
    token: 'a-token-of-enough-letters\n',
    short: 'secret\n',
    two: 'two words of a token\n',
  });
  const context = (env: CommandContext['env'] = {}): CommandContext => ({
    cwd: box.path,
    env,
    report: noReport,
    signal,
  });
  const token = async (env: CommandContext['env'], ...words: readonly string[]): Promise<string | undefined> =>
    tokenOf(optionsOf(...words), context(env));
  assert.is(await token({ CURLEW_SERVE_TOKEN: 'a-token-of-enough-letters' }), undefined);
  assert.is(await token({}, '--allow-post', '--token-file', 'token'), 'a-token-of-enough-letters');
  assert.is(
    await token({ CURLEW_SERVE_TOKEN: 'another-long-enough-token' }, '--allow-post'),
    'another-long-enough-token',
  );
  await assert.rejectsWith(token({}, '--token-file', 'token'), 'USAGE', /--allow-post/);
  for (const given of [[], ['--token-file', 'two'], ['--token-file', 'short']]) {
    const error = await assert.rejectsWith(token({}, '--allow-post', ...given), 'USAGE', /at least 16/);
    assert.not.match(error.message, 'secret');
  }
  await assert.rejectsWith(token({}, '--allow-post', '--token-file', 'none'), 'NOT_FOUND');
  await assert.rejectsWith(tlsOf({ tlsCert: 'token' }, context()), 'USAGE', /must be used together/);
});

/** Runs the command over `store/` of the box, and tells where it listens. */
async function listening(box: Tree, stop: AbortSignal, printed: string[], ...more: readonly string[]): Promise<string> {
  return new Promise<string>((resolve) => {
    const report: CommandContext['report'] = (event) => {
      const [, found] = event.type === 'note' ? (/ on (http:\S+)/.exec(event.text) ?? []) : [];
      if (found !== undefined) resolve(found);
    };
    const print = (line: string): void => void printed.push(line);
    const context = { cwd: box.path, env: { XDG_STATE_HOME: box.at('state') }, report, print, signal: stop };
    const args = readArguments(command, ['--store', 'store', '--listen', '127.0.0.1:0', ...more]);
    void command.run(args, context).then((totals) => {
      printed.push(command.render(totals, args, NO_PAINT));
    });
  });
}

test('it says where it listens, logs each request on its own, and ends when it is told to', async ({ signal }) => {
  await using box = await tree();
  await publishTestPackages(box, [{ name: 'a', version: '1', files: [{ path: 'x', data: 'x' }] }], signal);
  const stop = new AbortController();
  const printed: string[] = [];
  const url = await listening(box, stop.signal, printed);
  const answer = await fetch(`${url}/dist/VERSION`, { headers: { connection: 'close' } });
  assert.is(await answer.text(), 'r1');
  stop.abort();
  while (printed.length < 2) await new Promise((resolve) => setImmediate(resolve));
  const [line = '', last] = printed;
  const { path, status } = JSON.parse(line) as { readonly path: string; readonly status: number };
  assert.equal([path, status, last], ['/dist/VERSION', 200, '1 request, 2 B']);
});

test('the pages of five thousand versions need a limited amount of memory', async ({ signal }) => {
  await using box = await tree();
  await publishFiveThousand(box, signal);
  const given = ['serve', '--store', box.at('store'), '--listen', '127.0.0.1:0'];
  const running = startCurlew(given, { cwd: box.path });
  const [, url = ''] = await new Promise<RegExpExecArray>((resolve) => {
    let text = '';
    running.stderr.on('data', (data: Buffer) => {
      text += data.toString('utf8');
      const found = /serving \S+ on (http:\S+)/.exec(text);
      if (found !== null) resolve(found);
    });
  });
  const paths = ['/', '/?_page=26', '/?many=1.2499', '/addon.html?_name=many&_page=25', '/?_find=other-24'];
  for (let round = 0; round < 20; round += 1) {
    const answers = await Promise.all(
      paths.map(async (path) => fetch(url + path, { headers: { accept: 'text/html' }, signal })),
    );
    for (const answer of answers) {
      assert.is(answer.status, 200, answer.url);
      await answer.arrayBuffer();
    }
  }
  const [, kilobytes = ''] = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${running.pid}/status`, 'utf8')) ?? [];
  running.kill('SIGTERM');
  assert.is((await running).exitCode, 0);
  assert.ok(Number(kilobytes) > 0 && Number(kilobytes) <= 250_000, `${kilobytes} kB`);
});

test('a log as JSON writes control characters of what a client says of itself as escapes', async ({ signal }) => {
  await using box = await tree();
  await publishTestPackages(box, [{ name: 'a', version: '1', files: [{ path: 'x', data: 'x' }] }], signal);
  const stop = new AbortController();
  const printed: string[] = [];
  const url = await listening(box, stop.signal, printed);
  const headers = { connection: 'close', 'user-agent': 'a\u009b2Jb' };
  assert.is(await (await fetch(`${url}/dist/VERSION`, { headers })).text(), 'r1');
  stop.abort();
  while (printed.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.match(printed[0] ?? '', String.raw`"agent":"a\u009b2Jb"`);
});

test('a store that does not answer keeps no server that is told to end', async () => {
  await using box = await tree();
  await using store = await serveFiles({}, { faults: [() => ({ status: 200, sending: 'never' })] });
  const given = ['serve', '--store', `${store.url}/`, '--allow-http', '127.0.0.1', '--listen', '127.0.0.1:0'];
  const running = startCurlew(given, { cwd: box.path });
  running.stderr.on('data', (text: Buffer) => {
    if (text.includes('serving')) running.kill('SIGTERM');
  });
  const { exitCode, stdout, stderr } = await running;
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /^0 requests/);
});

test('with --key it hands out what that key has signed, and nothing of a store that another one signed', async ({
  signal,
}) => {
  const { privateKey, publicKey } = makeKeyPair(undefined);
  await using box = await tree({
    'release.pub': publicKey,
    'other.pub': makeKeyPair(undefined).publicKey,
  });
  await mkdir(box.at('store'));
  const store = createFolderStore(box.at('store'));
  const key = readPrivateKey(privateKey, 'release.key', undefined);
  const trust = { keys: [publicPart(key, 'release.key')], now: new Date(), seen: memory() };
  const signer = { key, lifetime: DAY, trust };
  await publishAs(store, 'v1', [await madePackage(box, 'a', '1.0', 'one')], signal, { signer });
  for (const [file, status] of [
    ['release.pub', 200],
    ['other.pub', 502],
  ] as const) {
    const stop = new AbortController();
    const printed: string[] = [];
    const url = await listening(box, stop.signal, printed, '--key', file);
    const answer = await fetch(`${url}/dist/v1/a-1.0.tar.gz`, { headers: { connection: 'close' } });
    await answer.arrayBuffer();
    assert.is(answer.status, status, file);
    stop.abort();
    while (printed.length < 2) await new Promise((resolve) => setImmediate(resolve));
  }
});

test.run();
