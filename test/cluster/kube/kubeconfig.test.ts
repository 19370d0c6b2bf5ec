import { currentContext, parseKubeconfig, type KubeContext } from '../../../src/cluster/kube/kubeconfig.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/kube/kubeconfig');

const CLUSTER = { server: 'https://10.0.0.1:6443' };

const EXEC = { apiVersion: 'client.authentication.k8s.io/v1', command: 'x' };

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly rest?: object;
}

function textOf({ cluster = CLUSTER, user = {}, context = {}, rest = {} }: Parts): string {
  return JSON.stringify({
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
    'current-context': 'x',
    ...rest,
  });
}

function contextOf(...texts: readonly string[]): KubeContext | undefined {
  const files = texts.map((text, at) => ({ path: `/etc/${at}/conf`, text }));
  return currentContext(files.map(({ path, text }) => ({ ...parseKubeconfig(path, text), path })));
}

function shownIn(material: unknown): unknown {
  if (typeof material !== 'object' || material === null) return material;
  return 'value' in material ? (material.value as { reveal: () => string }).reveal() : material;
}

test('the current context leads to its cluster and its user, and says the namespace', () => {
  const context = contextOf(textOf({ context: { namespace: 'kurl' }, user: { token: 't' } }));
  assert.is(context?.server.href, 'https://10.0.0.1:6443/');
  assert.equal([context?.namespace, context?.insecure, context?.user?.name], ['kurl', false, 'u']);
  assert.is(shownIn(context?.user?.token), 't');
  assert.is(contextOf(textOf({}))?.namespace, 'default');
});

test('of several files the first that says something counts, entry by entry', () => {
  const other = textOf({ cluster: { server: 'https://second' }, user: { token: 'second' } });
  const first = JSON.stringify({ users: [{ name: 'u', user: { token: 'first' } }], 'current-context': '' });
  const context = contextOf(first, '', other);
  assert.equal([context?.server.host, shownIn(context?.user?.token)], ['second', 'first']);
  assert.is(contextOf(textOf({}), other)?.server.host, '10.0.0.1:6443');
});

test('files that name no current context say nothing', () => {
  assert.is(contextOf(), undefined);
  assert.is(contextOf('', '# nothing\n'), undefined);
  assert.is(contextOf(textOf({ rest: { 'current-context': '' } })), undefined);
});

test('paths are relative to the file that names them, and what stands in the file itself goes first', () => {
  const user = { 'client-certificate': 'pki/me.crt', 'client-key': '/abs/me.key', tokenFile: '../token' };
  const context = contextOf('', textOf({ user, cluster: { ...CLUSTER, 'certificate-authority': 'ca.crt' } }));
  assert.equal(
    [context?.authority, context?.user?.certificate, context?.user?.key, context?.user?.token],
    [
      { path: '/etc/1/ca.crt' },
      { path: '/etc/1/pki/me.crt' },
      { path: '/abs/me.key' },
      { path: '/etc/token', otherwise: undefined },
    ],
  );
  const data = {
    'certificate-authority': 'ca.crt',
    'certificate-authority-data': Buffer.from('PEM').toString('base64'),
  };
  assert.is(shownIn(contextOf(textOf({ cluster: { ...CLUSTER, ...data } }))?.authority), 'PEM');
});

test('a credential plug-in keeps its words; a command with a slash is relative to its file, a name is not', () => {
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1beta1',
    command: 'bin/login',
    args: ['a', 'b'],
    env: [{ name: 'X', value: 'topsecret' }],
    provideClusterInfo: true,
    installHint: 'install it',
    interactiveMode: 'IfAvailable',
  };
  const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'y' } }];
  const context = contextOf(textOf({ user: { exec }, cluster: { ...CLUSTER, extensions } }));
  const { env, ...plugin } = context?.user?.exec ?? {};
  assert.equal(plugin, {
    apiVersion: exec.apiVersion,
    command: '/etc/0/bin/login',
    args: ['a', 'b'],
    wantsCluster: true,
    installHint: 'install it',
  });
  assert.is(env?.['X']?.reveal(), 'topsecret');
  assert.equal(context?.pluginConfig, { audience: 'y' });
  assert.is(contextOf(textOf({ user: { exec: { ...exec, command: 'login' } } }))?.user?.exec?.command, 'login');
  assert.not.match(JSON.stringify(context), 'topsecret');
});

test('who has a token or a password is not asked for other credentials', () => {
  for (const own of [{ token: 't' }, { tokenFile: 't' }, { username: 'u', password: 'p' }]) {
    assert.is(contextOf(textOf({ user: { exec: EXEC, ...own } }))?.user?.exec, undefined);
  }
});

