/** What a hub needs before its controller: definitions of its kinds, rights, and a Deployment for who wants one. Pure. */
import { CHANNEL_API_VERSION } from '../../cluster/channel/channel.ts';
import { jsonSchema, type JsonSchema } from '../../core/json-schema.ts';
import { AGENT } from './identity.ts';
import { namespaceOf } from './observe.ts';
import { bound, granted, may, RBAC, role } from './rbac.ts';
import { SIGNING_REQUESTS, TOKENS as TOKEN_GROUP } from './certificate-requests.ts';
import { HUB_KINDS, type HubKind } from './hub-kinds.ts';
import { FOREIGN_KINDS, type Reconciled } from '../upstream/foreign-kinds.ts';
import { KUBE_SIGNER } from '../upstream/registration.ts';

export const [GROUP = '', VERSION = ''] = CHANNEL_API_VERSION.split('/');
const NAMESPACE = 'curlew-system';
const NAME = 'curlew-controller';
/** By which one of several controllers leads. */
export const CONTROLLER_LEASE = { namespace: NAMESPACE, name: NAME } as const;
/** Bounds that the API server needs to estimate what its rules cost. */
const MAX_ITEMS = 100;
const MAX_LENGTH = 1024;

export type Manifest = Readonly<Record<string, unknown>>;

/** A signer of certificates, with the Secret of its authority. */
export interface HubSigner {
  readonly name: string;
  readonly namespace: string;
  readonly secret: string;
}

interface HubOptions {
  readonly image?: string | undefined;
  /** Names of clusters that the controller delivers to. */
  readonly push?: readonly string[] | undefined;
  /** Names of Secrets with values for charts. */
  readonly valuesSecrets?: readonly string[] | undefined;
  /** Names of ConfigMaps with values for charts. */
  readonly valuesConfigMaps?: readonly string[] | undefined;
  /** Signers for which the controller signs. */
  readonly signers?: readonly HubSigner[] | undefined;
  /** Kinds of other programs that the controller takes. */
  readonly reconcile?: readonly Reconciled[] | undefined;
}

/** How the controller gets a right that it does not have, by an option of `curlew hub manifests`. */
export function wayToRight(option: string): string {
  return `apply what curlew hub manifests ${option} prints; repeat the options of earlier runs, or their rights are lost`;
}

/** Objects in the order in which they can be created. */
export function hubManifests({
  image,
  push = [],
  valuesSecrets = [],
  valuesConfigMaps = [],
  signers = [],
  reconcile = [],
}: HubOptions = {}): readonly Manifest[] {
  const kinds = Object.keys(HUB_KINDS) as HubKind[];
  const pushed = push.length === 0 ? [] : [PUSH_ROLE, ...push.flatMap(pushRights)];
  return [
    ...kinds.map(definitionOf),
    NAMESPACE_OBJECT,
    ACCOUNT,
    ...RIGHTS,
    ...pushed,
    ...valuesRights({ secrets: valuesSecrets, configmaps: valuesConfigMaps }),
    ...(signers.length === 0 ? [] : signerRights(signers)),
    ...(reconcile.length === 0 ? [] : upstreamRights(reconcile)),
    ...(image === undefined ? [] : [CONFIG, deployment(image, reconcile)]),
  ];
}

function definitionName(kind: HubKind): string {
  return `${HUB_KINDS[kind].plural}.${GROUP}`;
}

/**
 * Definitions that take all objects of their kind with them, for which add-ons would be removed from clusters. Without its Channel, an
 * add-on stays.
 */
export const HELD_BY: readonly string[] = (['Cluster', 'FleetAddon', 'ClusterAddon'] as const).map(definitionName);

/** The CustomResourceDefinition of a kind. */
export function definitionOf(kind: HubKind): Manifest {
  const { plural, short, scope, about, name, spec, status, columns } = HUB_KINDS[kind];
  const texts = { apiVersion: { type: 'string' }, kind: { type: 'string' } };
  const metadata = { type: 'object', properties: { name: structural(jsonSchema(name)) } };
  const schema = {
    type: 'object',
    description: about,
    required: ['spec'],
    properties: {
      ...texts,
      metadata,
      spec: structural(jsonSchema(spec)),
      ...(status && { status: structural(jsonSchema(status)) }),
    },
  };
  const shown = columns.map(([title, type, jsonPath]) => ({ name: title, type, jsonPath }));
  const version = {
    name: VERSION,
    served: true,
    storage: true,
    schema: { openAPIV3Schema: schema },
    ...(status && { subresources: { status: {} } }),
    additionalPrinterColumns: [...shown, { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }],
  };
  const names = { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), shortNames: [short] };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: definitionName(kind) },
    spec: { group: GROUP, scope, names: { ...names, categories: ['fleet'] }, versions: [version] },
  };
}

