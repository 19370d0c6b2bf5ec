import { parseImageRef } from '../../../src/core/image-ref.ts';
import { createRegistryClient } from '../../../src/build/registry/client.ts';
import { isTrustedRealm } from '../../../src/build/registry/auth.ts';
import { parseChallenges } from '../../../src/build/registry/challenge.ts';
import { ANONYMOUS, createCredentials, type Credentials } from '../../../src/build/registry/credentials.ts';
import { parseDockerConfig } from '../../../src/build/registry/docker-config.ts';
import type { Http } from '../../../src/platform/http/http.ts';
import * as assert from '../../support/assert.ts';
import { collector, quickHttp } from '../../support/client.ts';
import { answers, redirects } from '../../support/faults.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { basicHeader, startRegistry, type RegistryServer } from '../../support/registry-server.ts';
import { suite } from '../../support/suite.ts';
import { serveFiles, startServer } from '../../support/web-server.ts';

const test = suite('build/registry/auth');
const LAYER = makeLayer({ a: 'a' });
const IMAGES = { 'team/app:1': makeImage([LAYER]), 'team/two:1': makeImage([LAYER], 'docker') };
const LOGIN = { username: 'user', password: 'canary-pass' } as const;

function login(host: string, { username, password } = LOGIN): Credentials {
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  return createCredentials(parseDockerConfig(JSON.stringify({ auths: { [host]: { auth } } }), 'config.json'), {});
}

async function pull(
  server: RegistryServer,
  http: Http,
  signal: AbortSignal,
  credentials: Credentials,
  trustRealms: readonly string[] = [],
): Promise<Buffer> {
  const client = createRegistryClient({ http, credentials, trustRealms });
  const { write, body } = collector();
  for (const name of ['team/app', 'team/two']) {
    const ref = parseImageRef(`${server.host}/${name}:1`);
    if (typeof ref === 'string') throw new Error(ref);
    const image = await client.resolve(ref, { platform: { os: 'linux', arch: 'amd64' }, signal });
    for (const layer of image.layers) await image.fetch(layer, { from: 0, write, signal });
  }
  return body();
}

const BOTH = Buffer.concat([LAYER.data, LAYER.data]);

test('basic: the password is sent once it was asked for', async ({ signal }) => {
  await using server = await startRegistry(IMAGES, { auth: { kind: 'basic', ...LOGIN } });
  await using http = await quickHttp();
  assert.ok((await pull(server, http, signal, login(server.host))).equals(BOTH));
  assert.is(server.log.filter(({ headers, path }) => path !== '/v2/' && !headers['authorization']).length, 1);
});

test('bearer: a token is asked for once a repository, for pulling only', async ({ signal }) => {
  const auth = { kind: 'bearer', token: 'canary-token', login: LOGIN } as const;
  await using server = await startRegistry(IMAGES, { auth });
  await using http = await quickHttp();
  assert.ok((await pull(server, http, signal, login(server.host))).equals(BOTH));
  assert.equal(
    server.log.filter(({ path }) => path.startsWith('/token')).map(({ path }) => path),
    ['team%2Fapp', 'team%2Ftwo'].map((name) => `/token?service=test&scope=repository%3A${name}%3Apull`),
  );
});

test('bearer: without credentials the token is asked for anonymously', async ({ signal }) => {
  await using server = await startRegistry(IMAGES, { auth: { kind: 'bearer', token: 'any' } });
  await using http = await quickHttp();
  assert.ok((await pull(server, http, signal, ANONYMOUS)).equals(BOTH));
});

test('bearer: a token that ran out is replaced', async ({ signal }) => {
  let times = 0;
  const auth = { kind: 'bearer', token: 'any' } as const;
  const expired = answers({ status: 401, headers: { 'www-authenticate': '' } }, { path: /blobs/, times: 1 });
  await using server = await startRegistry(IMAGES, {
    auth,
    faults: [
      (asked, regular) => {
        const reply = expired(asked, regular);
        if (reply === undefined) return undefined;
        times += 1;
        const challenge = `Bearer realm="http://${String(asked.headers['host'])}/token",service="test"`;
        return { ...reply, headers: { 'www-authenticate': challenge } };
      },
    ],
  });
  await using http = await quickHttp();
  assert.ok((await pull(server, http, signal, ANONYMOUS)).equals(BOTH));
  assert.is(times, 1);
  assert.is(server.log.filter(({ path }) => path.startsWith('/token')).length, 3);
});

test('bearer: an identity token goes into a form, never into an address', async ({ signal }) => {
  const auth = { kind: 'bearer', token: 'any', refreshToken: 'canary-refresh' } as const;
  await using server = await startRegistry(IMAGES, { auth });
  await using http = await quickHttp();
  const config = { auths: { [server.host]: { identitytoken: 'canary-refresh' } } };
  const credentials = createCredentials(parseDockerConfig(JSON.stringify(config), 'config.json'), {});
  assert.ok((await pull(server, http, signal, credentials)).equals(BOTH));
  const [asked] = server.log.filter(({ path }) => path.startsWith('/token'));
  assert.is(asked?.method, 'POST');
  assert.not.match(asked?.path ?? '', /canary/);
});

