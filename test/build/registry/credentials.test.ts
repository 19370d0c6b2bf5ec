import { readFile } from 'node:fs/promises';
import { inspect } from 'node:util';
import { createCredentials, dockerConfigPath, readDockerConfig } from '../../../src/build/registry/credentials.ts';
import { hostKey, NO_CONFIG, parseDockerConfig, type Credential } from '../../../src/build/registry/docker-config.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('build/registry/credentials');
const AUTH = Buffer.from('user:canary-pass').toString('base64');

function revealed(credential: Credential | undefined): readonly string[] | undefined {
  if (credential === undefined) return undefined;
  if (credential.kind === 'identity-token') return ['token', credential.token.reveal()];
  return [credential.username, credential.password.reveal()];
}

const spellings = ['https://index.docker.io/v1/', 'docker.io', 'index.docker.io', 'registry-1.docker.io'];
for (const spelling of spellings) {
  test(`credentials under ${spelling} are Docker Hub's`, async ({ signal }) => {
    const config = parseDockerConfig(JSON.stringify({ auths: { [spelling]: { auth: AUTH } } }), 'config.json');
    const credentials = createCredentials(config, {});
    assert.equal(revealed(await credentials.find('docker.io', { signal })), ['user', 'canary-pass']);
  });
}

test("docker's own key wins over other spellings", () => {
  const other = Buffer.from('other:x').toString('base64');
  const auths = { 'docker.io': { auth: other }, 'https://index.docker.io/v1/': { auth: AUTH } };
  assert.equal(revealed(parseDockerConfig(JSON.stringify({ auths }), 'c').auths.get('docker.io')), [
    'user',
    'canary-pass',
  ]);
});

test('keys are hosts with or without scheme and path, with their ports', () => {
  assert.is(hostKey('https://Quay.io/v2/'), 'quay.io');
  assert.is(hostKey('http://127.0.0.1:5000'), '127.0.0.1:5000');
  assert.not.equal(hostKey('quay.io:8443'), hostKey('quay.io'));
});

test('passwords may hold colons, be given in the clear, or be a token', () => {
  const auth = Buffer.from('user:a:b\u0000\u0000').toString('base64');
  const auths = {
    one: { auth },
    two: { username: 'u', password: 'p' },
    three: { auth: AUTH, identitytoken: 'canary' },
    four: { auth: 'bm9jb2xvbg==' },
    five: {},
    six: 7,
  };
  const config = parseDockerConfig(JSON.stringify({ auths }), 'c');
  assert.equal(revealed(config.auths.get('one')), ['user', 'a:b']);
  assert.equal(revealed(config.auths.get('two')), ['u', 'p']);
  assert.equal(revealed(config.auths.get('three')), ['token', 'canary']);
  assert.equal([...config.auths.keys()], ['one', 'two', 'three']);
});

test('credentials can be neither printed nor serialised', () => {
  const config = parseDockerConfig(JSON.stringify({ auths: { h: { auth: AUTH } } }), 'c');
  const credential = config.auths.get('h');
  assert.not.match(`${inspect(config, { depth: 9 })}${JSON.stringify(credential)}`, /canary/);
  assert.is(credential?.kind === 'password' ? credential.password.toString() : '', '[secret]');
});

test('a file that is no JSON is AUTH_FAILED without a word of its content; one that is missing is empty', async () => {
  await using files = await tree({ 'bad/config.json': '{"auths":{"h":{"auth":"canary"' });
  const error = await assert.rejectsWith(
    readDockerConfig({ DOCKER_CONFIG: files.at('bad') }),
    'AUTH_FAILED',
    /not JSON/,
  );
  assert.not.match(`${error.message}${inspect(error)}`, /canary/);
  assert.equal(await readDockerConfig({ HOME: files.at('none') }), NO_CONFIG);
  assert.equal(await readDockerConfig({}), NO_CONFIG);
  assert.is(dockerConfigPath({ HOME: '/h' }), '/h/.docker/config.json');
  assert.is(dockerConfigPath({ HOME: '/h', DOCKER_CONFIG: '/d' }), '/d/config.json');
});

test('the longest path that contains a repository wins, and no other path counts', async ({ signal }) => {
  const entries = {
    'https://reg.test/v2/': 'host',
    'reg.test/team': 'team',
    'reg.test/team/app/': 'app',
    'docker.io/library': 'library',
    'only.test/other': 'other',
  };
  const auths = Object.fromEntries(
    Object.entries(entries).map(([key, username]) => [key, { username, password: 'canary-pass' }]),
  );
  const credentials = createCredentials(parseDockerConfig(JSON.stringify({ auths }), 'c'), {});
  for (const [scope, username] of [
    ['reg.test/team/app', 'app'],
    ['reg.test/team/app/sub', 'app'],
    ['reg.test/team/application', 'team'],
    ['reg.test/teams/app', 'host'],
    ['docker.io/library/nginx', 'library'],
    ['docker.io/team/app', undefined],
    ['only.test/team/app', undefined],
    ['only.test', undefined],
  ] as const) {
    assert.is(revealed(await credentials.find(scope, { signal }))?.[0], username, scope);
  }
});

