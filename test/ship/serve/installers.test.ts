import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { memorySource } from '../../../src/formats/archive/read.ts';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, specOf } from '../../support/bundles.ts';
import { cleanEnvironment } from '../../support/curlew.ts';
import { archiveOf } from '../../support/packages.ts';
import { keepSpec, rawRequest, serveStore } from '../../support/served.ts';
import { missing, unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/serve/installers');
const withCurl = unless(missing('curl'), test);

const TOKEN = 'correct-horse-battery';
const PACKAGES = [{ name: 'alpha', version: '1.0', files: [{ path: 'install.sh', data: 'alpha() { :; }\n' }] }];

async function scene(signal: AbortSignal) {
  const box = await tree();
  return { box, store: await publishTestPackages(box, PACKAGES, signal) };
}

interface Posted {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function post(url: string, body: string | Uint8Array, token?: string): Promise<Posted> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(url, { method: 'POST', body, headers });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

test('a spec that is posted gets the id of kURL, stays, and is handed back as it was', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store, { listen: { token: TOKEN } });
  const spec = specOf({ alpha: 'latest' });
  const first = await post(`${server.url}/installer`, spec, TOKEN);
  assert.is(first.status, 201);
  const id = first.headers.get('x-kurl-hash') ?? '';
  assert.match(id, /^[0-9a-f]{7}$/);
  assert.is(first.text, `${server.url}/${id}\n`);
  const again = await post(`${server.url}/installer`, spec.replace('name: test', 'name: other'), TOKEN);
  assert.equal([again.status, again.headers.get('x-kurl-hash')], [200, id]);
  assert.is(await (await fetch(`${server.url}/installer/${id}`)).text(), spec);
  assert.is(await readFile(box.at('store/installers', `${id}.yaml`), 'utf8'), spec);
  assert.match(await (await fetch(`${server.url}/installer/${id}?resolve`)).text(), /version: "?1\.0/);
  assert.is((await fetch(`${server.url}/bundle/${id}.tar.gz`, { method: 'HEAD' })).status, 200);
  const publicUrl = 'https://addons.example/curlew';
  await using behind = await serveStore(store, { listen: { token: TOKEN, publicUrl } });
  const known = await post(`${behind.url}/installer`, spec, TOKEN);
  assert.equal([known.headers.get('location'), known.text], [`/curlew/installer/${id}`, `${publicUrl}/${id}\n`]);
});

test('a spec whose settings the packages refuse is refused with the reasons, unless the server allows it', async ({
  signal,
}) => {
  await using box = await tree();
  const settings = { required: ['size'], properties: { version: {}, size: { type: 'integer' } } };
  const alpha = { name: 'alpha', version: '1.0', files: [{ path: 'install.sh', data: '' }], extra: { settings } };
  const store = await publishTestPackages(box, [alpha], signal);
  const spec = `${specOf({})}  alpha:\n    version: latest\n    size: big\n  `;
  await keepSpec(box, 'kept', spec);
  await using strict = await serveStore(store, { listen: { token: TOKEN } });
  for (const path of ['installer', 'installer/validate']) {
    const refused = await post(`${strict.url}/${path}`, spec, TOKEN);
    assert.is(refused.status, 422);
    assert.match(refused.text, /:7:5 error installer\/schema: alpha\.size must be a whole number, but is "big"$/m);
  }
  const bundle = await fetch(`${strict.url}/bundle/kept.tar.gz`);
  assert.is(bundle.status, 422);
  assert.match(
    await bundle.text(),
    'kept.yaml:7:5 error installer/schema: alpha.size must be a whole number, but is "big"',
  );
  await using lax = await serveStore(store, { listen: { token: TOKEN }, site: { allowInvalidSettings: true } });
  assert.is((await post(`${lax.url}/installer`, spec, TOKEN)).status, 201);
  assert.is((await fetch(`${lax.url}/bundle/kept.tar.gz`, { method: 'HEAD' })).status, 200);
});

test('a pattern of a package that takes too long for a posted spec is ended, and others are answered', async ({
  signal,
}) => {
  await using box = await tree();
  const settings = { properties: { size: { pattern: '^(a+)+$' } } };
  const alpha = { name: 'alpha', version: '1.0', files: [{ path: 'install.sh', data: '' }], extra: { settings } };
  const store = await publishTestPackages(box, [alpha], signal);
  await using server = await serveStore(store, { listen: { token: TOKEN } });
  const spec = `${specOf({})}  alpha:\n    version: latest\n    size: ${'a'.repeat(40)}!\n`;
  const posted = post(`${server.url}/installer`, spec, TOKEN);
  assert.is((await fetch(`${server.url}/healthz`)).status, 200);
  const { status, text } = await posted;
  assert.is(status, 422);
  assert.match(text, 'cannot validate the settings of alpha');
});

test('nothing can be posted without leave, without the token, or with another one', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  const spec = specOf({ alpha: 'latest' });
  await using closed = await serveStore(store);
  assert.is((await post(`${closed.url}/installer`, spec, TOKEN)).status, 403);
  await using open = await serveStore(store, { listen: { token: TOKEN } });
  for (const token of [undefined, 'x', `${TOKEN}x`, TOKEN.slice(1)]) {
    const answer = await post(`${open.url}/installer`, spec, token);
    assert.equal([answer.status, answer.headers.get('www-authenticate')], [401, 'Bearer'], token);
  }
});