test('a wrong password is AUTH_FAILED, sent once, and in no text of the error', async ({ signal }) => {
  const basic = { kind: 'basic', ...LOGIN } as const;
  const bearer = { kind: 'bearer', token: 'any', login: LOGIN } as const;
  for (const auth of [basic, bearer]) {
    await using server = await startRegistry(IMAGES, { auth });
    await using http = await quickHttp();
    const credentials = login(server.host, { ...LOGIN, password: 'canary-wrong' as 'canary-pass' });
    const error = await assert.rejectsWith(pull(server, http, signal, credentials), 'AUTH_FAILED', /returned 401/);
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      assert.not.match(`${at.message} ${at.stack ?? ''} ${JSON.stringify(at)}`, /canary|Y2FuYXJ5/);
    }
    assert.is(
      server.log.filter(({ headers }) => headers['authorization'] === basicHeader('user', 'canary-wrong')).length,
      1,
    );
  }
});

test('a realm on another host gets no credentials: both hosts are named, and the way to allow it', async ({
  signal,
}) => {
  await using realm = await startServer(() => ({ status: 200, body: JSON.stringify({ token: 'any' }) }));
  const auth = { kind: 'bearer', token: 'any', realm: `http://localhost:${realm.port}/token` } as const;
  await using server = await startRegistry(IMAGES, { auth });
  await using http = await quickHttp();
  const refused = pull(server, http, signal, login(server.host));
  const error = await assert.rejectsWith(
    refused,
    'AUTH_FAILED',
    new RegExp(`${server.host} requests .*localhost:${realm.port}`),
  );
  assert.match(error.hint ?? '', /--trust-realm localhost/);
  assert.is(realm.log.length, 0);
  assert.ok((await pull(server, http, signal, ANONYMOUS)).equals(BOTH));
  assert.not.match(JSON.stringify(realm.log), /authorization/);
  await pull(server, http, signal, login(server.host), ['localhost']);
  assert.is(realm.log.at(-1)?.headers['authorization'], basicHeader(LOGIN.username, LOGIN.password));
});

test('a realm on another port of the same host gets no credentials, unless it is allowed by name', async ({
  signal,
}) => {
  await using realm = await startServer(() => ({ status: 200, body: JSON.stringify({ token: 'any' }) }));
  const auth = { kind: 'bearer', token: 'any', realm: `http://127.0.0.1:${realm.port}/token` } as const;
  await using server = await startRegistry(IMAGES, { auth });
  await using http = await quickHttp();
  const error = await assert.rejectsWith(
    pull(server, http, signal, login(server.host)),
    'AUTH_FAILED',
    new RegExp(`${server.host} requests .*127.0.0.1:${realm.port}, another port$`),
  );
  assert.match(error.hint ?? '', `--trust-realm 127.0.0.1:${realm.port}`);
  assert.is(realm.log.length, 0);
  await pull(server, http, signal, login(server.host), [`127.0.0.1:${realm.port}`]);
  assert.is(realm.log.at(-1)?.headers['authorization'], basicHeader(LOGIN.username, LOGIN.password));
});

for (const [base, realm, isTrusted] of [
  ['https://harbor.example.com', 'https://harbor.example.com/service/token', true],
  ['https://harbor.example.com:8443', 'https://harbor.example.com:8443/service/token', true],
  ['https://git.example.com:5050', 'https://git.example.com/jwt/auth', true],
  ['https://git.example.com', 'https://git.example.com:5050/jwt/auth', false],
  ['https://git.example.com', 'http://git.example.com/jwt/auth', false],
  ['http://git.example.com:5000', 'https://git.example.com/jwt/auth', true],
  ['https://registry-1.docker.io', 'https://auth.docker.io/token', true],
  ['https://registry-1.docker.io', 'https://auth.docker.io:5000/token', false],
  ['https://registry.gitlab.com', 'https://gitlab.com/jwt/auth', true],
  ['https://registry.example.com', 'https://auth.docker.io/token', false],
] as const) {
  test(`${base} ${isTrusted ? 'may' : 'may not'} have its credentials sent to ${realm}`, () => {
    assert.is(isTrustedRealm(new URL(realm), new URL(base), []), isTrusted);
  });
}

for (const realm of ['http://plain.test/token', 'https://user:canary@h/token', 'file:///etc/passwd', 'x', '']) {
  test(`the realm "${realm}" is refused`, async ({ signal }) => {
    await using server = await startRegistry(IMAGES, { auth: { kind: 'bearer', token: 'any', realm } });
    await using http = await quickHttp();
    try {
      await pull(server, http, signal, ANONYMOUS);
      assert.unreachable();
    } catch (error) {
      assert.match((error as { code?: string }).code ?? '', /AUTH_FAILED|FETCH_FAILED/);
      assert.not.match((error as Error).message, /canary/);
    }
  });
}

