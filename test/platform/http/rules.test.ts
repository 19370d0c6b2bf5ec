import { checkedAddress, checkNamedBy, isInternalAddress, isLoopbackHost } from '../../../src/platform/http/address.ts';
import { proxyFor, proxyToken } from '../../../src/platform/http/proxy.ts';
import { pauseMs, retryAfterMs } from '../../../src/platform/http/retry.ts';
import { brokenOutcome, serverMessage } from '../../../src/platform/http/failure.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('net/rules');
test('a host name that no DNS server answers for has a hint, as one that does not exist', () => {
  for (const [code, hint] of [
    ['EAI_AGAIN', 'check the network, its DNS servers, and HTTPS_PROXY if there is a proxy'],
    ['ENOTFOUND', 'check the name, the network, and HTTPS_PROXY if there is a proxy'],
  ] as const) {
    const thrown = Object.assign(new Error('getaddrinfo'), { code });
    const outcome = brokenOutcome('fetch it', new URL('https://h.example/'), undefined, thrown);
    assert.is(outcome.kind === 'broken' ? outcome.error.hint : undefined, hint);
  }
});

const NONE = { allowHttp: new Set<string>() };

for (const host of ['127.0.0.1', '127.9.8.7', 'localhost', '[::1]', 'a.localhost']) {
  test(`${host} is this machine`, () => assert.ok(isLoopbackHost(host)));
}
for (const host of ['127.0.0.1.example.com', 'localhost.example.com', '128.0.0.1', '[::2]']) {
  test(`${host} is not this machine`, () => assert.not.ok(isLoopbackHost(host)));
}
const IN_CLOUDS = [
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  'fd00:ec2::254',
  '[fd00:ec2::23]',
  'fd20:ce::254',
];
/** IPv4 in the forms of translators and tunnels. */
const EMBEDDED = [
  '64:ff9b::127.0.0.1',
  '[64:ff9b::a9fe:a9fe]',
  '64:ff9b:1::a9fe:a9fe',
  '::127.0.0.1',
  '2002:a9fe:a9fe::1',
];
const HERE = ['127.0.0.1', '169.254.169.254', '0.0.0.0', '::1', '::', 'fe80::1', 'fe80::1%eth0', '::ffff:127.0.0.1'];
for (const address of [...HERE, ...IN_CLOUDS, ...EMBEDDED]) {
  test(`${address} is internal`, () => assert.ok(isInternalAddress(address)));
}
const ELSEWHERE = [
  '10.0.0.1',
  '8.8.8.8',
  '2001:db8::1',
  '::ffff:8.8.8.8',
  'example.com',
  '100.100.100.201',
  '192.0.0.1',
];
for (const address of [...ELSEWHERE, '64:ff9b::8.8.8.8', '2002:808:808::1', 'fd00::1', 'fec0::1']) {
  test(`${address} is not internal`, () => assert.not.ok(isInternalAddress(address)));
}

test('plain http goes to this machine and to hosts allowed by name only', () => {
  const allowed = { allowHttp: new Set(['one.test', 'two.test:8080']) };
  assert.is(checkedAddress('http://one.test:99/x', undefined, 'fetch', allowed).host, 'one.test:99');
  assert.is(checkedAddress('http://two.test:8080/', undefined, 'fetch', allowed).host, 'two.test:8080');
  assert.is(checkedAddress('http://127.0.0.1:1/', undefined, 'fetch', NONE).port, '1');
  const error = assert.throwsWith(
    () => checkedAddress('http://two.test/', undefined, 'fetch x', allowed),
    'FETCH_FAILED',
    /^cannot fetch x: plain http to two\.test is not allowed/,
  );
  assert.match(error.hint ?? '', /--allow-http two\.test/);
});

for (const address of ['file:///etc/passwd', 'ftp://h/x', 'data:,x', 'nonsense', 'http://', 'javascript:1']) {
  test(`${address} is no address to fetch from`, () => {
    assert.throwsWith(() => checkedAddress(address, undefined, 'fetch', NONE), 'FETCH_FAILED');
  });
}

test('an answer from outside may not point to this machine or its link', () => {
  const from = new URL('https://registry.example.com/');
  for (const to of [
    'https://localhost/',
    'https://169.254.169.254/latest',
    'https://[::1]:2/',
    'https://2130706433/',
  ]) {
    assert.throwsWith(() => checkNamedBy(from, new URL(to), 'fetch', NONE), 'FETCH_FAILED', /loopback, link-local/);
  }
  assert.is(checkNamedBy(from, new URL('https://cdn.example.com/'), 'fetch', NONE), true);
  assert.is(checkNamedBy(from, new URL('https://registry.example.com:8443/'), 'fetch', NONE), false);
  assert.is(checkNamedBy(new URL('http://127.0.0.1:5000/'), new URL('http://localhost:2/'), 'fetch', NONE), false);
});

