/** AddOnTemplate and AddOnDeploymentConfig of Open Cluster Management -> the objects of one cluster. Pure. */
import { DELETION_ORPHAN } from '../../cluster/channel/prune.ts';
import { fieldsOf, isObject, listOf } from '../../core/json.ts';
import { fits, type Read } from '../../core/schema.ts';
import {
  TEMPLATE_VALUES,
  VARIABLE,
  type DeploymentConfig,
  type deleteOption,
  type Template,
} from './addon-template.ts';
import { secretOf, signerOf } from './registration.ts';

/** What an add-on is made from on one cluster; of each list, the last layer of the configuration wins. */
export interface TemplateValues {
  readonly templates?: readonly Template[];
  readonly configs?: readonly DeploymentConfig[];
}

type Fields = Readonly<Record<string, unknown>>;
type Registry = NonNullable<DeploymentConfig['registries']>[number];

/** The API server of a hub sets it where a configuration names none. */
const DEFAULT_NAMESPACE = 'open-cluster-management-agent-addon';
const HUB_KUBECONFIG = '/managed/hub-kubeconfig/kubeconfig';
const PRE_DELETE = 'addon.open-cluster-management.io/addon-pre-delete';

/** What an add-on is on a cluster. */
export interface TemplateObjects {
  readonly objects: readonly Fields[];
  /** What runs before it is removed, and is no part of it until then. */
  readonly hooks: readonly Fields[];
  /** Where it is installed; undefined if that is up to each of its objects. */
  readonly namespace: string | undefined;
  /** It needs certificates of a hub. */
  readonly registers: boolean;
}

/** `addon`: its name at the hub. */
export function objectsOf(
  { templates: [template] = [], configs = [] }: TemplateValues,
  cluster: string,
  addon: string,
): TemplateObjects {
  const config = Object.assign({}, ...configs) as DeploymentConfig;
  const where = config.agentInstallNamespace ?? (configs.length > 0 ? DEFAULT_NAMESPACE : '');
  const variables = configs.flatMap(({ customizedVariables = [] }) => customizedVariables);
  const chosenValues = Object.fromEntries(variables.map(({ name, value }) => [name, value]));
  const registrations = template?.registration ?? [];
  const secrets = registrations.map((one) => secretOf(addon, signerOf(one)));
  const builtin = {
    CLUSTER_NAME: cluster,
    ...(where !== '' && { INSTALL_NAMESPACE: where }),
    ...(secrets.length > 0 && { HUB_KUBECONFIG: chosenValues['HUB_KUBECONFIG'] ?? HUB_KUBECONFIG }),
  };
  const known = { ...chosenValues, ...builtin };
  const { workload: { manifests = [] } = {}, deleteOption: orphans = {} } = template?.agentSpec ?? {};
  const objects: Fields[] = [];
  const hooks: Fields[] = [];
  for (const manifest of manifests) {
    const object = { ...(substituted(manifest, known) as Fields) };
    const metadata = { ...fieldsOf(object['metadata']) };
    const [marks, ownLabels] = [fieldsOf(metadata['annotations']), fieldsOf(metadata['labels'])];
    if (where !== '') moveTo(where, object, metadata);
    if (isOrphan(metadata, orphans)) metadata['annotations'] = { ...marks, [DELETION_ORPHAN]: '' };
    const isHook = PRE_DELETE in marks || 'open-cluster-management.io/addon-pre-delete' in ownLabels;
    (isHook ? hooks : objects).push(withPods({ ...object, metadata }, { config, builtin, secrets }));
  }
  const registers = secrets.length > 0;
  const home = where !== '' ? where : registers ? homeOf(objects) : undefined;
  return { objects, hooks, namespace: home, registers };
}

/** Where an add-on is installed; undefined if that is up to each of its objects, or its values cannot be read. */
export function namespaceIn(
  values: unknown,
  { cluster, addon }: { readonly cluster: string; readonly addon: string },
): string | undefined {
  return fits(TEMPLATE_VALUES, values) ? objectsOf(values, cluster, addon).namespace : undefined;
}

/** Where its first Deployment is, or else its first DaemonSet. */
function homeOf(objects: readonly Fields[]): string {
  const [first] = ['Deployment', 'DaemonSet'].flatMap((kind) => objects.filter((one) => one['kind'] === kind));
  const namespace = fieldsOf(first?.['metadata'])['namespace'];
  return typeof namespace === 'string' && namespace !== '' ? namespace : DEFAULT_NAMESPACE;
}

/** A variable that no configuration has is empty, as on a hub. Other text in braces stays. */
function substituted(value: unknown, known: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') {
    const name = new RegExp(String.raw`\{\{ *(${VARIABLE}) *\}\}`, 'g');
    return value.replace(name, (_, variable: string) =>
      Object.hasOwn(known, variable) ? (known[variable] ?? '') : '',
    );
  }
  if (Array.isArray(value)) return value.map((item) => substituted(item, known));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, substituted(item, known)]));
}

