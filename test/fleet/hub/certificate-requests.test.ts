/** Requests for certificates that break a rule, each by what it differs from a good one. */
import { createPrivateKey } from 'node:crypto';
import { makeRequest } from '../../../src/formats/signing/certificate-request.ts';
import { makeKeyPair } from '../../../src/formats/signing/keys.ts';
import { agentUser } from '../../../src/fleet/hub/identity.ts';
import {
  readAgentRequest,
  requestObject,
  requestPrefix,
  tokenGroups,
} from '../../../src/fleet/hub/certificate-requests.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/certificate-requests');

const RANDOM = '0123456789abcdef'.repeat(2);
const PARIS = agentUser('paris', RANDOM);
const ORGANIZATION = 'curlew:clusters';
const KEY = createPrivateKey(makeKeyPair(undefined).privateKey);
const YEAR_S = 365 * 86_400;

interface Asked {
  readonly commonName?: string;
  readonly organization?: string | readonly string[];
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: object;
}

/** A request as the API server has it, by default of the token of paris. */
function asked({ commonName = PARIS, organization = ORGANIZATION, metadata, spec, status }: Asked = {}) {
  const csr = makeRequest({ commonName, organizations: [organization].flat() }, KEY);
  const made = requestObject(requestPrefix('paris'), csr) as { readonly metadata: object; readonly spec: object };
  return readAgentRequest({
    metadata: {
      name: 'curlew-paris-x7k2p',
      resourceVersion: '1',
      creationTimestamp: '2026-01-02T03:04:05Z',
      ...(metadata ?? made.metadata),
    },
    spec: { ...made.spec, username: 'system:bootstrap:abcdef', groups: tokenGroups('paris', 'join'), ...spec },
    ...(status && { status }),
  });
}

const AGENT = { username: PARIS, groups: [ORGANIZATION] };
const OTHER_NAME = 'it is for another name than the cluster paris';
const OTHER_SUBJECT = 'it is not for one user of curlew:clusters, with a P-256 key';
const OTHER_ORIGIN = 'its name does not begin with curlew-paris-';

test('a request of a token, and of the agent itself, for the name of its cluster may be approved', () => {
  assert.equal([asked()?.problem, asked()?.kind], [undefined, 'join']);
  // The server does not tell a name that it has made from a chosen one.
  for (const more of [{}, { generateName: 'curlew-paris-' }])
    assert.is(asked({ metadata: { name: 'curlew-paris-mine', ...more } })?.problem, undefined);
  const again = asked({ spec: AGENT });
  assert.equal([again?.problem, again?.kind, again?.user], [undefined, 'renewal', PARIS]);
});

test('a request of an add-on is kept whole only while a signer is to answer it', () => {
  const [approved, failed] = [{ type: 'Approved' }, { type: 'Failed' }];
  const metadata = { name: 'curlew-paris-x7k2p', labels: { 'open-cluster-management.io/addon-name': 'web' } };
  const isKept = (status: object): boolean => {
    const addon = asked({ metadata, spec: AGENT, status })?.addon;
    assert.is(addon?.name, 'web');
    return addon?.unsigned?.startsWith('-----BEGIN CERTIFICATE REQUEST-----') ?? false;
  };
  const statuses: readonly object[] = [
    {},
    { conditions: [approved] },
    { conditions: [approved], certificate: 'x' },
    { conditions: [approved, failed] },
    { conditions: [{ type: 'Denied' }] },
  ];
  assert.equal(statuses.map(isKept), [false, true, false, false, false]);
});

for (const [title, given, problem] of [
  ['for another cluster', { commonName: agentUser('rome', RANDOM) }, OTHER_NAME],
  ['for a name that begins with that of its cluster', { commonName: agentUser('paris2', RANDOM) }, OTHER_NAME],
  ['for a name that ends in another user', { commonName: `${PARIS}:admin` }, OTHER_NAME],
  ['for no agent', { commonName: 'admin' }, OTHER_NAME],
  ['for administrators', { organization: 'system:masters' }, OTHER_SUBJECT],
  ['for an organization that begins with that of agents', { organization: 'curlew:clusters2' }, OTHER_SUBJECT],
  ['for a second organization', { organization: [ORGANIZATION, 'system:masters'] }, OTHER_SUBJECT],
  ['for the beginning of the organization of agents', { organization: 'curlew:cluster' }, OTHER_SUBJECT],
  ['under the name of a neighbor', { metadata: { name: 'curlew-rome-x7k2p' } }, OTHER_ORIGIN],
  [
    'under the name of a neighbor beside its own prefix',
    { metadata: { name: 'curlew-rome-mine', generateName: 'curlew-paris-' } },
    OTHER_ORIGIN,
  ],
  [
    'for another signer',
    { spec: { signerName: 'kubernetes.io/kubelet-serving' } },
    'it is for another signer than kubernetes.io/kube-apiserver-client',
  ],
  [
    'for servers, too',
    { spec: { usages: ['client auth', 'server auth'] } },
    'its usages are not exactly "client auth"',
  ],
  ['for a year', { spec: { expirationSeconds: YEAR_S } }, 'its certificate would live longer than 2592000 seconds'],
  [
    'of an agent for another user of its cluster',
    { commonName: agentUser('paris', 'f'.repeat(32)), spec: AGENT },
    'an agent can only renew its own certificate',
  ],
  [
    'of a neighbor',
    { spec: { ...AGENT, username: agentUser('rome', RANDOM) } },
    'its name does not begin with curlew-rome-',
  ],
] as const satisfies readonly (readonly [string, Asked, string])[]) {
  test(`a request ${title} must not be approved`, () => assert.is(asked(given)?.problem, problem));
}

for (const [title, spec] of [
  ['of a person', { username: 'admin', groups: ['system:masters'] }],
  ['of a token for nodes', { groups: ['system:bootstrappers:kubeadm:default-node-token'] }],
  ['of a token for two clusters', { groups: [...tokenGroups('paris', 'join'), ...tokenGroups('rome', 'join')] }],
  ['of a user with the name of an agent and not its organization', { username: PARIS, groups: ['curlew:clusters2'] }],
] as const) {
  test(`a request ${title} is left alone`, () => assert.is(asked({ spec }), undefined));
}

test.run();
