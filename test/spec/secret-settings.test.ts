import { isSecretName, shownLine, shownText, withoutSecrets } from '../../src/spec/secret-settings.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/secret-settings');

test('a name says that its value is secret, however it is written', () => {
  for (const name of `
    password adminPassword ADMIN_PASSWORD db-passwd dbpassword passphrase rootPasswordHash pwd password1
    smtpPass requirepass requirePass rootpw adminPw passkey oauth2ClientSecret bearer
    bootstrapToken authtoken API_TOKEN clientSecret secretKey s3_secret_access_key accessKey
    authorization basicAuth authKey unsealKey recoveryKey sasKey certKey privateKey tlsKey apiKey licenseKey credentials htpasswd auth identitytoken
  `.match(/\S+/g) ?? []) {
    assert.ok(isSecretName(name), name);
  }
});

test('a name that is only about a secret, or about none, does not', () => {
  for (const name of `
    version key sortKey host bypassUpgradeWarning tokenizer passengers secretary author
    bootstrapTokenTTL kubeadmTokenCAHash secretName existingSecret tokenExpiration passwordPolicy
    tokenUrl passwordFile accessKeyId imagePullSecrets credentialsSecretRef bypass compassPoint
  `.match(/\S+/g) ?? []) {
    assert.not.ok(isSecretName(name), name);
  }
});

const cases: readonly (readonly [title: string, schema: unknown, settings: object, shown: object])[] = [
  ['format: password', { properties: { x: { format: 'password' } } }, { x: 'a', y: 'b' }, { y: 'b' }],
  ['writeOnly: true', { properties: { x: { writeOnly: true } } }, { x: 5, y: 6 }, { y: 6 }],
  [
    'a mark deep in it, behind a reference and a choice',
    {
      definitions: {
        one: { anyOf: [{ properties: { pin: { $ref: '#/definitions/pin' } } }] },
        pin: { writeOnly: true },
      },
      properties: { users: { items: { $ref: '#/definitions/one' } } },
    },
    {
      users: [
        { name: 'a', pin: 7 },
        { name: 'b', pin: 8 },
      ],
    },
    { users: [{ name: 'a' }, { name: 'b' }] },
  ],
  ['a mark on all other fields', { additionalProperties: { format: 'password' } }, { x: 'a' }, {}],
  [
    'a map that is marked',
    { properties: { x: { writeOnly: true } } },
    { x: { a: 'b', deep: [{ c: 1 }] } },
    { x: { deep: [{}] } },
  ],
  ['a list that is marked', { properties: { x: { writeOnly: true } } }, { x: ['a', 'b'] }, { x: [] }],
  ['a name', undefined, { deep: [{ password: 'a', user: 'b' }] }, { deep: [{ user: 'b' }] }],
  ['a map by its name', undefined, { credentials: { login: 'a', region: 'b' } }, { credentials: { region: 'b' } }],
  ['a private key', undefined, { pem: '-----BEGIN RSA PRIVATE KEY-----\nx' }, {}],
  ['a Secret in YAML', undefined, { yaml: 'kind: Secret\ndata: {}' }, {}],
  [
    'a field in a text',
    undefined,
    { a: 'x: 1\n  password: y\n', b: '{"token":"x"}', c: 'secret_key = "x"', d: 'pw=' },
    { d: 'pw=' },
  ],
  [
    'what stands below such a name in a text',
    undefined,
    { a: 'auth:\n  password:\n    x\n', b: 'passwords:\n  - x\n', c: '"credentials":\n  admin: x', d: 'users:\n  - x' },
    { d: 'users:\n  - x' },
  ],
  [
    'the word behind an option',
    undefined,
    { args: ['--user', 'x', '--password', 'y', '--token-ttl', '1h'] },
    { args: ['--user', 'x', '--password', '--token-ttl', '1h'] },
  ],
  ['a header', undefined, { headers: { Authorization: 'Basic x', Host: 'h' } }, { headers: { Host: 'h' } }],
  [
    'user info and query of URLs',
    undefined,
    { url: 'see https://u:p@h/x?sig=1 there' },
    { url: 'see https://h/x there' },
  ],
];

