/** The text of a manifest -> its objects, with a finding for each mistake. Pure. */
import { isUtf8 } from 'node:buffer';
import { compareDiagnostics, hasErrors, type Diagnostic, type Place } from '../../core/diagnostic.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import { CHANNEL_RECORDS } from '../../core/layout.ts';
import { readYaml, splitYaml, type Path, type YamlOptions } from '../../formats/yaml/yaml.ts';
import { ANNOTATION_PREFIX } from './record.ts';

/** The largest manifest; Kubernetes' own limit of one object is 1.5 MiB. */
export const MAX_MANIFEST_BYTES: number = 16 << 20;
const MAX_OBJECTS = 20_000;
/** How a document of a manifest is read. Schemas in CustomResourceDefinitions are deep. */
export const MANIFEST_OPTIONS: YamlOptions = { limit: MAX_MANIFEST_BYTES, deepest: 200, kubernetes: () => true };

/** One object of a manifest. */
export interface ManifestObject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Namespace in the manifest; objects of a namespaced kind without one are for the namespace of the add-on. */
  readonly namespace: string | undefined;
  readonly name: string;
  /** With nulls, and with bigints for integers beyond 2^53. */
  readonly value: Readonly<Record<string, unknown>>;
  readonly place: Place;
}

interface ReadManifest {
  /** Undefined if there is an error among the findings. */
  readonly objects: readonly ManifestObject[] | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * The objects of a manifest, in its order, and those of lists in place of these. Each must have `apiVersion`, `kind` and
 * `metadata.name`, and may be there once. `file` is its name in findings.
 */
export function readObjects(file: string, content: Uint8Array): ReadManifest {
  const diagnostics: Diagnostic[] = [];
  const objects: ManifestObject[] = [];
  const start: Place = { file, line: 1, column: 1, length: 1 };
  const error = (code: string, place: Place, message: string, hint?: string): void => {
    diagnostics.push({ code: `manifest/${code}`, severity: 'error', message, place, hint });
  };
  if (!isUtf8(content)) {
    error('text', start, 'this is not a text in UTF-8');
    return { objects: undefined, diagnostics };
  }
  if (content.length > MAX_MANIFEST_BYTES) {
    error('size', start, `the manifest is larger than ${MAX_MANIFEST_BYTES} bytes`, 'split the add-on');
    return { objects: undefined, diagnostics };
  }
  const parts = splitYaml(Buffer.from(content).toString());
  if (parts.length > MAX_OBJECTS) {
    error('size', start, `the manifest has more than ${MAX_OBJECTS} documents`, 'split the add-on');
    return { objects: undefined, diagnostics };
  }
  for (const part of parts) {
    const {
      diagnostics: problems,
      placeOf,
      ...yaml
    } = readYaml(file, part.text, { ...MANIFEST_OPTIONS, firstLine: part.line });
    const value: unknown = yaml.value;
    diagnostics.push(...problems);
    if (value !== undefined && value !== null) objects.push(...objectsIn(value, [], { placeOf, error }));
    if (objects.length > MAX_OBJECTS) break;
  }
  if (objects.length > MAX_OBJECTS) error('size', start, `the manifest has more than ${MAX_OBJECTS} objects`);
  if (objects.length === 0 && diagnostics.length === 0) error('empty', start, 'the manifest has no objects');
  const seen = new Map<string, ManifestObject>();
  for (const object of objects) {
    const twin = seen.get(objectKey(object));
    if (twin !== undefined) {
      const message = `${object.kind} ${object.name} is already in line ${twin.place.line}`;
      error('duplicate', object.place, message, 'delete one of them');
    }
    seen.set(objectKey(object), object);
  }
  const isBad = hasErrors(diagnostics);
  return { objects: isBad ? undefined : objects, diagnostics: diagnostics.toSorted(compareDiagnostics) };
}

/** The identity of an object in a cluster: versions of one group and kind are the same objects. */
export function objectKey({
  apiVersion,
  kind,
  namespace = '',
  name,
}: Pick<ManifestObject, 'apiVersion' | 'kind' | 'name'> & { readonly namespace?: string | undefined }): string {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return `${group}/${kind}/${namespace}/${name}`;
}

interface Context {
  readonly placeOf: (path: Path) => Place;
  readonly error: (code: string, place: Place, message: string, hint?: string) => void;
}

/** RFC 1123; some kinds, such as roles, also allow colons and capitals. */
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9.:_-]{0,251}[A-Za-z0-9])?$/;
/** RFC 1123, as names of namespaces are. */
export const NAMESPACE: RegExp = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

