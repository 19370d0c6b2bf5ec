/** The objects of an add-on, as they are applied to a cluster. */
import { inApplyOrder, objectKey, readObjects, type ManifestObject } from '../channel/objects.ts';
import { addonId, type RecordedKind } from '../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import { titleOf } from '../kube/objects.ts';
import type { Discovery, Resource } from '../kube/resources.ts';
import { ADDON_LABEL, isPartial, type Addon, type Task } from './addon.ts';

/** An object of an add-on, with its label, its namespace and its kind in the cluster. */
export interface AddonObject {
  readonly key: string;
  readonly kind: string;
  readonly resource: Resource;
  /** Undefined for kinds without namespace. */
  readonly namespace: string | undefined;
  readonly name: string;
  readonly value: Readonly<Record<string, unknown>>;
  /** Ids of the add-ons that hand it over. */
  readonly former?: readonly string[];
}

/**
 * The objects of a manifest in the order of application. Kinds are those that the cluster serves, those that other add-ons of the
 * pass have `defined`, and those that the manifest itself defines. `MANIFEST_INVALID` for a manifest that cannot be read, or for a kind that is neither.
 */
export function addonObjects(
  { addon, record }: { readonly addon: Pick<Addon, 'namespace' | 'name' | 'objectNamespace'> } & Pick<Task, 'record'>,
  { location, content }: { readonly location: string; readonly content: Uint8Array },
  {
    namespace,
    ...discovery
  }: Discovery & {
    readonly defined: readonly Resource[];
    /** The namespace of the kubeconfig's context. */
    readonly namespace: string;
  },
): readonly AddonObject[] {
  const labels = { [ADDON_LABEL]: addonId(addon) };
  const stamp = { namespace: addon.objectNamespace ?? namespace, labels, recorded: record?.objects };
  return stampedObjects({ location, content }, stamp, discovery);
}

