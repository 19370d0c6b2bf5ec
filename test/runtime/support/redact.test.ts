import { secret } from '../../../src/core/secret.ts';
import { environmentSecrets, plainObject, redactor } from '../../../src/runtime/support/redact.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('runtime/support/redact');

const CANARY = 'c4n4ry-9f8e7d';
const KEY = `-----BEGIN EC PRIVATE KEY-----\n${CANARY}aaaaaaaa\nbbbbbbbbbbbbbbbbbbbb\n-----END EC PRIVATE KEY-----`;

const HIDDEN: readonly string[] = [
  `DB_PASSWORD=${CANARY}`,
  `DB_PASSWORD=two words ${CANARY}`,
  `declare -x DB_PASSWORD="two words ${CANARY}"`,
  `+ export API_TOKEN='a ${CANARY}'`,
  `time="x" level=info msg="login" password=${CANARY} user=me`,
  `{"user":"me","password":"${CANARY}","n":1}`,
  `msg="{\\"password\\":\\"${CANARY}\\"}"`,
  `{"tokens":["aaaa","${CANARY}"]}`,
  `password: a phrase of ${CANARY}`,
  `  - secretKey: "${CANARY}"`,
  `token: |\n  first\n  ${CANARY}\nother: kept`,
  `passwords:\n- first\n- ${CANARY}\nother: kept`,
  `password:\n    ${CANARY}\nother: kept`,
  `password="not closed ${CANARY}`,
  `client-key-data: ${CANARY}`,
  `secret_access_key = ${CANARY}`,
  `curl -u admin:${CANARY} https://x`,
  `mysql --password ${CANARY} --host x`,
  `mysql --password=${CANARY} --host x`,
  `kubeadm join x --certificate-key ${CANARY}`,
  `GET / Authorization: Bearer ${CANARY}`,
  `curl -H "Authorization: Basic ${CANARY}"`,
  `HTTPS_PROXY=http://user:${CANARY}@proxy:3128`,
  `get https://bucket/x?X-Amz-Signature=${CANARY}`,
  KEY,
  `bbbbbbbbbbbbbbbbbbbbbbb\n${CANARY}aaaaaaaaaaaaa\n-----END RSA PRIVATE KEY-----`.replaceAll('-9', '9'),
];

test('what looks like a secret is hidden in every form in which programs print it', () => {
  const { text } = redactor([]);
  for (const form of HIDDEN) {
    const shown = text(`before\n${form}\nafter`);
    assert.not.match(shown, /c4n4ry|9f8e7d/, form);
    assert.match(shown, /^before\n/, form);
    if (/other: kept/.test(form)) assert.match(shown, /\nother: kept\nafter$/, form);
  }
  const shown = text(
    'kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef x eyJhbGciOiJS.eyJpc3MiOiJr.c2ln AKIAIOSFODNN7EXAMPLE',
  );
  assert.is(shown, 'kubeadm join 10.0.0.1:6443 --token [secret] x [secret] [secret]');
});

test('what is needed to help stays', () => {
  const { text } = redactor([]);
  for (const kept of [
    'MountVolume.SetUp failed for volume "certs" : secret "web-tls" not found',
    'image: registry.example.com/team/web:1.2.3@sha256:0123456789abcdef0123456789abcdef',
    'Failed to pull image "x": failed to authorize: 401 Unauthorized',
    '  secretName: web-tls\n  namespace: default\n  tokenTTL: 24h\n',
    '{"pod":"kube-system/etcd-one","ready":false}',
    'Error: context deadline exceeded at 10.0.0.1:2379',
  ]) {
    assert.is(text(kept), kept);
  }
});

test('a known secret is hidden wherever it is, and JSON stays JSON', () => {
  const { text, value } = redactor([
    secret(CANARY),
    ...environmentSecrets({ HTTP_PROXY: 'http://me:pr0xyword@proxy' }),
  ]);
  assert.is(text(`the greeting is ${CANARY} for pr0xyword`), 'the greeting is [secret] for [secret]');
  const shown = value({ note: `a ${CANARY}`, list: ['--password', 'x'], token: 'y', pin: 1, [CANARY]: true });
  assert.equal(shown, {
    note: 'a [secret]',
    list: ['--password', '[secret]'],
    token: '[secret]',
    pin: 1,
    '[secret]': true,
  });
});

test('objects of a cluster lose the values of Secrets, ConfigMaps and variables, and their own copies', () => {
  const pod = plainObject({
    kind: 'Pod',
    metadata: {
      name: 'web',
      managedFields: [{ manager: CANARY }],
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': CANARY, note: 'kept' },
    },
    spec: {
      containers: [
        {
          name: 'web',
          env: [
            { name: 'GREETING', value: CANARY },
            { name: 'X', valueFrom: { fieldRef: {} } },
          ],
        },
      ],
    },
  });
  assert.equal(pod, {
    kind: 'Pod',
    metadata: { name: 'web', annotations: { note: 'kept' } },
    spec: {
      containers: [
        {
          name: 'web',
          env: [
            { name: 'GREETING', value: '[left out]' },
            { name: 'X', valueFrom: { fieldRef: {} } },
          ],
        },
      ],
    },
  });
  for (const kind of ['Secret', 'ConfigMap']) {
    const { data, stringData } = plainObject({ kind, metadata: {}, data: { a: CANARY }, stringData: { b: CANARY } });
    assert.equal({ data, stringData }, { data: { a: '[left out]' }, stringData: { b: '[left out]' } });
  }
});

test.run();