const ENV = { HTTPS_PROXY: 'http://user:p%40ss@proxy.test:3128', http_proxy: 'other.test:8080' };
const proxies: readonly (readonly [address: string, noProxy: string, proxy: string | undefined])[] = [
  ['https://a.test/', '', 'proxy.test:3128'],
  ['http://a.test/', '', 'other.test:8080'],
  ['https://a.test/', 'b.test,a.test', undefined],
  ['https://x.a.test/', 'a.test', undefined],
  ['https://x.a.test/', '.a.test', undefined],
  ['https://x.a.test/', '*.a.test', undefined],
  ['https://xa.test/', 'a.test', 'proxy.test:3128'],
  ['https://a.test/', 'a.test:443', undefined],
  ['https://a.test/', 'a.test:8443', 'proxy.test:3128'],
  ['https://a.test:8443/', 'a.test:8443', undefined],
  ['https://a.test/', '*', undefined],
  ['https://127.0.0.1/', '', undefined],
  ['https://[::1]/', '', undefined],
  ['https://10.1.2.3/', '10.1.2.3', undefined],
  ['https://10.1.2.3:5000/', 'a.test, 10.0.0.0/8', undefined],
  ['https://11.1.2.3/', '10.0.0.0/8', 'proxy.test:3128'],
  ['https://[fd00::1]/', 'fd00::/8', undefined],
  ['https://[fd00::1]/', '10.0.0.0/8', 'proxy.test:3128'],
  ['https://10.1.2.3/', '10.0.0.0/33,10.0.0.0/,/8,x/8', 'proxy.test:3128'],
  ['https://a.test/', '0.0.0.0/0', 'proxy.test:3128'],
];
for (const [address, noProxy, expected] of proxies) {
  test(`${address} with NO_PROXY="${noProxy}" goes ${expected ?? 'directly'}`, () => {
    assert.is(proxyFor(new URL(address), { ...ENV, NO_PROXY: noProxy })?.host, expected);
  });
}

test('lower-case proxy variables win, and empty ones mean none', () => {
  const url = new URL('https://a.test/');
  assert.is(proxyFor(url, { https_proxy: 'http://low:1', HTTPS_PROXY: 'http://up:2' })?.host, 'low:1');
  assert.is(proxyFor(url, { HTTPS_PROXY: '' }), undefined);
});

test("a proxy's user info is decoded, and a proxy that is no address is refused without showing it", () => {
  assert.is(proxyToken(new URL('http://user:p%40ss@h')), `Basic ${Buffer.from('user:p@ss').toString('base64')}`);
  const error = assert.throwsWith(
    () => proxyFor(new URL('https://a.test/'), { HTTPS_PROXY: 'socks5://me:canary-secret@h:1' }),
    'USAGE',
  );
  assert.not.match(error.message, /canary/);
});

test('Retry-After is read as seconds or a date; anything else is none', () => {
  const now = Date.parse('Sun, 06 Nov 1994 08:49:00 GMT');
  assert.is(retryAfterMs('7', now), 7000);
  assert.is(retryAfterMs('Sun, 06 Nov 1994 08:49:37 GMT', now), 37_000);
  assert.is(retryAfterMs('Sun, 06 Nov 1994 08:00:00 GMT', now), 0);
  for (const text of ['-1', '1e9', 'soon', '', '99999999999999']) assert.is(retryAfterMs(text, now), undefined);
});

test('pauses double up to a cap, whatever the server asks for', () => {
  const policy = { attempts: 5, baseMs: 100, capMs: 3000 };
  for (const [attempt, least] of [
    [1, 100],
    [2, 200],
    [3, 400],
  ] as const) {
    const ms = pauseMs(attempt, undefined, policy, 0);
    assert.ok(ms >= least && ms <= 2 * least, `${ms}`);
  }
  const head = { status: 429, headers: { 'retry-after': '86400' }, url: '' };
  assert.is(pauseMs(1, head, policy, 0), 3000);
});

test("a server's words are cut, made visible, and never repeat a secret", () => {
  const head = { status: 500, headers: { 'content-type': 'text/plain' }, url: '' };
  const text = `bad \u001b[31m canary-pass ${'x'.repeat(1000)}`;
  const said = serverMessage(head, Buffer.from(text), ['canary-pass']) ?? '';
  assert.ok(said.length < 310);
  assert.match(said, /^bad \\u001b\[31m \[secret\] x/);
  const html = { ...head, headers: { 'content-type': 'text/html' } };
  assert.is(serverMessage(html, Buffer.from('<html>'), []), undefined);
});

test.run();
