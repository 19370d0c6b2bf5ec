/** What the resources of a YAML text are, as far as a new add-on needs to know it. Pure. */
import { isObject } from '../../core/json.ts';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { parseImageRef } from '../../core/image-ref.ts';
import { compareText } from '../../core/ref.ts';
import { placer, type Remark, tell } from '../lint/spot.ts';
import { collectImages, type NamedImages } from '../lint/yaml-images.ts';
import { eachDocument, type YamlDocument } from '../lint/yaml-text.ts';

export interface Workload {
  readonly name: string;
  readonly namespace: string | undefined;
}

export interface Survey {
  /** As they are written, in the order of the text. */
  readonly images: readonly string[];
  /** Namespaces that objects name, the most frequent first. */
  readonly namespaces: readonly string[];
  /** Namespaces that are made by the text itself. */
  readonly madeNamespaces: readonly string[];
  readonly deployments: readonly Workload[];
  /** Objects that live in a namespace and name none. */
  readonly homeless: number;
}

const NAMESPACED: ReadonlySet<string> = new Set(
  (
    'ConfigMap CronJob DaemonSet Deployment Endpoints HorizontalPodAutoscaler Ingress Job LimitRange NetworkPolicy ' +
    'PersistentVolumeClaim Pod PodDisruptionBudget ReplicaSet ReplicationController ResourceQuota Role RoleBinding ' +
    'Secret Service ServiceAccount StatefulSet'
  ).split(' '),
);

/** What only a chart's own renderer understands. */
const CHART_TEMPLATE = /\{\{-?\s*(?:\.(?:Values|Release|Chart)\.|include\s|template\s)/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** A program that starts pods by itself is told their images so: `--agent-image=…`. */
const ARGUMENT = /^--?[A-Za-z0-9-]*(?:image|reloader)[A-Za-z0-9-]*=(\S+)$/;
const HOSTED = /^[^/]*[.:][^/]*\/.*(?::[^/]+$|@)/;

interface Gathering {
  readonly objects: KubernetesObject[];
  readonly images: NamedImages;
  readonly fromArguments: string[];
}

/**
 * Reads resources. `path` is what messages call the text. Throws `MANIFEST_INVALID` with places for what does not parse,
 * is too much to be read, is no resource of Kubernetes, or is to be rendered first.
 */
export function surveyResources(path: string, text: string): Survey {
  const remarks: Remark[] = [];
  const gathered: Gathering = { objects: [], images: { uses: [], rewrites: [], remarks: [] }, fromArguments: [] };
  const template = CHART_TEMPLATE.exec(text);
  if (template !== null) {
    const at = { from: template.index, to: template.index + template[0].length };
    const message = 'a template of a chart, which helm has not rendered';
    throw refused(path, text, [{ code: 'yaml/template', ...at, message, hint: 'give the chart itself' }]);
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
    throw new CurlewError('MANIFEST_INVALID', `read ${path}: no resource of Kubernetes stands in it`);
  }
  const images = [...gathered.images.uses.map((use) => use.text), ...gathered.fromArguments];
  return { images, ...placesOf(gathered.objects) };
}

function refused(path: string, text: string, remarks: readonly Remark[]): CurlewError {
  const diagnostics: Diagnostic[] = [];
  tell(
    remarks,
    placer(path, () => text),
    (found) => diagnostics.push({ ...found, severity: 'error' }),
  );
  const hint = 'correct it, or leave it out';
  return new CurlewError('MANIFEST_INVALID', `read ${path}: it cannot be taken over`, { diagnostics, hint });
}

function gather({ tree, base, template }: YamlDocument, gathered: Gathering): readonly Remark[] {
  const wrong = (message: string, hint?: string): readonly Remark[] => [
    { code: 'yaml/syntax', from: base, to: base + 3, message, hint },
  ];
  let value: unknown;
  try {
    value = tree.toJS({ maxAliasCount: MOST_ALIASES });
  } catch (error) {
    if (!(error instanceof ReferenceError || error instanceof RangeError || error instanceof TypeError)) throw error;
    return wrong('its aliases stand for too much, or for nothing', 'write it without anchors');
  }
  if (value === null || value === undefined) return [];
  const objects = objectsIn(value);
  if (objects === undefined)
    return wrong('no resource of Kubernetes: no apiVersion and kind', 'values are no resources');
  if (objects.some(({ kind, apiVersion }) => kind === 'Kustomization' && apiVersion.startsWith('kustomize.'))) {
    return wrong('a kustomization, which only points at resources', 'render it first: kubectl kustomize FOLDER > FILE');
  }
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
  const madeNamespaces: string[] = [];
  const deployments: Workload[] = [];
  let homeless = 0;
  for (const { apiVersion, kind, metadata } of objects) {
    const { name, namespace } = isObject(metadata) ? metadata : {};
    const home = typeof namespace === 'string' && LABEL.test(namespace) ? namespace : undefined;
    if (home !== undefined) counts.set(home, (counts.get(home) ?? 0) + 1);
    else if (NAMESPACED.has(kind)) homeless += 1;
    if (typeof name !== 'string' || !LABEL.test(name)) continue;
    if (kind === 'Namespace' && apiVersion === 'v1') madeNamespaces.push(name);
    if (kind === 'Deployment' && apiVersion === 'apps/v1') deployments.push({ name, namespace: home });
  }
  const namespaces = [...counts].toSorted(([a, one], [b, two]) => two - one || compareText(a, b)).map(([name]) => name);
  return { namespaces, madeNamespaces, deployments, homeless };
}

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: unknown;
}

/** What the aliases of one document may stand for. */
const MOST_ALIASES = 100;
const MOST_VALUES = 200_000;

/** The object itself, or the items of a list; undefined when it is neither. Lists stand in lists at most once. */
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

/** Every text that stands as an item of a list. */
function stringsIn(value: unknown): readonly string[] {
  const found: string[] = [];
  const stack: unknown[] = [value];
  for (let count = 0; count < MOST_VALUES; count += 1) {
    if (stack.length === 0) break;
    const next = stack.pop();
    if (Array.isArray(next)) {
      for (const item of next as readonly unknown[]) if (typeof item === 'string') found.push(item);
      stack.push(...(next as readonly unknown[]).filter((item) => typeof item === 'object'));
    } else if (isObject(next)) {
      stack.push(...Object.values(next).filter((item) => typeof item === 'object'));
    }
  }
  return found;
}
