/** Is an object of a cluster healthy, and if not, why not. Pure. */
import { fieldsOf, listOf } from '../../core/json.ts';

export interface ObjectHealth {
  readonly state: 'healthy' | 'progressing' | 'failed';
  /** For people; empty if it is healthy. */
  readonly reason: string;
}

/** Facts about the other objects of an add-on. */
export interface HealthContext {
  /** Are there ready endpoints of this Service? Undefined: nothing of the add-on has pods for it. */
  readonly hasEndpoints?: boolean | undefined;
  /** Does a workload of the add-on mount this claim? One that waits for its first consumer is otherwise healthy. */
  readonly isMounted?: boolean | undefined;
  /** By the rules of Open Cluster Management: {@link isWorkloadHealthy}. */
  readonly asOcm?: boolean | undefined;
}

/** One ready pod of a Deployment is enough, if it is to have any; a DaemonSet needs all. */
export function isWorkloadHealthy(kind: 'Deployment' | 'DaemonSet', desired: number, ready: number): boolean {
  return kind === 'Deployment' ? desired === 0 || ready >= 1 : ready === desired;
}

type Fields = Readonly<Record<string, unknown>>;

const HEALTHY: ObjectHealth = { state: 'healthy', reason: '' };
const progressing = (reason: string): ObjectHealth => ({ state: 'progressing', reason });
const failed = (reason: string): ObjectHealth => ({ state: 'failed', reason });

/** Conditions that kops and kstatus read: one that is False says that the object is not ready. */
const POSITIVE = new Set([
  'Available',
  'ContainersReady',
  'Established',
  'Healthy',
  'Initialized',
  'NamesAccepted',
  'PodScheduled',
  'Ready',
]);
const POSITIVE_OF: Readonly<Record<string, readonly string[]>> = {
  Gateway: ['Accepted', 'Programmed'],
  GatewayClass: ['Accepted'],
};

/** Their conditions, if there are any, say nothing about health. */
const ALWAYS = new Set([
  'ConfigMap',
  'Secret',
  'ServiceAccount',
  'HorizontalPodAutoscaler',
  'Role',
  'RoleBinding',
  'ClusterRole',
  'ClusterRoleBinding',
  'PriorityClass',
  'StorageClass',
]);

/**
 * The health of an object as the server returned it. Workloads are healthy when all their replicas are of the newest version and
 * available; objects of unknown kinds when none of their conditions denies it (the rule of kops). `failed` is what does not become
 * healthy by itself.
 */
export function healthOf(object: Fields, context: HealthContext = {}): ObjectHealth {
  const metadata = fieldsOf(object['metadata']);
  const kind = textOf(object['kind']);
  if (metadata['deletionTimestamp'] !== undefined) return progressing('is being deleted');
  if (ALWAYS.has(kind)) return HEALTHY;
  const [spec, status] = [fieldsOf(object['spec']), fieldsOf(object['status'])];
  const observed = status['observedGeneration'];
  const generation = metadata['generation'];
  if (typeof observed === 'number' && typeof generation === 'number' && observed < generation) {
    return progressing('its controller has not seen the change yet');
  }
  const rule = RULES[kind];
  return rule === undefined ? byConditions(kind, status) : rule({ spec, status, generation, observed }, context);
}

interface Parts {
  readonly spec: Fields;
  readonly status: Fields;
  readonly generation: unknown;
  readonly observed: unknown;
}

type Rule = (parts: Parts, context: HealthContext) => ObjectHealth;