/**
 * A structural schema: each part has a type, unknown fields are dropped by the API server instead of refused, and everything has a
 * bound.
 */
function structural(schema: JsonSchema): JsonSchema {
  const { const: only, anyOf, properties, additionalProperties, items, ...rest } = schema;
  const parts = (anyOf ?? []) as readonly JsonSchema[];
  if (parts.length > 0) {
    const [integer, text] = ['integer', 'string'].map((type) => parts.find((one) => one['type'] === type) ?? {});
    const types = { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true };
    const { type: _text, description, ...keywords } = { ...integer, ...text };
    return { ...keywords, ...(description !== undefined && { description }), ...rest, ...types };
  }
  const words = only === undefined ? rest['enum'] : [only];
  if (words !== undefined) return { type: 'string', ...rest, enum: words };
  if (items !== undefined) return { maxItems: MAX_ITEMS, ...rest, items: structural(items as JsonSchema) };
  if (properties !== undefined) {
    const fields = Object.entries(properties as Readonly<Record<string, JsonSchema>>);
    return { ...rest, properties: Object.fromEntries(fields.map(([key, one]) => [key, structural(one)])) };
  }
  if (typeof additionalProperties === 'object') {
    const values = structural(additionalProperties as JsonSchema);
    return { maxProperties: MAX_ITEMS, ...rest, additionalProperties: values };
  }
  if (rest['type'] === 'object') return { ...rest, 'x-kubernetes-preserve-unknown-fields': true };
  return rest['type'] === 'string' ? { maxLength: MAX_LENGTH, ...rest } : rest;
}

const LABELS = { 'app.kubernetes.io/name': 'curlew', 'app.kubernetes.io/component': 'controller' };
const NAMESPACE_OBJECT = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE, labels: LABELS } };
const OWN = { name: NAME, namespace: NAMESPACE };
export const CONTROLLER_ACCOUNT = { kind: 'ServiceAccount', ...OWN };
const CONTROLLER = [CONTROLLER_ACCOUNT];
const LABELED = { ...OWN, labels: LABELS };
const ACCOUNT = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: LABELED };

/** Metadata of what is in no namespace. */
function clusterWide(name: string) {
  return { name, labels: LABELS };
}

const CERTIFICATES = 'certificates.k8s.io';
const CLUSTER_RULES = [
  may(GROUP, ['clusters', 'fleetaddons', 'channels', 'clusteraddons'], ['get', 'list', 'watch']),
  // Finalizers, and the content of clusters.
  may(GROUP, ['clusters', 'fleetaddons', 'clusteraddons'], ['patch']),
  may(GROUP, ['clusteraddons'], ['create', 'delete']),
  may(GROUP, ['fleetaddons/status'], ['patch']),
  may('apiextensions.k8s.io', ['customresourcedefinitions'], ['get'], HELD_BY),
  // Agents renew them.
  may('coordination.k8s.io', ['leases'], ['list', 'watch'], [AGENT]),
  // Which hub it is, and whether a Cluster goes with its namespace.
  may('', ['namespaces'], ['get']),
  may('', ['events'], ['create']),
  // Renewals: who has been accepted, and the approval of their requests.
  may(RBAC, ['rolebindings'], ['get'], [AGENT]),
  may(CERTIFICATES, [SIGNING_REQUESTS.plural], ['get', 'list', 'watch']),
  may(CERTIFICATES, [`${SIGNING_REQUESTS.plural}/approval`], ['patch']),
  may(CERTIFICATES, ['signers'], ['approve'], [KUBE_SIGNER]),
];

const PUSH = `${NAME}-push`;
/** Only in the namespaces of clusters that it delivers to: what an agent may there, and Secrets by their names. */
const PUSH_ROLE = role('ClusterRole', clusterWide(PUSH), [
  may('', ['secrets'], ['get']),
  may(GROUP, ['clusters/status', 'clusteraddons/status'], ['patch']),
]);

function pushRights(cluster: string): readonly Manifest[] {
  const namespace = namespaceOf(cluster);
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    bound('RoleBinding', { name: PUSH, namespace, labels: LABELS }, { kind: 'ClusterRole', name: PUSH }, CONTROLLER),
  ];
}

/** To get these objects by their names, by resource. */
function valuesRights(all: Readonly<Record<string, readonly string[]>>): readonly Manifest[] {
  const rules = Object.entries(all).flatMap(([resource, names]) =>
    names.length === 0 ? [] : [may('', [resource], ['get'], names)],
  );
  return rules.length === 0 ? [] : granted('Role', { ...LABELED, name: `${NAME}-values` }, rules, CONTROLLER);
}

const SIGNERS = `${NAME}-signers`;