/** The objects of a release, which may have none, with what helm adds to them. */
export function releaseObjects(
  { name, namespace }: { readonly name: string; readonly namespace: string },
  manifest: string,
  discovery: Discovery,
): readonly AddonObject[] {
  // Only comments and separators.
  if (!/^[ \t]*[^\s#-]/m.test(manifest)) return [];
  const annotations = { 'meta.helm.sh/release-name': name, 'meta.helm.sh/release-namespace': namespace };
  const stamp = { namespace, labels: { 'app.kubernetes.io/managed-by': 'Helm' }, annotations };
  const location = `the manifest of release ${namespace}/${name}`;
  return stampedObjects({ location, content: Buffer.from(manifest) }, stamp, { ...discovery, defined: [] });
}

interface Stamp {
  /** The namespace of objects that name none, unless the add-on already has them in another one. */
  readonly namespace: string;
  readonly recorded?: readonly RecordedKind[] | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

function stampedObjects(
  { location, content }: { readonly location: string; readonly content: Uint8Array },
  stamp: Stamp,
  discovery: Discovery & { readonly defined: readonly Resource[] },
): readonly AddonObject[] {
  const { objects, diagnostics } = readObjects(location, content);
  if (objects === undefined) {
    const [first] = diagnostics.filter(({ severity }) => severity === 'error');
    const where = first === undefined ? '' : `line ${first.place.line}: ${first.message}`;
    throw new CurlewError('MANIFEST_INVALID', `cannot apply ${location}: ${where}`, { hint: first?.hint, diagnostics });
  }
  const resources = resourcesOf(objects, discovery);
  return inApplyOrder(objects).map((object) => {
    const resource = resources.get(`${object.apiVersion} ${object.kind}`);
    if (resource === undefined) throw unknownKind(object, discovery);
    const namespace = resource.namespaced ? (object.namespace ?? homeOf(object, objects, stamp)) : undefined;
    const { name, kind } = object;
    return {
      key: objectKey({ ...object, namespace }),
      kind,
      resource,
      namespace,
      name,
      value: stamped(object, namespace, stamp),
    };
  });
}

/** An object without a namespace is not moved: nothing would say that the one in the old namespace is still in use. */
function homeOf(object: ManifestObject, all: readonly ManifestObject[], { namespace, recorded = [] }: Stamp): string {
  const key = objectKey(object);
  const homes = recorded.flatMap(({ apiVersion, kind, objects }) =>
    objects.flatMap((one) => (objectKey({ apiVersion, kind, name: one.name }) === key ? (one.namespace ?? []) : [])),
  );
  const candidates = homes.filter(
    (home) => !all.some((one) => objectKey(one) === objectKey({ ...object, namespace: home })),
  );
  return candidates.includes(namespace) ? namespace : (candidates[0] ?? namespace);
}

function resourcesOf(
  objects: readonly ManifestObject[],
  { served, defined }: Pick<Discovery, 'served'> & { readonly defined: readonly Resource[] },
): ReadonlyMap<string, Resource> {
  const resources = new Map<string, Resource>();
  for (const resource of [...served, ...defined, ...objects.flatMap(definedKinds)].toReversed()) {
    resources.set(`${resource.apiVersion} ${resource.kind}`, resource);
  }
  return resources;
}

/** The kinds of a CustomResourceDefinition. */
export function definedKinds({
  kind,
  value,
}: Pick<ManifestObject, 'kind'> & Pick<AddonObject, 'value'>): readonly Resource[] {
  const spec = value['spec'];
  if (kind !== 'CustomResourceDefinition' || !isObject(spec)) return [];
  const { group, names, scope, versions } = spec;
  if (typeof group !== 'string' || !isObject(names) || !Array.isArray(versions)) return [];
  const { kind: defined, plural } = names;
  if (typeof defined !== 'string' || typeof plural !== 'string') return [];
  return (versions as readonly unknown[]).flatMap((version): readonly Resource[] => {
    if (!isObject(version) || typeof version['name'] !== 'string' || version['served'] === false) return [];
    const apiVersion = `${group}/${version['name']}`;
    return [{ apiVersion, kind: defined, plural, namespaced: scope !== 'Cluster' }];
  });
}

function unknownKind({ apiVersion, kind, place }: ManifestObject, { served, broken }: Discovery): CurlewError {
  const title = `${apiVersion} ${kind}`;
  const what = `cannot apply ${place.file}: line ${place.line}: the cluster has no ${title}`;
  if (broken.includes(apiVersion)) {
    return new CurlewError('CLUSTER_FAILED', `${what} now: its aggregated API does not respond`, {
      hint: `kubectl get apiservices shows why; then run the same command again`,
    });
  }
  const others = served.filter((one) => one.kind === kind).map((one) => one.apiVersion);
  const near = nearest(
    kind,
    served.map((one) => one.kind),
  );
  const hint =
    others.length > 0
      ? `it serves ${kind} as ${[...new Set(others)].join(', ')}`
      : near === undefined
        ? 'apply the add-on that defines this kind first (requires in a channel, dependsOn in a fleet)'
        : `did you mean "${near}"?`;
  return new CurlewError('MANIFEST_INVALID', what, { hint });
}

function stamped(
  { value }: ManifestObject,
  namespace: string | undefined,
  stamp: Stamp,
): Readonly<Record<string, unknown>> {
  const { namespace: _given, labels, annotations, ...others } = fieldsOf(value['metadata']);
  const named = {
    ...others,
    ...(namespace === undefined ? {} : { namespace }),
    labels: { ...fieldsOf(labels), ...stamp.labels },
  };
  const { status: _status, ...rest } = value;
  const existing = isObject(annotations) ? annotations : undefined;
  if (existing === undefined && stamp.annotations === undefined) return { ...rest, metadata: named };
  return { ...rest, metadata: { ...named, annotations: { ...existing, ...stamp.annotations } } };
}

export function titleOfObject({ resource, namespace, name }: AddonObject): string {
  return titleOf(resource, { namespace, name });
}

/** All, or only what is missing or was changed. */
export function chosenObjects(
  objects: readonly AddonObject[],
  task: Pick<Task, 'action' | 'look'>,
): readonly AddonObject[] {
  if (!isPartial(task)) return objects;
  const { action, look } = task;
  const chosen = new Set(action === 'restore' ? look.missing : [...look.missing, ...look.changed]);
  return objects.filter((object) => chosen.has(titleOfObject(object)));
}