test('a helper of a path is asked for that path, and the default helper only for hosts', async ({ signal }) => {
  await using files = await tree({ 'bin/docker-credential-test': HELPER, log: '' });
  const env = { PATH: `${files.at('bin')}:/usr/bin:/bin`, LOG: files.at('log') };
  const config = { credsStore: 'test', credHelpers: { 'none.test/team': 'test' } };
  const credentials = createCredentials(parseDockerConfig(JSON.stringify(config), 'c'), env);
  assert.equal(revealed(await credentials.find('none.test/team/app', { signal })), ['team', 'canary-team']);
  assert.equal(revealed(await credentials.find('good.test/team/app', { signal })), ['user', 'canary-pass']);
  assert.is(await readFile(files.at('log'), 'utf8'), 'get none.test/team\nget good.test\n');
});

const HELPER = `#!/bin/bash
read -r host
printf '%s %s\\n' "$1" "$host" >>"$LOG"
case $host in
  good.test) printf '{"ServerURL":"x","Username":"user","Secret":"canary-pass"}' ;;
  none.test/team) printf '{"Username":"team","Secret":"canary-team"}' ;;
  token.test) printf '{"Username":"<token>","Secret":"canary-token"}' ;;
  https://index.docker.io/v1/) printf '{"Username":"hub","Secret":"canary-hub"}' ;;
  none.test) printf 'credentials not found in native keychain\\n'; exit 1 ;;
  broken.test) printf 'canary on stdout'; echo 'locked' >&2; exit 3 ;;
  endless.test) while :; do printf canarycanarycanarycanarycanarycanarycanarycanarycanary; done ;;
  text.test) printf 'canary' ;;
esac
`;

test('helpers are asked once a host, with the host as docker spells it', async ({ signal }) => {
  await using files = await tree({ 'bin/docker-credential-test': HELPER, log: '' });
  const env = { PATH: `${files.at('bin')}:/usr/bin:/bin`, LOG: files.at('log') };
  const text = JSON.stringify({ credsStore: 'test', auths: { 'none.test': { auth: AUTH } } });
  const credentials = createCredentials(parseDockerConfig(text, 'c'), env);
  for (let times = 0; times < 2; times += 1) {
    assert.equal(revealed(await credentials.find('good.test', { signal })), ['user', 'canary-pass']);
  }
  assert.equal(revealed(await credentials.find('token.test', { signal })), ['token', 'canary-token']);
  assert.equal(revealed(await credentials.find('docker.io', { signal })), ['hub', 'canary-hub']);
  assert.equal(revealed(await credentials.find('none.test', { signal })), ['user', 'canary-pass']);
  const log = await readFile(files.at('log'), 'utf8');
  assert.equal(log.trim().split('\n'), [
    'get good.test',
    'get token.test',
    'get https://index.docker.io/v1/',
    'get none.test',
  ]);
});

for (const [host, why] of [
  ['broken.test', /it exited with 3 \(locked\)$/],
  ['endless.test', /more than 262144 bytes of output$/],
  ['text.test', /its output is not JSON$/],
] as const) {
  test(`a helper that fails for ${host} is AUTH_FAILED and what it printed stays hidden`, async ({ signal }) => {
    await using files = await tree({ 'bin/docker-credential-test': HELPER, log: '' });
    const env = { PATH: `${files.at('bin')}:/usr/bin:/bin`, LOG: files.at('log') };
    const config = parseDockerConfig(JSON.stringify({ credHelpers: { [host]: 'test' } }), 'c');
    const error = await assert.rejectsWith(createCredentials(config, env).find(host, { signal }), 'AUTH_FAILED', why);
    assert.not.match(inspect(error, { depth: 9 }), /canary/);
  });
}

test('a helper that is not installed is AUTH_FAILED with its name', async ({ signal }) => {
  const config = parseDockerConfig(JSON.stringify({ credsStore: 'missing' }), 'c');
  const credentials = createCredentials(config, { PATH: '/nonexistent' });
  await assert.rejectsWith(
    credentials.find('h', { signal }),
    'AUTH_FAILED',
    /docker-credential-missing .*: it is not installed$/,
  );
});

for (const name of ['../x', 'a b', '/bin/sh', 'a;b', '-x', 'x'.repeat(100)]) {
  test(`"${name.slice(0, 20)}" is no name of a helper`, () => {
    assert.throwsWith(() => parseDockerConfig(JSON.stringify({ credsStore: name }), 'c'), 'AUTH_FAILED');
    assert.throwsWith(() => parseDockerConfig(JSON.stringify({ credHelpers: { h: name } }), 'c'), 'AUTH_FAILED');
  });
}

test.run();