const RULES: Readonly<Record<string, Rule>> = {
  Deployment: (parts, { asOcm = false }) => {
    const wanted = countOf(parts.spec['replicas'], 1);
    const ready = countOf(parts.status['readyReplicas'], 0);
    if (asOcm) return unseen(parts) ?? enough(isWorkloadHealthy('Deployment', wanted, ready), ready, wanted);
    const late = conditionOf(parts.status, 'Progressing', 'False');
    if (late !== undefined) return failed(late);
    return (
      unseen(parts) ??
      fewer(parts.status, 'updatedReplicas', wanted, 'updated') ??
      fewer(parts.status, 'availableReplicas', wanted, 'available') ??
      HEALTHY
    );
  },
  StatefulSet: (parts) => {
    const wanted = countOf(parts.spec['replicas'], 1);
    const strategy = fieldsOf(parts.spec['updateStrategy']);
    const partition = countOf(fieldsOf(strategy['rollingUpdate'])['partition'], 0);
    const updated = strategy['type'] === 'OnDelete' ? 0 : Math.max(0, wanted - partition);
    return (
      unseen(parts) ??
      fewer(parts.status, 'updatedReplicas', updated, 'updated') ??
      fewer(parts.status, 'readyReplicas', wanted, 'ready') ??
      HEALTHY
    );
  },
  DaemonSet: (parts, { asOcm = false }) => {
    const wanted = countOf(parts.status['desiredNumberScheduled'], 0);
    const ready = countOf(parts.status['numberReady'], 0);
    if (asOcm) return unseen(parts) ?? enough(isWorkloadHealthy('DaemonSet', wanted, ready), ready, wanted);
    const isManual = fieldsOf(parts.spec['updateStrategy'])['type'] === 'OnDelete';
    return (
      unseen(parts) ??
      fewer(parts.status, 'updatedNumberScheduled', isManual ? 0 : wanted, 'updated') ??
      fewer(parts.status, 'numberAvailable', wanted, 'available') ??
      HEALTHY
    );
  },
  Job: ({ spec, status }) => {
    const why = conditionOf(status, 'Failed', 'True');
    if (why !== undefined) return failed(why);
    if (spec['suspend'] === true || conditionOf(status, 'Complete', 'True') !== undefined) return HEALTHY;
    return progressing('has not completed');
  },
  Pod: ({ status }) => {
    const phase = textOf(status['phase']);
    if (phase === 'Succeeded') return HEALTHY;
    if (phase === 'Failed') return failed(`failed${detail(status)}`);
    const why = conditionOf(status, 'Ready', 'False') ?? conditionOf(status, 'PodScheduled', 'False');
    if (why !== undefined) return progressing(why);
    return conditionOf(status, 'Ready', 'True') === undefined ? progressing('is not ready') : HEALTHY;
  },
  PersistentVolumeClaim: ({ status }, { isMounted = false }) => {
    const phase = textOf(status['phase']);
    if (phase === 'Lost') return failed('has lost its volume');
    return phase === 'Bound' || !isMounted ? HEALTHY : progressing('has no volume yet');
  },
  Service: (_, { hasEndpoints }) => (hasEndpoints === false ? progressing('has no ready endpoints') : HEALTHY),
  Namespace: ({ status }) => (status['phase'] === 'Terminating' ? progressing('is being deleted') : HEALTHY),
  CustomResourceDefinition: ({ status }) => {
    const refused = conditionOf(status, 'NamesAccepted', 'False');
    if (refused !== undefined) return failed(refused);
    return conditionOf(status, 'Established', 'True') === undefined ? progressing('is not established') : HEALTHY;
  },
  APIService: ({ status }) => {
    if (conditionOf(status, 'Available', 'True') !== undefined) return HEALTHY;
    return progressing(conditionOf(status, 'Available', 'False') ?? 'is not available');
  },
};

/** Before their controller has written a status, workloads have none. */
function unseen({ generation, observed }: Parts): ObjectHealth | undefined {
  return typeof generation === 'number' && typeof observed !== 'number'
    ? progressing('its controller has not seen it yet')
    : undefined;
}

function enough(is: boolean, count: number, wanted: number): ObjectHealth {
  return is ? HEALTHY : progressing(`${count} of ${wanted} ready`);
}

function fewer(status: Fields, field: string, wanted: number, what: string): ObjectHealth | undefined {
  const count = countOf(status[field], 0);
  return count < wanted ? progressing(`${count} of ${wanted} ${what}`) : undefined;
}

function byConditions(kind: string, status: Fields): ObjectHealth {
  const types = [...POSITIVE, ...(POSITIVE_OF[kind] ?? [])];
  for (const type of types) {
    const why = conditionOf(status, type, 'False');
    if (why !== undefined) return progressing(why);
  }
  return HEALTHY;
}

/** The text of a condition, if it has this status: `Available: False (MinimumReplicasUnavailable): …`. */
function conditionOf(status: Fields, type: string, wanted: 'True' | 'False'): string | undefined {
  const conditions = status['conditions'];
  if (!Array.isArray(conditions)) return undefined;
  const condition = (conditions as readonly unknown[]).map(fieldsOf).find((one) => one['type'] === type);
  return condition?.['status'] === wanted ? `${type} is ${wanted}${detail(condition)}` : undefined;
}

function detail(condition: Fields): string {
  const [reason, message] = [textOf(condition['reason']), textOf(condition['message'])];
  const texts = [reason, message].filter((text) => text !== '');
  return texts.length === 0 ? '' : `: ${texts.join(', ')}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function countOf(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}

/** Pods that a workload of a manifest creates: their labels, and the claims that they mount. */
export interface PodTemplate {
  readonly namespace: string | undefined;
  readonly labels: Fields;
  readonly claims: readonly string[];
}

const WORKLOADS = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Job', 'Pod']);

/** Undefined for what creates no pods, or none now. */
export function podTemplateOf({
  kind,
  namespace,
  value,
}: {
  readonly kind: string;
  readonly namespace: string | undefined;
  readonly value: Fields;
}): PodTemplate | undefined {
  const spec = fieldsOf(value['spec']);
  if (!WORKLOADS.has(kind) || spec['replicas'] === 0) return undefined;
  const pod = kind === 'Pod' ? value : fieldsOf(spec['template']);
  const volumes = fieldsOf(pod['spec'])['volumes'];
  const claims = listOf(volumes).map((volume) => fieldsOf(fieldsOf(volume)['persistentVolumeClaim'])['claimName']);
  return {
    namespace,
    labels: fieldsOf(fieldsOf(pod['metadata'])['labels']),
    claims: claims.filter((claim) => typeof claim === 'string'),
  };
}

/** Does a Service select these pods? */
export function selectsPods(service: Fields, { labels }: PodTemplate): boolean {
  const selector = Object.entries(fieldsOf(fieldsOf(service['spec'])['selector']));
  return selector.length > 0 && selector.every(([key, value]) => labels[key] === value);
}
