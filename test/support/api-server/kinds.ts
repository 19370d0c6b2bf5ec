/** The kinds that the server has: a table of built-in ones, and those that CustomResourceDefinitions add. */
import { Ajv, type ValidateFunction } from 'ajv';
import { isMap, type Json, type JsonObject } from './fields.ts';

export interface ServedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Its status is written by a subresource only, and its generation counts changes of the rest. */
  readonly hasStatus: boolean;
  /** Fields that cannot change. */
  readonly immutable: readonly string[];
  /** Schema of a custom resource. */
  readonly schema?: JsonObject;
}

/** API version, kind, plural, `cluster` or `namespace`, `status` or `-`, immutable fields. */
const TABLE = `
v1 Namespace namespaces cluster status
v1 Node nodes cluster status
v1 ConfigMap configmaps namespace -
v1 Event events namespace -
v1 PersistentVolumeClaim persistentvolumeclaims namespace status spec
v1 Pod pods namespace status spec.containers
v1 Secret secrets namespace - type
v1 Service services namespace status
v1 ServiceAccount serviceaccounts namespace -
apps/v1 DaemonSet daemonsets namespace status spec.selector
apps/v1 Deployment deployments namespace status spec.selector
apps/v1 ReplicaSet replicasets namespace status spec.selector
apps/v1 StatefulSet statefulsets namespace status spec.selector,spec.serviceName,spec.volumeClaimTemplates
batch/v1 Job jobs namespace status spec.selector,spec.template
policy/v1 PodDisruptionBudget poddisruptionbudgets namespace status
networking.k8s.io/v1 NetworkPolicy networkpolicies namespace -
rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster -
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings cluster - roleRef
rbac.authorization.k8s.io/v1 Role roles namespace -
rbac.authorization.k8s.io/v1 RoleBinding rolebindings namespace - roleRef
coordination.k8s.io/v1 Lease leases namespace -
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests cluster status spec
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions cluster status
apiregistration.k8s.io/v1 APIService apiservices cluster status
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster -
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster -
storage.k8s.io/v1 StorageClass storageclasses cluster - provisioner
`;

/** Kinds whose generation the server leaves out. */
export const WITHOUT_GENERATION = new Set([
  'Namespace',
  'Node',
  'PersistentVolume',
  'PersistentVolumeClaim',
  'Service',
]);

export const BUILT_IN: readonly ServedKind[] = TABLE.trim()
  .split('\n')
  .map((line) => {
    const [apiVersion = '', kind = '', plural = '', scope, status, immutable = ''] = line.split(' ');
    const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
    const rules = { hasStatus: status === 'status', immutable: immutable === '' ? [] : immutable.split(',') };
    return { group, version, kind, plural, namespaced: scope === 'namespace', ...rules };
  });

export const DEFINITIONS = BUILT_IN.find(({ kind }) => kind === 'CustomResourceDefinition') as ServedKind;

export function apiVersionOf({ group, version }: Pick<ServedKind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The kinds that a CustomResourceDefinition adds. */
export function customKinds(definition: JsonObject): readonly ServedKind[] {
  const spec = definition['spec'] as {
    readonly group: string;
    readonly scope: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly subresources?: { readonly status?: object };
      readonly schema?: { readonly openAPIV3Schema: JsonObject };
    }[];
  };
  const { group, scope, names } = spec;
  return spec.versions.flatMap(({ name, served, subresources, schema }): readonly ServedKind[] => {
    if (!served) return [];
    const rules = { hasStatus: subresources?.status !== undefined, immutable: [] };
    const kind = {
      group,
      version: name,
      kind: names.kind,
      plural: names.plural,
      namespaced: scope !== 'Cluster',
      ...rules,
    };
    return [schema === undefined ? kind : { ...kind, schema: schema.openAPIV3Schema }];
  });
}

const ajv = new Ajv({ allErrors: true, removeAdditional: true, strict: false, validateFormats: false });
/** By the text of its schema: a compilation costs more than all requests of most tests, and every server has the same kinds. */
const checks = new Map<string, ValidateFunction>();
/** By the schema itself, whose text is long. */
const checksOf = new WeakMap<JsonObject, ValidateFunction>();

function checkOf(schema: JsonObject): ValidateFunction {
  const known = checksOf.get(schema);
  if (known !== undefined) return known;
  const key = JSON.stringify(schema);
  const made = checks.get(key) ?? ajv.compile(knownFields(schema));
  checks.set(key, made);
  checksOf.set(schema, made);
  return made;
}

/** The document without fields that its schema does not have, as the server stores it, these fields, and what is wrong with the rest. */
export function bySchema(
  schema: JsonObject,
  document: JsonObject,
): { readonly document: JsonObject; readonly dropped: readonly string[]; readonly problems: readonly string[][] } {
  const copy = structuredClone(document);
  const check = checkOf(schema);
  const problems = check(copy)
    ? []
    : (check.errors ?? []).map(({ instancePath, message = '', params }) => {
        const parts = [...instancePath.split('/').slice(1), String(params['missingProperty'] ?? '')];
        return [parts.filter((part) => part !== '').join('.'), `Invalid value: ${message}`];
      });
  return { document: copy, dropped: missingIn(copy, document), problems };
}

/** Paths of what a value has and its copy does not. */
function missingIn(copy: Json | undefined, value: Json, path: readonly string[] = []): readonly string[] {
  if (copy === undefined) return [path.join('.')];
  if (typeof value !== 'object' || value === null) return [];
  const kept = copy as Readonly<Record<string, Json>>;
  return Object.entries(value).flatMap(([key, one]) => missingIn(kept[key], one, [...path, key]));
}

function knownFields(schema: JsonObject): JsonObject {
  const { properties, ...others } = closed(schema) as JsonObject;
  const own = isMap(properties) ? properties : {};
  // A schema can only restrict the name.
  const metadata = { ...(isMap(own['metadata']) ? own['metadata'] : {}), additionalProperties: true };
  return { ...others, properties: { apiVersion: {}, kind: {}, ...own, metadata } };
}

/** The schema of objects that have no other fields than their `properties`. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map((item: Json) => closed(item));
  if (!isMap(schema)) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, child]) => [key, closed(child)]));
  const isOpen =
    schema['x-kubernetes-preserve-unknown-fields'] === true || schema['additionalProperties'] !== undefined;
  return isMap(schema['properties']) && typeof schema['type'] === 'string' && !isOpen
    ? { ...inner, additionalProperties: false }
    : inner;
}

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** Aggregated discovery, of `/api` or of `/apis`. */
export function discoveryOf(kinds: readonly ServedKind[], isCore: boolean): object {
  const chosen = kinds.filter(({ group }) => (group === '') === isCore);
  const items = [...new Set(chosen.map(({ group }) => group))].map((name) => {
    const own = chosen.filter(({ group }) => group === name);
    const versions = [...new Set(own.map(({ version }) => version))].map((version) => ({
      version,
      freshness: 'Current',
      resources: own.filter((one) => one.version === version).map(discovered),
    }));
    return { metadata: name === '' ? {} : { name }, versions };
  });
  return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items };
}

function discovered({ group, version, kind, plural, namespaced }: ServedKind): object {
  const scope = namespaced ? 'Namespaced' : 'Cluster';
  return { resource: plural, responseKind: { group, version, kind }, scope, verbs: VERBS };
}