/** Changes both: what has a namespace, names it as a subject, or is it, moves to `where`. */
function moveTo(where: string, object: Record<string, unknown>, metadata: Record<string, unknown>): void {
  const { kind, subjects } = object;
  if (typeof metadata['namespace'] === 'string' && metadata['namespace'] !== '') metadata['namespace'] = where;
  if (kind === 'Namespace') metadata['name'] = where;
  if ((kind !== 'RoleBinding' && kind !== 'ClusterRoleBinding') || !Array.isArray(subjects)) return;
  object['subjects'] = subjects.map((one: unknown) => (isObject(one) ? { ...one, namespace: where } : one));
}

/** Rules are compared without the resource: rather keep one object too many. */
function isOrphan({ name, namespace: own = '' }: Fields, option: Read<typeof deleteOption>): boolean {
  const { propagationPolicy, selectivelyOrphans: { orphaningRules = [] } = {} } = option;
  if (propagationPolicy !== 'SelectivelyOrphan') return propagationPolicy === 'Orphan';
  return orphaningRules.some((one) => one.name === name && (one.namespace ?? '') === own);
}

interface Pods {
  readonly config: DeploymentConfig;
  readonly builtin: Readonly<Record<string, string>>;
  readonly secrets: readonly ReturnType<typeof secretOf>[];
}

/** Deployments and DaemonSets with what the configuration says about their pods, and with their certificates. */
function withPods(object: Fields, { config, builtin, secrets }: Pods): Fields {
  const { kind } = object;
  if (kind !== 'Deployment' && kind !== 'DaemonSet') return object;
  const { nodePlacement = {}, registries = [], proxyConfig = {}, resourceRequirements = [] } = config;
  const { httpProxy, httpsProxy, noProxy } = proxyConfig;
  const proxies = Object.entries({ HTTP_PROXY: httpProxy, HTTPS_PROXY: httpsProxy, NO_PROXY: noProxy });
  const env = [
    ...Object.entries(builtin),
    ...proxies.flatMap(([name, value]) =>
      value
        ? [
            [name, value],
            [name.toLowerCase(), value],
          ]
        : [],
    ),
  ].map(([name, value]) => ({ name, value }));
  const spec = fieldsOf(object['spec']);
  const template = fieldsOf(spec['template']);
  const pods = fieldsOf(template['spec']);
  const id = `${kind.toLowerCase()}s:${String(fieldsOf(object['metadata'])['name'])}`;
  const changed = (field: string, isMain: boolean): Fields => {
    const { [field]: containers } = pods;
    if (!Array.isArray(containers)) return {};
    const mounts = secrets.map(({ volume, mountPath }) => ({ name: volume, mountPath }));
    const all = containers.filter(isObject).map((container): Fields => {
      const { image, name, env: own, volumeMounts } = container;
      const needs = resourceRequirements.findLast(({ containerID }) => isMeant(containerID, `${id}:${String(name)}`));
      return {
        ...container,
        ...(typeof image === 'string' && { image: mirrored(image, registries) }),
        ...(isMain && env.length > 0 && { env: [...listOf(own), ...env] }),
        ...(isMain && mounts.length > 0 && { volumeMounts: [...listOf(volumeMounts), ...mounts] }),
        ...(isMain && needs && { resources: needs.resources }),
      };
    });
    return { [field]: all };
  };
  const volumes = secrets.map(({ volume, secretName }) => ({ name: volume, secret: { secretName } }));
  const placed = {
    ...pods,
    ...nodePlacement,
    ...changed('containers', true),
    ...changed('initContainers', false),
    ...(volumes.length > 0 && { volumes: [...listOf(pods['volumes']), ...volumes] }),
  };
  return { ...object, spec: { ...spec, template: { ...template, spec: placed } } };
}

function isMeant(pattern: string, id: string): boolean {
  const parts = id.split(':');
  return pattern.split(':').every((part, at) => part === '*' || part === parts[at]);
}

/** The last registry that changes an image wins. One without a source replaces all but the last part of the name. */
function mirrored(image: string, registries: readonly Registry[]): string {
  let replaced = image;
  for (const { source = '', mirror } of registries) {
    const [from, to] = [source, mirror].map((one) => one.replace(/\/$/, '')) as [string, string];
    if (from === '') replaced = [to, image.split('/').at(-1)].filter(Boolean).join('/');
    else if (image.startsWith(from)) replaced = `${to}${image.slice(from.length)}`;
  }
  return replaced;
}

/**
 * What a removal does: hooks are applied first, and all else stays while they run, and if they fail; what is left over once they have
 * ended well is what keeps an annotation.
 */
export function removalOf(
  { objects, hooks }: Pick<TemplateObjects, 'objects' | 'hooks'>,
  hook: 'running' | 'failed' | 'complete',
): { readonly applied: readonly Fields[]; readonly deleted: readonly Fields[]; readonly kept: readonly Fields[] } {
  const isKept = (object: Fields): boolean => DELETION_ORPHAN in fieldsOf(fieldsOf(object['metadata'])['annotations']);
  const isOver = hooks.length === 0 || hook === 'complete';
  return {
    applied: hooks,
    deleted: isOver ? [...objects.filter((one) => !isKept(one)), ...hooks] : [],
    kept: isOver ? objects.filter(isKept) : objects,
  };
}
