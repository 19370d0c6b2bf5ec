/** Waits until objects are healthy. */
import { healthOf, podTemplateOf, selectsPods, type ObjectHealth } from '../channel/health.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject, listOf } from '../../core/json.ts';
import { getObject, listObjects, titleOf } from '../kube/objects.ts';
import type { Resource } from '../kube/resources.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { AT_ONCE, type ChannelCluster } from './channel-cluster.ts';
import type { AddonObject } from './addon-objects.ts';
import type { AppliedObject } from './records.ts';
import type { Reporting } from './request.ts';
import { diagnose } from './diagnose.ts';

const LOOK_MS = 1000;
const FIRST_LOOK_MS = 100;

interface WaitOptions extends Reporting {
  /** All of the add-on, which say which Services need endpoints and which claims are mounted. */
  readonly objects: readonly AddonObject[];
  readonly timeoutMs: number;
  /** By the rules of Open Cluster Management. */
  readonly asOcm?: boolean | undefined;
}

interface Looked {
  readonly object: AppliedObject;
  readonly health: ObjectHealth;
}

/** Waits until objects are healthy; the errors say which are not, why, and what their pods report. */
export async function waitForHealth(
  cluster: Pick<ChannelCluster, 'call' | 'signal'>,
  applied: readonly AppliedObject[],
  { objects, timeoutMs, report, asOcm }: WaitOptions,
): Promise<readonly CurlewError[]> {
  const { signal } = cluster;
  const failures: Looked[] = [];
  let reported = '';
  const look = async (waiting: readonly AppliedObject[]): Promise<readonly Looked[]> => {
    const looked = await mapLimited(
      waiting,
      async (object) => ({ object, health: await currentHealth(cluster, object, objects, asOcm) }),
      { width: AT_ONCE, signal },
    );
    failures.push(...looked.filter(({ health }) => health.state === 'failed'));
    const progressing = looked.filter(({ health }) => health.state === 'progressing');
    const [first] = progressing;
    if (first === undefined) return progressing;
    const text = `${titleOf(first.object.resource, first.object.live.metadata)}: ${first.health.reason}`;
    if (text !== reported) report(progressing.length > 1 ? `${text} (and ${progressing.length - 1} more)` : text);
    reported = text;
    return progressing;
  };
  let waiting = applied;
  const late = await repeatUntil(
    async () => {
      const progressing = await look(waiting);
      waiting = progressing.map(({ object }) => object);
      return progressing;
    },
    (progressing) => progressing.length === 0,
    { firstMs: FIRST_LOOK_MS, maxMs: LOOK_MS, limitMs: timeoutMs, signal },
  );
  const all = [...failures, ...late.map((one) => ({ ...one, timeoutMs }))];
  return Promise.all(all.map(async (one) => unhealthy(cluster, one)));
}

async function unhealthy(
  cluster: Pick<ChannelCluster, 'call' | 'signal'>,
  {
    object: { resource, live },
    health,
    timeoutMs,
  }: { readonly object: AppliedObject; readonly health: ObjectHealth; readonly timeoutMs?: number },
): Promise<CurlewError> {
  const limit = timeoutMs === undefined ? '' : ` after ${Math.round(timeoutMs / 1000)} s`;
  const problems = await diagnose(cluster, resource, live);
  const lines = problems.map((line) => `\n  | ${line}`).join('');
  return new CurlewError(
    'CLUSTER_FAILED',
    `${titleOf(resource, live.metadata)} is not healthy${limit}: ${health.reason}${lines}`,
    {
      hint: 'fix the cause, then run the same command again; --timeout sets the limit',
    },
  );
}

/** What may create pods. */
type PodSource = Pick<AddonObject, 'kind' | 'namespace' | 'value'>;

/** An object that does not exist is being created or deleted by another process. */
export async function currentHealth(
  { call, signal }: Pick<ChannelCluster, 'call' | 'signal'>,
  { resource, live }: AppliedObject,
  objects: readonly PodSource[],
  asOcm = false,
): Promise<ObjectHealth> {
  signal.throwIfAborted();
  const { namespace, name } = live.metadata;
  // Only these change after they have been applied.
  const isStill = KINDS_WITHOUT_STATUS.has(resource.kind);
  const now = isStill ? live : await getObject(call, resource, { namespace, name });
  if (now === undefined) return { state: 'progressing', reason: 'does not exist' };
  const templates = objects
    .flatMap((object) => podTemplateOf(object) ?? [])
    .filter((one) => one.namespace === namespace);
  const isExpected = resource.kind === 'Service' && templates.some((template) => selectsPods(now, template));
  const hasEndpoints = isExpected ? await hasReadyEndpoints(call, { namespace, name }) : undefined;
  const isMounted = templates.some(({ claims }) => claims.includes(name));
  return healthOf(now, { hasEndpoints, isMounted, asOcm });
}

const KINDS_WITHOUT_STATUS = new Set([
  'ConfigMap',
  'Secret',
  'ServiceAccount',
  'Role',
  'RoleBinding',
  'ClusterRole',
  'ClusterRoleBinding',
]);
const SLICES: Resource = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
};

async function hasReadyEndpoints(
  call: ChannelCluster['call'],
  { namespace, name }: { readonly namespace: string | undefined; readonly name: string },
): Promise<boolean> {
  const slices = await listObjects(call, SLICES, { namespace, labelSelector: `kubernetes.io/service-name=${name}` });
  return (slices ?? []).some(({ endpoints }) =>
    listOf(endpoints).some(
      (endpoint) => isObject(endpoint) && isObject(endpoint['conditions']) && endpoint['conditions']['ready'] !== false,
    ),
  );
}
