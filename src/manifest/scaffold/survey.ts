/** Collects facts about the resources of a YAML text for a new add-on. Pure. */
import { finder } from '../rules.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { parseImageRef } from '../../core/image-ref.ts';
import { compareText } from '../../core/ref.ts';
import { otherFile } from './not-resources.ts';
import { placer, type Remark, addFindings } from '../lint/spot.ts';
import { collectImages, type NamedImages } from '../lint/yaml-images.ts';
import { eachDocument, type YamlDocument } from '../lint/yaml-text.ts';

export interface Workload {
  readonly name: string;
  readonly namespace: string | undefined;
}

export interface Survey {
  /** Image references in the order of the text. */
  readonly images: readonly string[];
  /** Namespaces that objects name, most frequent first. */
  readonly namespaces: readonly string[];
  /** Namespaces that the text creates. */
  readonly createdNamespaces: readonly string[];
  readonly deployments: readonly Workload[];
  /** Number of namespaced objects without a namespace. */
  readonly homeless: number;
}

const NAMESPACED: ReadonlySet<string> = new Set(
  (
    'ConfigMap CronJob DaemonSet Deployment Endpoints HorizontalPodAutoscaler Ingress Job LimitRange NetworkPolicy ' +
    'PersistentVolumeClaim Pod PodDisruptionBudget ReplicaSet ReplicationController ResourceQuota Role RoleBinding ' +
    'Secret Service ServiceAccount StatefulSet'
  ).split(' '),
);

