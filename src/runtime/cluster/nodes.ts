/** The nodes of a cluster, and whether they stand in the way of an upgrade of Kubernetes. */
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { KubeApi } from '../../kube/api.ts';
import { apiPath } from '../../kube/path.ts';

export interface ClusterNode {
  readonly name: string;
  /** `True`, `False` or `Unknown`, as its condition Ready is; empty where it has none yet. */
  readonly ready: string;
  readonly controlPlane: boolean;
}

/** Labels of nodes with an API server, by kubeadm of today and before 1.24. */
const CONTROL_PLANE = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];

const PAGE = 100;
const MOST_PAGES = 100;

/** `CLUSTER_FAILED` when the API server does not give the list. */
export async function readNodes(
  api: KubeApi,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly ClusterNode[]> {
  const nodes: ClusterNode[] = [];
  let next = '';
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const path =
      next === '' ? apiPath`/api/v1/nodes?limit=${PAGE}` : apiPath`/api/v1/nodes?limit=${PAGE}&continue=${next}`;
    const answer = await api.ask({ verb: 'get', path }, { signal });
    if (answer.kind === 'problem') {
      throw new CurlewError('CLUSTER_FAILED', `list the nodes: ${answer.said}`, { hint: answer.hint });
    }
    const { items, metadata } = isObject(answer.value) ? answer.value : {};
    if (Array.isArray(items)) nodes.push(...items.map(nodeOf));
    next = isObject(metadata) && typeof metadata['continue'] === 'string' ? metadata['continue'] : '';
    if (next === '') break;
  }
  return nodes;
}

function nodeOf(item: unknown): ClusterNode {
  const { metadata, status } = isObject(item) ? item : {};
  const name = isObject(metadata) && typeof metadata['name'] === 'string' ? metadata['name'] : '?';
  const conditions: unknown = isObject(status) ? status['conditions'] : undefined;
  const found = (Array.isArray(conditions) ? conditions : []).find((one) => isObject(one) && one['type'] === 'Ready');
  const labels = isObject(metadata) && isObject(metadata['labels']) ? metadata['labels'] : {};
  const controlPlane = CONTROL_PLANE.some((label) => Object.hasOwn(labels, label));
  return { name, ready: isObject(found) && typeof found['status'] === 'string' ? found['status'] : '', controlPlane };
}
