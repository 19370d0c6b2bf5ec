/** The objects of a cluster that `prune` of an entry selects, and those that no prune deletes. Pure. */
import type { PruneKind } from './channel.ts';
import { inApplyOrder, isCurlews, objectKey, RECORD_NAMESPACES, type ManifestObject } from './objects.ts';

/** An object of a cluster, as far as prune looks at it. */
export interface Prunable extends Pick<ManifestObject, 'apiVersion' | 'kind' | 'namespace' | 'name'> {
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * The objects that the kinds select and the manifest does not have, in the order of deletion. What is protected is not among them.
 */
export function prune<T extends Prunable>(
  { kinds, keptKeys }: { readonly kinds: readonly PruneKind[]; readonly keptKeys: ReadonlySet<string> },
  live: readonly T[],
): readonly T[] {
  const orphans = live.filter(
    (object) =>
      !keptKeys.has(objectKey(object)) &&
      kinds.some((kind) => isSelected(kind, object)) &&
      protection(object) === undefined,
  );
  return inApplyOrder(orphans).toReversed();
}

function isSelected({ group, kind, namespaces, labelSelector }: PruneKind, object: Prunable): boolean {
  const { namespace = '' } = object;
  return (
    objectKey(object).startsWith(`${group}/${kind}/`) &&
    (namespaces.length === 0 || namespaces.includes(namespace)) &&
    (parseSelector(labelSelector)?.every((test) => test(object.labels)) ?? false)
  );
}

/** Does it select all objects of the kind, wherever they are? */
export function isBare({ namespaces, labelSelector }: Pick<PruneKind, 'namespaces' | 'labelSelector'>): boolean {
  return namespaces.length === 0 && parseSelector(labelSelector)?.length === 0;
}

/** Kinds of Kubernetes itself that are in no namespace, by group. */
const CLUSTER_KINDS: Readonly<Record<string, readonly string[]>> = {
  '': ['Namespace', 'Node', 'PersistentVolume'],
  'admissionregistration.k8s.io': [
    'MutatingWebhookConfiguration',
    'ValidatingAdmissionPolicy',
    'ValidatingAdmissionPolicyBinding',
    'ValidatingWebhookConfiguration',
  ],
  'apiextensions.k8s.io': ['CustomResourceDefinition'],
  'apiregistration.k8s.io': ['APIService'],
  'certificates.k8s.io': ['CertificateSigningRequest'],
  'flowcontrol.apiserver.k8s.io': ['FlowSchema', 'PriorityLevelConfiguration'],
  'networking.k8s.io': ['IngressClass'],
  'node.k8s.io': ['RuntimeClass'],
  'rbac.authorization.k8s.io': ['ClusterRole', 'ClusterRoleBinding'],
  'scheduling.k8s.io': ['PriorityClass'],
  'storage.k8s.io': ['CSIDriver', 'CSINode', 'StorageClass', 'VolumeAttachment'],
};

/** Does it name namespaces for a kind that is in none? */
export function isNowhere({ group, kind, namespaces }: Pick<PruneKind, 'group' | 'kind' | 'namespaces'>): boolean {
  return namespaces.length > 0 && Object.hasOwn(CLUSTER_KINDS, group) && CLUSTER_KINDS[group]?.includes(kind) === true;
}

const KEY = String.raw`[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?`;
const VALUE = String.raw`[A-Za-z0-9._-]*`;
const EXISTS = new RegExp(`^(?<not>!?)\\s*(?<key>${KEY})$`);
const EQUALS = new RegExp(`^(?<key>${KEY})\\s*(?<not>!?)==?\\s*(?<value>${VALUE})$`);
const ONE_OF = new RegExp(`^(?<key>${KEY})\\s+(?<not>not)?in\\s*\\((?<values>[^()]*)\\)$`);

const MAX_SELECTOR = 4096;

type LabelTest = (labels: Prunable['labels']) => boolean;

/** A label selector of Kubernetes, without `<` and `>`: all tests must be true. Undefined if it cannot be read. */
export function parseSelector(selector: string): readonly LabelTest[] | undefined {
  if (selector.trim() === '') return [];
  if (selector.length > MAX_SELECTOR) return undefined;
  const tests: LabelTest[] = [];
  for (const part of selector.split(/,(?![^(]*\))/)) {
    const groups = (EXISTS.exec(part.trim()) ?? EQUALS.exec(part.trim()) ?? ONE_OF.exec(part.trim()))?.groups;
    if (groups === undefined) return undefined;
    const { key = '', not = '', value, values = value } = groups;
    const wanted = values?.split(',').map((one) => one.trim());
    // An object without the label fulfills "is not".
    tests.push((labels) => {
      const has = Object.hasOwn(labels, key) && (wanted?.includes(labels[key] ?? '') ?? true);
      return has === (not === '');
    });
  }
  return tests;
}

/** Objects that have it stay when their add-on is removed, as in Open Cluster Management. */
export const DELETION_ORPHAN = 'addon.open-cluster-management.io/deletion-orphan';

/** Helm's own records of releases. */
const HELM_RECORD = /^sh\.helm\.release\.v\d+\./;

/** Why no prune deletes an object; undefined: it may. */
export function protection(object: Prunable): string | undefined {
  const { kind, namespace, name, labels } = object;
  const isConfig = kind === 'Secret' || kind === 'ConfigMap';
  if (isCurlews(object) || (kind === 'Namespace' && RECORD_NAMESPACES.includes(name)))
    return 'curlew keeps its records there';
  if (isConfig && (labels['owner'] === 'helm' || HELM_RECORD.test(name))) return 'Helm keeps a release there';
  const isMade =
    labels['kubernetes.io/bootstrapping'] !== undefined ||
    (kind === 'ConfigMap' && name === 'kube-root-ca.crt') ||
    (kind === 'ServiceAccount' && name === 'default') ||
    (kind === 'Service' && namespace === 'default' && name === 'kubernetes');
  return isMade ? 'Kubernetes itself creates it' : undefined;
}