function objectsIn(value: unknown, path: Path, context: Context): readonly ManifestObject[] {
  const { placeOf, error } = context;
  if (!isObject(value)) {
    error('object', placeOf(path), 'an object of Kubernetes must be a map with apiVersion, kind and metadata');
    return [];
  }
  const { apiVersion, kind, metadata, items } = value;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || apiVersion === '' || kind === '') {
    const missing = typeof kind === 'string' && kind !== '' ? 'apiVersion' : 'kind';
    error(
      'kind',
      placeOf(path),
      `${missing} is missing`,
      'write apiVersion and kind, such as apiVersion: v1, kind: Pod',
    );
    return [];
  }
  if (kind.endsWith('List') && (Array.isArray(items) || items === null)) {
    return (items ?? []).flatMap((item: unknown, index) =>
      objectsIn(itemOf({ apiVersion, kind }, item), [...path, 'items', index], context),
    );
  }
  const { name, namespace, generateName, annotations } = fieldsOf(metadata);
  const place = placeOf([...path, 'metadata', 'name']);
  if (typeof name !== 'string' || !NAME.test(name)) {
    const why = generateName === undefined ? 'it cannot be applied' : 'generateName cannot be applied';
    const what = name === undefined ? `${kind} has no metadata.name` : 'metadata.name is not a name';
    error('name', name === undefined ? placeOf([...path, 'kind']) : place, `${what}: ${why}`, 'write metadata.name');
    return [];
  }
  const isNamed = namespace !== undefined && namespace !== null && namespace !== '';
  if (isNamed && (typeof namespace !== 'string' || !NAMESPACE.test(namespace))) {
    error('namespace', placeOf([...path, 'metadata', 'namespace']), 'metadata.namespace is not a name of a namespace');
    return [];
  }
  const object = { apiVersion, kind, namespace: isNamed ? namespace : undefined, name, value, place };
  if (isCurlews(object)) {
    error('own', place, `${kind} ${name} is a record of curlew itself`, 'delete it from the manifest');
    return [];
  }
  const own = Object.keys(isObject(annotations) ? annotations : {}).find((key) => key.startsWith(ANNOTATION_PREFIX));
  if (kind !== 'Namespace' || own === undefined) return [object];
  const at = placeOf([...path, 'metadata', 'annotations', own]);
  error('own', at, `the annotation ${own} says which version is installed`, 'delete it from the manifest');
  return [];
}

/** An item without apiVersion and kind has those of its list, as for kubectl: the items of a RoleList are Roles. */
function itemOf({ apiVersion, kind }: Pick<ManifestObject, 'apiVersion' | 'kind'>, item: unknown): unknown {
  if (!isObject(item) || kind === 'List') return item;
  const isUntyped = [item['apiVersion'], item['kind']].every((field) => (field ?? '') === '');
  return isUntyped ? { ...item, apiVersion, kind: kind.slice(0, -'List'.length) } : item;
}

/** Names of what installs on nodes keep there. */
const INSTALL_RECORDS = {
  namespace: 'kurl',
  names: ['curlew-records', 'kurl-current-config', 'kurl-last-config'],
} as const;

export const RECORD_NAMESPACES: readonly string[] = [CHANNEL_RECORDS.namespace, INSTALL_RECORDS.namespace];

/** Is it a record of curlew? In a manifest, the namespace may be missing. */
export function isCurlews({ kind, namespace, name }: Pick<ManifestObject, 'kind' | 'namespace' | 'name'>): boolean {
  if (!['ConfigMap', 'Secret', 'Lease'].includes(kind)) return false;
  const isIn = (own: string): boolean => namespace === undefined || namespace === own;
  return (
    (name === CHANNEL_RECORDS.name && isIn(CHANNEL_RECORDS.namespace)) ||
    (INSTALL_RECORDS.names.some((own) => own === name) && isIn(INSTALL_RECORDS.namespace))
  );
}

/** Kinds in the order in which others need them; the rest comes before the last ones, in the order of the manifest. */
const FIRST = [
  'Namespace',
  'CustomResourceDefinition',
  'PriorityClass',
  'StorageClass',
  'ResourceQuota',
  'LimitRange',
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
  'NetworkPolicy',
  'PodDisruptionBudget',
  'Secret',
  'ConfigMap',
  'PersistentVolume',
  'PersistentVolumeClaim',
  'Service',
  'DaemonSet',
  'Deployment',
  'StatefulSet',
  'Pod',
  'Job',
  'CronJob',
];
/** They concern requests for other objects, so their programs must run before. */
const LAST = [
  'APIService',
  'ValidatingAdmissionPolicy',
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
];

/** Kinds that must be served, or exist, before the objects that are in them: they are applied and waited for in two steps. */
export function definesOthers({ kind }: Pick<ManifestObject, 'kind'>): boolean {
  return kind === 'Namespace' || kind === 'CustomResourceDefinition';
}

/** Sorts objects into the order of application; deletion is the reverse. */
export function inApplyOrder<T extends Pick<ManifestObject, 'kind'>>(objects: readonly T[]): readonly T[] {
  const rank = ({ kind }: T): number => {
    if (LAST.includes(kind)) return FIRST.length + 1 + LAST.indexOf(kind);
    return FIRST.includes(kind) ? FIRST.indexOf(kind) : FIRST.length;
  };
  return objects.toSorted((a, b) => rank(a) - rank(b));
}