test('a realm that redirects to another host does not carry the password there', async ({ signal }) => {
  await using thief = await startServer(() => ({ status: 200, body: JSON.stringify({ token: 'any' }) }));
  const auth = { kind: 'bearer', token: 'any', login: LOGIN } as const;
  const faults = [redirects(`http://localhost:${thief.port}/`, { path: /^\/token/ })];
  await using server = await startRegistry(IMAGES, { auth, faults });
  await using http = await quickHttp();
  await pull(server, http, signal, login(server.host));
  assert.is(thief.log.length, 2);
  assert.not.match(JSON.stringify(thief.log), /canary|Y2FuYXJ5|authorization/);
});

test('a layer that redirects to another host arrives there without the token', async ({ signal }) => {
  await using store = await serveFiles({ layer: LAYER.data });
  const faults = [redirects(`http://localhost:${store.port}/layer`, { path: new RegExp(LAYER.digest) })];
  await using server = await startRegistry(IMAGES, { auth: { kind: 'bearer', token: 'canary-token' }, faults });
  await using http = await quickHttp();
  assert.ok((await pull(server, http, signal, ANONYMOUS)).equals(BOTH));
  assert.is(store.log.length, 2);
  assert.not.match(JSON.stringify(store.log), /canary|authorization/);
});

for (const body of [
  '{"token":"","access_token":"any"}',
  '{"token":null,"access_token":"any"}',
  '{"token":"any","access_token":""}',
]) {
  test(`the token in ${body} is used`, async ({ signal }) => {
    const faults = [answers({ status: 200, body }, { path: /^\/token/ })];
    await using server = await startRegistry(IMAGES, { auth: { kind: 'bearer', token: 'any' }, faults });
    await using http = await quickHttp();
    assert.ok((await pull(server, http, signal, ANONYMOUS)).equals(BOTH));
  });
}

test('each repository gets the password of its own path, and no other one', async ({ signal }) => {
  await using server = await startRegistry(IMAGES, { auth: { kind: 'basic', ...LOGIN } });
  await using http = await quickHttp();
  assert.ok((await pull(server, http, signal, login(`${server.host}/team`))).equals(BOTH));
  await using other = await startRegistry(IMAGES, { auth: { kind: 'basic', ...LOGIN } });
  await assert.rejectsWith(pull(other, http, signal, login(`${other.host}/team/two`)), 'AUTH_FAILED', /team\/app/);
  assert.is(other.log.filter(({ headers }) => headers['authorization'] !== undefined).length, 0);
});

for (const body of ['', '{}', '{"token":5}', '{"token":"a\\nb"}', `{"token":"${'x'.repeat(300_000)}"}`]) {
  test(`a token service that answers ${JSON.stringify(body.slice(0, 20))} is an error`, async ({ signal }) => {
    const faults = [answers({ status: 200, body }, { path: /^\/token/ })];
    await using server = await startRegistry(IMAGES, { auth: { kind: 'bearer', token: 'any' }, faults });
    await using http = await quickHttp();
    try {
      await pull(server, http, signal, ANONYMOUS);
      assert.unreachable();
    } catch (error) {
      assert.match((error as { code?: string }).code ?? '', /AUTH_FAILED|FETCH_FAILED/);
    }
  });
}

const challenges = [
  ['Bearer realm="https://a/t",service="s",scope="repository:a:pull,push"', ['bearer']],
  ['bearer realm=https', ['bearer']],
  ['Basic realm="a \\"quoted\\" one"', ['basic']],
  ['Basic', ['basic']],
  ['Basic realm=/', ['basic']],
  ['Bearer realm=https://a/t,service=s', ['bearer']],
  ['Negotiate, Basic realm="x", Bearer realm="y",service="z"', ['basic', 'bearer']],
  ['Digest realm="x", nonce="y"', []],
  ['', []],
] as const;
for (const [header, schemes] of challenges) {
  test(`the challenge ${header} is read`, () => {
    assert.equal(
      parseChallenges(header)?.map(({ scheme }) => scheme),
      schemes,
    );
  });
}
for (const header of [
  'Bearer realm="open',
  'Bearer realm="a" realm="b"',
  'Bearer realm="a",realm="b"',
  'Bearer realm="a\u0001"',
  '"Bearer"',
  'Bearer realm="a",=x',
  `Bearer ${'x="y",'.repeat(5000)}`,
  Array.from({ length: 40 }, (_, index) => `a${index}="b"`).join(','),
]) {
  test(`the challenge ${header.slice(0, 40)} is not half-read`, () => assert.is(parseChallenges(header), undefined));
}

test.run();