for (const [title, schema, settings, expected] of cases) {
  test(`secret is ${title}`, () => {
    const { shown, hidden } = withoutSecrets({ version: '1', ...settings }, schema);
    assert.equal(shown, { version: '1', ...expected });
    assert.is(hidden, true);
  });
}

test('the address of a package is shown without its credentials', () => {
  const { shown, hidden } = withoutSecrets({ version: '1', s3Override: 'https://u:p@h/x?sig=s' }, undefined);
  assert.equal(shown, { version: '1', s3Override: 'https://h/x' });
  assert.is(hidden, true);
});

test('what is not secret stays as it is', () => {
  const entry = {
    version: '1',
    s3Override: 'https://h/x',
    password: '',
    token: false,
    secret: null,
    tokenTTL: '24h',
    pin: 7,
    image: 'registry.example/token-service:1.0',
    text: 'a: b\npasswords are kept elsewhere\n',
    list: [1, 'a', { b: [] }],
  };
  const { shown, hidden } = withoutSecrets(entry, { properties: { pin: { type: 'integer' } } });
  assert.equal(shown, entry);
  assert.is(hidden, false);
});

test('a schema can say that a name says too much', () => {
  const { shown } = withoutSecrets({ version: '1', tokens: 'a' }, { properties: { tokens: { writeOnly: false } } });
  assert.equal(shown, { version: '1', tokens: 'a' });
});

for (const [title, schema] of [
  ['refers to itself', { $ref: '#', properties: { x: { $ref: '#' } } }],
  ['refers to nothing', { properties: { x: { $ref: '#/none/0' } }, allOf: [{ $ref: 'https://elsewhere/' }, 5] }],
  ['is none', [5]],
] as const) {
  test(`a schema that ${title} marks nothing`, () => {
    assert.is(withoutSecrets({ version: '1', x: { x: 'a' } }, schema).hidden, false);
  });
}

test('what is nested too deep to be looked at is not shown', () => {
  let deep: object = { password: 'x' };
  for (let times = 0; times < 5000; times += 1) deep = { deep };
  const { shown, hidden } = withoutSecrets({ version: '1', deep }, undefined);
  assert.is(hidden, true);
  assert.not.match(JSON.stringify(shown), 'password');
});

test('a value is shown by the name of its variable, and a line of a spec by that of its field', () => {
  assert.is(shownText('WEB_ADMIN_PASSWORD', 'x'), '[secret]');
  assert.is(shownText('WEB_ADMIN_PASSWORD', ''), '');
  assert.is(shownText('PROXY_ADDRESS', 'http://u:p@h:1'), 'http://h:1');
  const lines: readonly (readonly [line: string, shown: string])[] = [
    ['    adminPassword: "x', '    adminPassword: [secret]'],
    ['  - token = x', '  - token = [secret]'],
    ['    web: {size: 1, password: x}', '[secret]'],
    ['    host: db', '    host: db'],
    ['    password: |', '    password: [secret]'],
    ['      line', '[secret]'],
    ['', ''],
    ['      - {another', '[secret]'],
    ['    size: 1', '    size: 1'],
    ['spec: https://u:p@h', 'spec: https://***@h'],
  ];
  const text = lines.map(([line]) => line);
  assert.equal(
    text.map((_, at) => shownLine(text, at)),
    lines.map(([, shown]) => shown),
  );
});

test('a schema of many parts that mean each other is looked into once for each value', () => {
  const parts = Array.from({ length: 12 }, () => ({ additionalProperties: { $ref: '#' } }));
  const deep = Array.from({ length: 30 }).reduce<object>((below) => ({ a: below }), { b: 'x' });
  assert.equal(withoutSecrets({ deep }, { allOf: parts }), { shown: { deep }, hidden: false });
  const wide = { allOf: Array.from({ length: 300_000 }, () => ({})) };
  assert.equal(withoutSecrets({ b: 'x' }, wide), { shown: { b: 'x' }, hidden: false });
});

test.run();