/** Syntax that only a chart's renderer understands. */
const CHART_TEMPLATE = /\{\{-?\s*(?:\.(?:Values|Release|Chart)\.|include\s|template\s)/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Argument with an image for pods that a program starts: `--agent-image=…`. */
const ARGUMENT = /^--?[A-Za-z0-9-]*(?:image|reloader)[A-Za-z0-9-]*=(\S+)$/;
const HOSTED = /^[^/]*[.:][^/]*\/.*(?::[^/]+$|@)/;

interface Gathering {
  readonly objects: KubernetesObject[];
  readonly images: NamedImages;
  readonly fromArguments: string[];
}

/**
 * Parses resources. `path` names the text in messages. Throws `MANIFEST_INVALID` with places for text that does not parse, is
 * too large, contains no Kubernetes resource, or must be rendered first.
 */
export function surveyResources(path: string, text: string): Survey {
  const remarks: Remark[] = [];
  const gathered: Gathering = { objects: [], images: { uses: [], rewrites: [], remarks: [] }, fromArguments: [] };
  const template = CHART_TEMPLATE.exec(text);
  if (template !== null) {
    const at = { from: template.index, to: template.index + template[0].length };
    const message = 'a chart template that is not rendered';
    throw refused(path, text, [{ code: 'yaml/template', ...at, message, hint: 'use the chart itself' }]);
  }
  eachDocument(
    text,
    (remark) => remarks.push(remark),
    (document) => {
      remarks.push(...gather(document, gathered));
    },
    { all: true },
  );
  const bad = remarks.filter(({ code }) => code.startsWith('yaml/') && code !== 'yaml/duplicate-key');
  if (bad.length > 0) throw refused(path, text, bad);
  if (gathered.objects.length === 0) {
    throw new CurlewError('MANIFEST_INVALID', `cannot read ${path}: it contains no Kubernetes resource`);
  }
  const images = [...gathered.images.uses.map((use) => use.text), ...gathered.fromArguments];
  return { images, ...placesOf(gathered.objects) };
}

function refused(path: string, text: string, remarks: readonly Remark[]): CurlewError {
  const diagnostics: Diagnostic[] = [];
  addFindings(
    remarks,
    placer(path, () => text),
    finder((diagnostic) => diagnostics.push({ ...diagnostic, severity: 'error' })),
  );
  const hint = 'correct it, or leave it out';
  return new CurlewError('MANIFEST_INVALID', `cannot read ${path}: it cannot be used`, { diagnostics, hint });
}

function gather({ tree, base, template }: YamlDocument, gathered: Gathering): readonly Remark[] {
  const wrong = (message: string, hint?: string): readonly Remark[] => [
    { code: 'yaml/syntax', from: base, to: base + 3, message, hint },
  ];
  let value: unknown;
  try {
    value = tree.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    if (!(error instanceof ReferenceError || error instanceof RangeError || error instanceof TypeError)) throw error;
    return wrong('its aliases expand too much, or to nothing', 'write it without anchors');
  }
  if (value === null || value === undefined) return [];
  const other = otherFile(value);
  if (other !== undefined) return wrong(other.message, other.hint);
  const objects = objectsIn(value);
  if (objects === undefined) return wrong('not a Kubernetes resource: no apiVersion and kind');
  gathered.objects.push(...objects);
  collectImages({ tree, base, template }, gathered.images);
  for (const text of stringsIn(value)) {
    const [, reference = ''] = ARGUMENT.exec(text) ?? [];
    if (HOSTED.test(reference) && typeof parseImageRef(reference) !== 'string') gathered.fromArguments.push(reference);
  }
  return [];
}

function placesOf(objects: readonly KubernetesObject[]): Omit<Survey, 'images'> {
  const counts = new Map<string, number>();
  const createdNamespaces: string[] = [];
  const deployments: Workload[] = [];
  let homeless = 0;
  for (const { apiVersion, kind, metadata } of objects) {
    const { name, namespace } = fieldsOf(metadata);
    const home = typeof namespace === 'string' && LABEL.test(namespace) ? namespace : undefined;
    if (home !== undefined) counts.set(home, (counts.get(home) ?? 0) + 1);
    else if (NAMESPACED.has(kind)) homeless += 1;
    if (typeof name !== 'string' || !LABEL.test(name)) continue;
    if (kind === 'Namespace' && apiVersion === 'v1') createdNamespaces.push(name);
    if (kind === 'Deployment' && apiVersion === 'apps/v1') deployments.push({ name, namespace: home });
  }
  const namespaces = [...counts].toSorted(([a, one], [b, two]) => two - one || compareText(a, b)).map(([name]) => name);
  return { namespaces, createdNamespaces, deployments, homeless };
}

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: unknown;
}

/** Limit of alias expansion in a document. */
const MAX_ALIASES = 100;
const MAX_VALUES = 200_000;

/** The object itself, or the items of a list; undefined if it is neither. Lists may nest once. */
function objectsIn(value: unknown, { deeper = 2 } = {}): readonly KubernetesObject[] | undefined {
  if (!isObject(value)) return undefined;
  const { apiVersion, kind, metadata, items } = value;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || apiVersion === '' || kind === '') return undefined;
  if (!kind.endsWith('List') || !Array.isArray(items)) return [{ apiVersion, kind, metadata }];
  const objects: KubernetesObject[] = [];
  for (const item of items as readonly unknown[]) {
    const inner = deeper > 0 ? objectsIn(item, { deeper: deeper - 1 }) : undefined;
    if (inner === undefined) return undefined;
    objects.push(...inner);
  }
  return objects;
}

/** Every text that is an item of a list. */
function stringsIn(value: unknown): readonly string[] {
  const strings: string[] = [];
  const stack: unknown[] = [value];
  for (let count = 0; count < MAX_VALUES; count += 1) {
    if (stack.length === 0) break;
    const next = stack.pop();
    if (Array.isArray(next)) {
      for (const item of next as readonly unknown[]) if (typeof item === 'string') strings.push(item);
      stack.push(...(next as readonly unknown[]).filter((item) => typeof item === 'object'));
    } else if (isObject(next)) {
      stack.push(...Object.values(next).filter((item) => typeof item === 'object'));
    }
  }
  return strings;
}
