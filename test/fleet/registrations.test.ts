/** Certificates that templates of Open Cluster Management ask for, each bad one by what it differs from a good one. */
import { convert } from '../../src/core/schema.ts';
import { REGISTRATIONS } from '../../src/fleet/upstream/registration.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/registrations');

/** What is wrong. */
function found(registration: readonly object[]): readonly string[] {
  const read = convert(REGISTRATIONS, registration);
  return 'problems' in read ? read.problems.map(({ message }) => message) : [];
}

const ROLE = { kind: 'Role', name: 'reader' };
function permitted(...hubPermissions: readonly object[]): object {
  return { type: 'KubeClient', kubeClient: { hubPermissions } };
}
function signed(customSigner: object): object {
  return { type: 'CustomSigner', customSigner: { signingCA: { name: 'ca' }, ...customSigner } };
}

test('a registration of a template has all that its type needs', () => {
  const all = [
    permitted(
      { type: 'CurrentCluster', currentCluster: { clusterRoleName: 'open-cluster-management:web' } },
      { type: 'SingleNamespace', singleNamespace: { namespace: 'web', roleRef: ROLE } },
    ),
    signed({ signerName: 'example.com/agents', subject: { user: 'agent', groups: ['a'], organizationUnit: ['b'] } }),
    signed({ signerName: 'example.com/others' }),
  ];
  assert.equal(found(all), []);
});

const OWN_PART = 'what belongs to its type';
for (const [title, registration, message] of [
  ['of no known type', [{ type: 'Token' }], '.type: KubeClient or CustomSigner'],
  ['of a signer that is not named', [{ type: 'CustomSigner' }], `: ${OWN_PART}: CustomSigner has customSigner`],
  [
    'for a role that is not named',
    [permitted({ type: 'CurrentCluster' })],
    `.kubeClient.hubPermissions[0]: ${OWN_PART}: currentCluster or singleNamespace`,
  ],
  [
    'for the whole hub',
    [permitted({ type: 'CurrentCluster', currentCluster: { clusterRoleName: 'cluster-admin' } })],
    '.kubeClient.hubPermissions[0].currentCluster.clusterRoleName: another role than cluster-admin: no add-on gets a whole hub',
  ],
  [
    'for a role with a path',
    [permitted({ type: 'CurrentCluster', currentCluster: { clusterRoleName: 'a/b' } })],
    '.kubeClient.hubPermissions[0].currentCluster.clusterRoleName: the name of a role',
  ],
  [
    'for a namespace with a path',
    [permitted({ type: 'SingleNamespace', singleNamespace: { namespace: '../x', roleRef: ROLE } })],
    '.kubeClient.hubPermissions[0].singleNamespace.namespace: a namespace',
  ],
  [
    'by a signer of Kubernetes',
    [signed({ signerName: 'kubernetes.io/kube-apiserver-client' })],
    '.customSigner.signerName: another signer than those of Kubernetes',
  ],
  [
    'by a signer without a domain',
    [signed({ signerName: 'agents' })],
    '.customSigner.signerName: a signer such as example.com/agents, of at most 58 characters',
  ],
  [
    'for administrators',
    [signed({ signerName: 'example.com/a', subject: { user: 'agent', groups: ['system:masters'] } })],
    '.customSigner.subject.groups[0]: no name that begins with system:, kubeadm: or curlew:',
  ],
  [
    'for an agent of a cluster',
    [signed({ signerName: 'example.com/a', subject: { user: 'curlew:cluster:rome:1' } })],
    '.customSigner.subject.user: no name that begins with system:, kubeadm: or curlew:',
  ],
] as const) {
  test(`a registration ${title} is an error`, () => {
    assert.equal(found(registration), [`[0]${message}`]);
  });
}

test('registrations have each signer once, and a bound', () => {
  assert.equal(found([permitted(), permitted()]), ['a list with each signer once']);
  const many = Array.from({ length: 9 }, (_, at) => signed({ signerName: `example.com/a${at}` }));
  assert.equal(found(many), ['a list of at most 8 registrations']);
});

test.run();