test('what is no spec, what the release lacks and what is too large are refused, and nothing is kept', async ({
  signal,
}) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await using server = await serveStore(store, { listen: { token: TOKEN }, limits: { body: 10_000 } });
  const address = `${server.url}/installer`;
  for (const [body, status, what] of [
    ['kind: [', 422, /:\d+:\d+ error/],
    ['', 422, /^the request body is not a valid installer spec/],
    [Buffer.from([0xff, 0xfe]), 422, /UTF-8/],
    [specOf({ alhpa: '1.0' }), 422, /did you mean alpha/],
    [specOf({ alpha: '9.9' }), 422, /9\.9/],
    [`# ${'x'.repeat(20_000)}\n${specOf({ alpha: '1.0' })}`, 413, /10000/],
  ] as const) {
    const answer = await post(address, body, TOKEN);
    assert.is(answer.status, status, String(body).slice(0, 40));
    assert.match(answer.text, what);
  }
  const endless = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(new Uint8Array(5000)) });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const cut = await fetch(address, { method: 'POST', body: endless, headers, duplex: 'half' }).then(
    ({ status }) => status,
    () => 413,
  );
  assert.is(cut, 413);
  assert.is((await post(`${address}/validate`, specOf({ alpha: '1.0' }), TOKEN)).status, 200);
  assert.not.ok(existsSync(box.at('store/installers')));
});

test('a hostile name in Host never reaches a script', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await keepSpec(box, 'one', specOf({ alpha: 'latest' }));
  await using server = await serveStore(store);
  for (const host of ["x';reboot;'", '$(reboot)', 'a b', 'x/y', 'user@x', '`id`', 'x\\', '"']) {
    const answer = await rawRequest(server.port, `GET /one HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 400 /, host);
  }
  await using known = await serveStore(store, { listen: { publicUrl: 'https://addons.example/curlew' } });
  assert.match(await (await fetch(`${known.url}/one`)).text(), "'https://addons.example/curlew'");
});

test('a script that was cut off anywhere runs nothing, and a spec in it is text whatever it says', async ({
  signal,
}) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  const spec = `${specOf({ alpha: 'latest' })}# $(touch ran) \`touch ran\` ' " \\\n# EOF\n# CURLEW_\n`;
  await keepSpec(box, 'one', spec);
  await using server = await serveStore(store);
  const text = await (await fetch(`${server.url}/one/install.sh`)).text();
  const marked = text.replace(/^curlew_start .*$/m, 'touch ran');
  const end = marked.indexOf('touch ran', marked.lastIndexOf('}'));
  for (let length = 0; length < end; length += 97) {
    await execa('bash', { input: marked.slice(0, length), cwd: box.path, reject: false });
  }
  assert.not.ok(existsSync(box.at('ran')));
  const shown = await execa('bash', { input: text.replace(/^curlew_start .*$/m, 'curlew_spec'), cwd: box.path });
  assert.is(`${shown.stdout}\n`, spec);
});

withCurl('the script brings a curlew of the right sum, and refuses another one', async ({ signal }) => {
  const { box, store } = await scene(signal);
  await using _ = box;
  await keepSpec(box, 'one', specOf({ alpha: 'latest' }));
  const program = '#!/bin/sh\nprintf "%s\\n" "$@"\ncat\n';
  const tool = archiveOf([{ path: 'bin/curlew', mode: 0o755, data: program }]);
  const executable = async () => ({ source: memorySource('tool', tool.bytes), index: tool.plan.index });
  await using server = await serveStore(store, { site: { executable } });
  const cache = box.at('cache');
  const env = cleanEnvironment({ cwd: box.path, env: { CURLEW_CACHE: cache } });
  const run = async (
    script: string,
    words = '',
  ): Promise<{ readonly exitCode?: number; readonly stdout: string; readonly stderr: string }> =>
    execa('setsid', ['bash', '-c', `curl -fsS ${server.url}/one/${script} | bash -s -- ${words}`], {
      env,
      extendEnv: false,
      reject: false,
    });
  const first = await run('install.sh', '--root /tmp/x ha');
  const [verb, ...rest] = first.stdout.split('\n');
  assert.is(verb, 'install', first.stderr);
  assert.equal(rest.slice(0, 4), ['--from', `${server.url}/dist`, '--release', 'r1']);
  assert.is(await readFile(rest[5] ?? '', 'utf8'), specOf({ alpha: 'latest' }));
  assert.match(first.stdout, /--allow-http\n127\.0\.0\.1:\d+\n--root\n\/tmp\/x\nha/);
  assert.match((await run('tasks.sh', 'load-images --help')).stdout, /^load-images\n--help/);
  assert.match((await run('join.sh')).stdout, /^join\n/);
  // What lies in the cache is proved each time.
  const [sum = ''] = /[0-9a-f]{64}/.exec(rest[5] ?? '') ?? [];
  await writeFile(`${cache}/${sum}/bin/curlew`, '#!/bin/sh\necho other\n');
  assert.match((await run('join.sh')).stdout, /^join\n/);
  // A name beside it that could be guessed is not touched, whoever has made what lies there.
  await rm(`${cache}/${sum}`, { recursive: true });
  const guess = `mkdir "$0.part.$$" && touch "$0.part.$$/theirs" && exec bash -s`;
  const planted = await execa('setsid', ['--wait', 'bash', '-c', guess, `${cache}/${sum}`], {
    input: await (await fetch(`${server.url}/one/join.sh`)).text(),
    env,
    extendEnv: false,
  });
  assert.match(planted.stdout, /^join\n/);
  const parts = (await readdir(cache)).filter((name) => name.includes('.part.'));
  assert.equal([parts.length, await readdir(`${cache}/${parts[0]}`)], [1, ['theirs']]);
  const bent = await (await fetch(`${server.url}/one/install.sh`)).text();
  const refused = await execa('bash', {
    input: bent.replaceAll(sum, 'a'.repeat(64)),
    env,
    extendEnv: false,
    reject: false,
  });
  assert.is(refused.exitCode, 15);
  assert.match(refused.stderr, /is not the curlew that this script was made for/);
});

test.run();