/** Requests for these signers are approved, and signed with their authorities. */
function signerRights(signers: readonly HubSigner[]): readonly Manifest[] {
  const namespaces = [...new Set(signers.map(({ namespace }) => namespace))];
  const rules = [
    may(CERTIFICATES, ['signers'], ['approve', 'sign'], [...new Set(signers.map(({ name }) => name))]),
    may(CERTIFICATES, [`${SIGNING_REQUESTS.plural}/status`], ['patch']),
  ];
  return [
    ...granted('ClusterRole', clusterWide(SIGNERS), rules, CONTROLLER),
    ...namespaces.flatMap((namespace) => {
      const own = signers.flatMap((one) => (one.namespace === namespace ? [one.secret] : []));
      const reads = [may('', ['secrets'], ['get'], [...new Set(own)])];
      return granted('Role', { name: SIGNERS, namespace, labels: LABELS }, reads, CONTROLLER);
    }),
  ];
}

/** To take objects of other programs: to read them, to write their status, and to make objects of the fleet from them. */
function upstreamRights(names: readonly Reconciled[]): readonly Manifest[] {
  const kinds = names.flatMap((name) => [...FOREIGN_KINDS[name]]);
  const definitions = kinds.map(({ plural, group }) => `${plural}.${group}`);
  const rules = [
    ...kinds.flatMap(({ plural, group, isTaken }) => [
      may(group, [plural], ['get', 'list', 'watch', ...(isTaken ? ['patch'] : [])]),
      ...(isTaken ? [may(group, [`${plural}/status`], ['patch'])] : []),
    ]),
    may('apiextensions.k8s.io', ['customresourcedefinitions'], ['get'], definitions),
    may(GROUP, ['fleetaddons'], ['create', 'delete']),
    ...(names.includes('helmchartproxies') ? CAPI_RULES : []),
    ...(names.includes('clustermanagementaddons') ? OCM_RULES : []),
  ];
  return granted('ClusterRole', clusterWide(`${NAME}-upstream`), rules, CONTROLLER);
}

/** Its clusters become those of the fleet, with the Secrets that it keeps next to them; templates may see what they refer to. */
const CAPI_RULES = [
  may(GROUP, ['clusters'], ['create', 'patch', 'delete']),
  may(GROUP, ['clusters/status', 'clusteraddons/status'], ['patch']),
  may('', ['namespaces'], ['create']),
  may('', ['secrets'], ['get']),
  may('controlplane.cluster.x-k8s.io', ['*'], ['get']),
  may('infrastructure.cluster.x-k8s.io', ['*'], ['get']),
];

/** On each cluster that a placement selects, as the manager of add-ons does; the API server lets it bind only roles that it may `bind`. */
const OCM_RULES = [
  may('addon.open-cluster-management.io', ['managedclusteraddons'], ['create', 'delete']),
  may(RBAC, ['rolebindings'], ['list', 'watch', 'create', 'patch', 'delete']),
];

/** What a token for an agent may do, and each agent: make requests, which someone approves or not. */
export const REGISTRATION = 'curlew-registration';
const RIGHTS = [
  ...granted('ClusterRole', clusterWide(NAME), CLUSTER_RULES, CONTROLLER),
  ...granted('Role', LABELED, [may('coordination.k8s.io', ['leases'], ['create', 'get', 'update'])], CONTROLLER),
  ...granted(
    'ClusterRole',
    clusterWide(REGISTRATION),
    [may(CERTIFICATES, [SIGNING_REQUESTS.plural], ['create'])],
    [{ apiGroup: RBAC, kind: 'Group', name: TOKEN_GROUP }],
  ),
];

const TOKENS = '/var/run/secrets/kubernetes.io/serviceaccount';
const CONFIG = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: LABELED,
  data: {
    kubeconfig: `${JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        {
          name: 'hub',
          cluster: { server: 'https://kubernetes.default.svc', 'certificate-authority': `${TOKENS}/ca.crt` },
        },
      ],
      users: [{ name: 'controller', user: { tokenFile: `${TOKENS}/token` } }],
      contexts: [{ name: 'hub', context: { cluster: 'hub', user: 'controller' } }],
      'current-context': 'hub',
    })}\n`,
  },
};

function deployment(image: string, reconcile: readonly Reconciled[]): Manifest {
  const container = {
    name: 'controller',
    image,
    args: [
      'controller',
      '--kubeconfig',
      '/etc/curlew/kubeconfig',
      ...(reconcile.length === 0 ? [] : ['--reconcile', reconcile.join()]),
    ],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: 65532,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '256Mi' } },
    volumeMounts: [{ name: 'kubeconfig', mountPath: '/etc/curlew', readOnly: true }],
  };
  const pod = {
    serviceAccountName: NAME,
    containers: [container],
    volumes: [{ name: 'kubeconfig', configMap: { name: NAME } }],
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: LABELED,
    spec: { replicas: 2, selector: { matchLabels: LABELS }, template: { metadata: { labels: LABELS }, spec: pod } },
  };
}