test('impersonation becomes headers, in the bytes that Go sends', () => {
  const user = { as: 'jürgen', 'as-uid': '7', 'as-groups': ['a', 'b'], 'as-user-extra': { 'x/y(ü)%': ['1'] } };
  assert.equal(contextOf(textOf({ user }))?.user?.impersonation, {
    'Impersonate-User': Buffer.from('jürgen').toString('latin1'),
    'Impersonate-Uid': '7',
    'Impersonate-Group': ['a', 'b'],
    'Impersonate-Extra-x%2Fy%28%C3%BC%29%25': ['1'],
  });
});

for (const [title, text, why] of [
  ['what is not YAML', 'users: [{ name: "topsecret', /conf: line 1: /],
  ['a list', '- a\n', /not a map/],
  ['another kind', '{"kind":"Pod"}', /not of kind Config/],
  ['a context that is not there', textOf({ rest: { 'current-context': 'y' } }), /no context "y", which is the current/],
  ['a cluster that is not there', textOf({ context: { cluster: 'y' } }), /no cluster "y", which context "x" names/],
  ['a user that is not there', textOf({ context: { user: 'y' } }), /no user "y"/],
  [
    'a name that is there twice',
    textOf({ rest: { users: [{ name: 'u' }, { name: 'u' }] } }),
    /user "u" is listed twice/,
  ],
  ['an entry without a name', textOf({ rest: { users: [{ user: {} }] } }), /an entry has no name/],
  ['no server', textOf({ cluster: {} }), /cluster "c": its server is not a URL/],
  ['a server of another scheme', textOf({ cluster: { server: 'file:///etc' } }), /its server is not a URL/],
  ['a server with a password', textOf({ cluster: { server: 'https://u:topsecret@h' } }), /its server is not a URL/],
  ['a SOCKS proxy', textOf({ cluster: { ...CLUSTER, 'proxy-url': 'socks5://h:1' } }), /not the URL of an http or/],
  [
    'an authority that does not count',
    textOf({ cluster: { ...CLUSTER, 'insecure-skip-tls-verify': true, 'certificate-authority': 'x' } }),
    /only one of them/,
  ],
  [
    'a megabyte of blanks',
    textOf({ user: { 'client-key-data': `${' '.repeat(1e6)}!` } }),
    /client-key-data: not base64/,
  ],
  [
    'a name without end',
    textOf({ rest: { 'current-context': 'x'.repeat(1e6) } }),
    /^.{1,200}no context "x{100}…", which.{1,99}$/,
  ],
  ['data that is not base64', textOf({ user: { 'client-key-data': 'topsecret!' } }), /client-key-data: not base64/],
  ['a certificate without a key', textOf({ user: { 'client-certificate': 'x' } }), /only one of client-certificate/],
  ['two ways to ask', textOf({ user: { token: 'topsecret', username: 'x' } }), /both a token and a user name/],
  [
    'a token that is a number',
    'current-context: x\nusers: [{name: u, user: {token: 1}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: "https://h"}}]\n',
    /user "u": token: not a string/,
  ],
  ['auth-provider', textOf({ user: { 'auth-provider': { name: 'gcp' } } }), /no longer supports auth-provider/],
  [
    'a plug-in of another version',
    textOf({ user: { exec: { ...EXEC, apiVersion: 'v1' } } }),
    /apiVersion is not supported/,
  ],
  ['a plug-in without a command', textOf({ user: { exec: { ...EXEC, command: '' } } }), /it names no command/],
  ['a plug-in that needs a terminal', textOf({ user: { exec: { ...EXEC, interactiveMode: 'Always' } } }), /a terminal/],
  ['variables that are none', textOf({ user: { exec: { ...EXEC, env: [{ name: 'a=b' }] } } }), /env: not a list/],
  ['a header in a name', textOf({ user: { as: 'a\r\nX: y' } }), /control characters/],
  ['groups without a user', textOf({ user: { 'as-groups': ['system:masters'] } }), /as-… requires as/],
] as const) {
  test(`${title} is refused, and nothing secret is repeated`, () => {
    try {
      contextOf(text);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      assert.match(error.message, /^kubeconfig \/etc\/0\/conf: /);
      assert.match(error.message, why);
      assert.not.match(error.message, 'topsecret');
      return;
    }
    throw new Error('it was taken');
  });
}

test('auth-provider is answered with what to use in its place', () => {
  const text = textOf({ user: { 'auth-provider': { name: 'oidc' } } });
  let hint: unknown;
  try {
    contextOf(text);
  } catch (error) {
    hint = error instanceof Error && 'hint' in error ? error.hint : undefined;
  }
  assert.match(String(hint), /credential plug-in \(exec\)/);
});

test.run();
