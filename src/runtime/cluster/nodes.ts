/** The nodes of a cluster, and whether they stand in the way of an upgrade of Kubernetes. */
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { PreflightResult } from '../../preflight/judge.ts';
import { KUBERNETES } from '../hooks.ts';
import type { RunView } from '../prepare.ts';
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
const MOST_NAMED = 10;

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

/** As much of a run as is looked at. */
export interface NodesView extends Pick<RunView, 'records'> {
  readonly request: Pick<RunView['request'], 'kind'>;
  readonly plan: Pick<RunView['plan'], 'addons'>;
  readonly view: Pick<RunView['view'], 'cluster'>;
}

/**
 * kURL's preflight of the cluster (kurl.md 8.2): before another Kubernetes is put in the place of one that was installed
 * to the end, all nodes must be ready. Empty for other runs, where nothing is asked.
 */
export async function checkNodes({ request, records, plan, view }: NodesView): Promise<readonly PreflightResult[]> {
  const planned = plan.addons.find(({ ref }) => ref.name === KUBERNETES);
  const isUpgrade = planned?.mode === 'install' && records.applied[KUBERNETES]?.finished === true;
  if (request.kind !== 'install' || !isUpgrade || view.cluster === undefined) return [];
  const nodes = await view.cluster.readNodes();
  const away = nodes.filter(({ ready }) => ready === 'False' || ready === 'Unknown').map(({ name }) => name);
  const more = away.length - MOST_NAMED;
  const named = `${away.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const message = away.length === 0 ? 'All nodes are ready' : `Not ready, and Kubernetes is to be upgraded: ${named}`;
  const verdict = away.length === 0 ? 'pass' : 'fail';
  return [{ verdict, title: 'Nodes of the cluster', message, strict: false, spec: 'built-in' }];
}
