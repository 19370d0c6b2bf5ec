/** Secrets with authorities that cannot sign: each is said with what to do, and nothing of a key. */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { readAuthority } from '../../../src/fleet/hub/run/addon-authority.ts';
import { makeAuthority } from '../../../src/formats/signing/authority.ts';
import { Refused, type Call } from '../../../src/cluster/kube/call.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { makeCertificate } from '../../support/tls.ts';

const test = suite('fleet/hub/addon-authority');
const DAY = 86_400_000;
const NOW = Date.now();
const ASKED = {
  signer: 'example.com/agents',
  signingCA: { name: 'ca' },
  subject: { commonName: 'x', organizations: [] },
  permissions: [],
  secretName: 'x',
  volume: 'x',
  mountPath: 'x',
};
const TYPE = 'kubernetes.io/tls';

function pairOf({ days = 30, from = NOW }: { readonly days?: number; readonly from?: number } = {}) {
  const { certificate, key } = makeAuthority('agents', { days, now: from });
  return { 'tls.crt': certificate, 'tls.key': key.reveal() };
}

const NAMED = { 'fleet.curlew.dev/signer': ASKED.signer };

async function problemOf(
  data: Readonly<Record<string, string>>,
  type = TYPE,
  annotations: Readonly<Record<string, string>> = NAMED,
): Promise<string | undefined> {
  const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  const metadata = { name: 'ca', uid: 'x', resourceVersion: '2', labels: {}, annotations, finalizers: [] };
  const value = { metadata, type, data: Object.fromEntries(encoded) as object };
  const call: Call = async () => Promise.resolve({ outcome: 'done', value } as never);
  const found = await readAuthority(call, ASKED, NOW);
  return 'problem' in found ? found.problem : undefined;
}

const GOOD = pairOf();
const { cert, key } = await makeCertificate();
const LOCK = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hunter2' } as const;
const locked = createPrivateKey(GOOD['tls.key']).export(LOCK).toString();
const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs1', format: 'pem' });
const NO_KEY = /its key \(tls.key\) is none in PEM, or needs a password/;

for (const [what, data, why, type] of [
  ['no certificate', { ...GOOD, 'tls.crt': 'x' }, /its certificate \(tls.crt\) is none in PEM/, TYPE],
  ['no field for one', { 'tls.key': GOOD['tls.key'] }, /its certificate \(tls.crt\) is none in PEM/, 'Opaque'],
  ['an empty key', { ...GOOD, 'tls.key': '' }, NO_KEY, TYPE],
  ['a key with a password', { ...GOOD, 'tls.key': locked }, NO_KEY, TYPE],
  ['the key of another', { ...GOOD, 'tls.key': pairOf()['tls.key'] }, /its key is not that of its certificate/, TYPE],
  ['a short key', { ...GOOD, 'tls.key': short.toString() }, /neither of ECDSA nor of RSA with 2048 to 8192 bits/, TYPE],
  [
    'a certificate of a server',
    { 'tls.crt': cert, 'tls.key': key },
    /not of an authority: it may not sign others/,
    TYPE,
  ],
  ['an authority that has ended', pairOf({ days: 1, from: NOW - 2 * DAY }), /its certificate has expired at 2/, TYPE],
  ['an authority that begins later', pairOf({ from: NOW + DAY }), /its certificate is valid only from 2/, TYPE],
  ['the authority of a cluster', GOOD, /is not of the type kubernetes.io\/tls/, 'cluster.x-k8s.io/secret'],
] as const) {
  test(`${what} is said with what to do`, async () => {
    const problem = (await problemOf(data, type)) ?? '';
    assert.match(problem, why);
    assert.match(problem, /^example.com\/agents cannot sign: Secret open-cluster-management-hub\/ca /);
    assert.match(problem, / kubectl create secret tls ca -n open-cluster-management-hub --cert=ca.crt --key=ca.key$/);
    for (const text of Object.values(data)) assert.ok(text.length < 2 || !problem.includes(text));
  });
}

test('a good authority signs, also from a Secret without a type', async () => {
  assert.is(await problemOf(GOOD), undefined);
  assert.is(await problemOf(GOOD, 'Opaque'), undefined);
});

const OWNER =
  'The owner of this authority may allow that everyone who may write AddOnTemplate objects gets certificates of it: kubectl annotate secret ca -n open-cluster-management-hub fleet.curlew.dev/signer=example.com/agents';

test('an authority signs for the one signer that its Secret names, whichever Secret a template names', async () => {
  const begin = 'example.com/agents cannot sign: Secret open-cluster-management-hub/ca';
  assert.is(await problemOf(GOOD, TYPE, {}), `${begin} does not name it as its signer. ${OWNER}`);
  for (const named of ['example.com/others', 'example.com/agents2', ''])
    assert.is(
      await problemOf(GOOD, TYPE, { 'fleet.curlew.dev/signer': named }),
      `${begin} is the authority of another signer by its annotation fleet.curlew.dev/signer. Name the Secret of example.com/agents in signingCA`,
    );
});

test('a Secret that may not be read is said with the manifests that give the right, and a server that is away is an error', async () => {
  const refusing =
    (status: number): Call =>
    async () =>
      Promise.reject(new Refused('no', 'no', { status }));
  assert.equal(await readAuthority(refusing(403), ASKED, NOW), {
    problem:
      'the controller may not read Secret open-cluster-management-hub/ca: apply what curlew hub manifests --signer example.com/agents=open-cluster-management-hub/ca prints; repeat the options of earlier runs, or their rights are lost',
  });
  await assert.rejectsWith(readAuthority(refusing(500), ASKED, NOW), 'CLUSTER_FAILED');
});

test.run();
