/** One add-on on a cluster: what applying it would change, and applying it. */
import { fieldChanges, withoutField, type FieldChange } from '../channel/difference.ts';
import { healthOf, podTemplateOf, selects, type Health } from '../channel/health.ts';
import { definesOthers } from '../channel/objects.ts';
import type { PlannedAddon } from '../channel/pass.ts';
import { CurlewError } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import { Refused } from '../kube/call.ts';
import {
  applyObject,
  getObject,
  listObjects,
  mergeObject,
  titleOf,
  type Applied,
  type LiveObject,
} from '../kube/objects.ts';
import { handedOver, type HandOver } from '../kube/managed-fields.ts';
import type { FieldConflict } from '../kube/problem.ts';
import type { Resource } from '../kube/resources.ts';
import { eachLimited, mapLimited } from '../platform/limit/each.ts';
import { AT_ONCE, managerOf, type AppliedObject, type ChannelCluster } from './cluster.ts';
import type { AddonObject } from './manifest.ts';
import { OwnedElsewhere } from './owners.ts';
import { predictTaking, takeFields } from './take-fields.ts';
import { troublesOf } from './troubles.ts';
import { pause } from '../platform/http/retry.ts';

export interface ApplyOptions {
  /** Takes fields from other managers. */
  readonly force: boolean;
  /** Fields that others have taken stay theirs. */
  readonly keep: boolean;
  /** Which former managers hand over their fields. */
  readonly handOver: HandOver;
  /** Of the wait for health. */
  readonly timeoutMs: number;
  readonly report: (text: string) => void;
}

export interface ObjectPreview {
  readonly object: AddonObject;
  readonly change: 'create' | 'change' | 'same';
  readonly fields: readonly FieldChange[];
  readonly conflicts: readonly FieldConflict[];
  /** Why the server refuses it. */
  readonly error: CurlewError | undefined;
  /** What is applied: without fields that others keep. */
  readonly value: AddonObject['value'];
  readonly former?: AddonObject['former'];
  /** Another program has applied it before, whose fields become those of the add-on. */
  readonly takesFields: boolean;
}

interface ApplyRights extends Pick<ApplyOptions, 'force' | 'keep' | 'handOver'> {
  readonly id: string;
  /** The add-ons that hand over an object that exists. */
  readonly formerOf?: (object: AddonObject, live: LiveObject) => readonly string[];
}

/** Compares objects with those of the cluster by server-side dry runs; changes nothing. */
export async function previewObjects(
  { call, signal }: ChannelCluster,
  objects: readonly AddonObject[],
  rights: ApplyRights,
): Promise<readonly ObjectPreview[]> {
  const preview = async (object: AddonObject): Promise<ObjectPreview> => {
    let change: ObjectPreview['change'] = 'change';
    const found = { object, fields: [], conflicts: [], error: undefined, value: object.value, takesFields: false };
    try {
      const before = await getObject(call, object.resource, object);
      const former = before === undefined ? [] : (rights.formerOf?.(object, before) ?? []);
      if (before === undefined) change = 'create';
      const { applied, value, takesFields } = await tryDryRun({ call }, { ...object, former }, { before, rights });
      // Its namespace or its kind comes with this add-on.
      if (applied.outcome === 'not found') return { ...found, change: 'create' };
      if (applied.outcome === 'conflict')
        return { ...found, change, conflicts: applied.fields, error: conflictError(object, applied) };
      const fields = fieldChanges(before, applied.object);
      const isSame = before !== undefined && fields.length === 0;
      return { ...found, former, value, fields, change: isSame ? 'same' : change, takesFields };
    } catch (error) {
      if (error instanceof Refused || error instanceof OwnedElsewhere) return { ...found, change, error };
      throw error;
    }
  };
  return mapLimited(objects, async (object) => preview(object), { width: AT_ONCE, signal });
}

/** Predicts an apply, also if it is the first one after another program's. */
async function tryDryRun(
  { call }: Pick<ChannelCluster, 'call'>,
  object: AddonObject,
  { before, rights }: { readonly before: LiveObject | undefined; readonly rights: ApplyRights },
): Promise<TriedApply & { readonly takesFields: boolean }> {
  const { id, force, keep } = rights;
  const found = tryApply({ call }, object, { id, force, keep, dryRun: true });
  const how = (object.former ?? []).length > 0 ? 'never' : rights.handOver;
  const entries = before && handedOver(before.metadata.managedFields, managerOf(id), how);
  if (before === undefined || entries === undefined) return { ...(await found), takesFields: false };
  try {
    const { applied, value } = await found;
    if (applied.outcome !== 'applied') return { applied, value, takesFields: false };
  } catch (error) {
    // It may be valid without what the other program set: a budget has either a minimum or a maximum.
    if (!(error instanceof Refused) || !error.isInvalid) throw error;
  }
  const applied = await predictTaking({ call }, object, { before, entries });
  return { applied, value: object.value, takesFields: true };
}

function conflictError(
  object: AddonObject,
  { said, fields }: { readonly said: string; readonly fields: readonly FieldConflict[] },
): CurlewError {
  const title = titleOf(object.resource, object);
  const shown = fields.slice(0, 3).map(({ field, manager }) => `${field} belongs to ${manager}`);
  const what = fields.length === 0 ? said : shown.join('; ') + (fields.length > 3 ? `; ${fields.length - 3} more` : '');
  return new CurlewError('CLUSTER_FAILED', `cannot apply ${title}: ${what}`, {
    hint: '--force-conflicts takes these fields; drift: Keep in the channel leaves them to their owner',
  });
}

interface TriedApply {
  readonly applied: Applied;
  readonly value: AddonObject['value'];
}

/**
 * Leaves out fields that conflict, if these are kept, until nothing conflicts. Fields of add-ons that hand the object over are taken,
 * and their other fields go.
 */
async function tryApply(
  { call }: Pick<ChannelCluster, 'call'>,
  object: AddonObject,
  { id, dryRun, force, keep }: Pick<ApplyOptions, 'force' | 'keep'> & { readonly id: string; readonly dryRun: boolean },
): Promise<TriedApply> {
  const former = (object.former ?? []).map(managerOf);
  const options = { manager: managerOf(id), dryRun };
  let { value } = object;
  let isForced = force;
  for (;;) {
    const given = { ...object, value };
    const applied = await applyObject(call, object.resource, given, { ...options, force: isForced });
    if (applied.outcome === 'applied' && !dryRun) await release(call, { object, live: applied.object, former });
    if (applied.outcome !== 'conflict' || applied.fields.length === 0) return { applied, value };
    const fields = applied.fields.filter(({ manager }) => !former.includes(manager));
    const kept = fields.reduce((left, { field }) => withoutField(left, field) ?? left, value);
    if (fields.length > 0 && (!keep || kept === value)) return { applied: { ...applied, fields }, value };
    isForced = fields.length === 0;
    value = kept;
  }
}

/** Managers that apply nothing own nothing: fields that were theirs alone go. The object is not created again. */
async function release(
  call: ChannelCluster['call'],
  {
    object: { resource, namespace, name },
    live,
    former,
  }: { readonly object: AddonObject; readonly live: LiveObject; readonly former: readonly string[] },
): Promise<void> {
  const { apiVersion, kind } = resource;
  const value = { apiVersion, kind, metadata: { name, namespace, uid: live.metadata.uid } };
  for (const manager of former) await applyObject(call, resource, { namespace, name, value }, { manager });
}

/** What came of applying objects, one by one. */
export interface AppliedObjects {
  readonly applied: readonly AppliedObject[];
  readonly errors: readonly CurlewError[];
}

/**
 * Applies objects in their order, Namespaces and CustomResourceDefinitions first, and waits until these are there. Objects that
 * fail do not stop the others.
 */
export async function applyObjects(
  cluster: ChannelCluster,
  objects: readonly (AddonObject & Pick<ObjectPreview, 'takesFields'>)[],
  options: ApplyOptions & { readonly id: string },
): Promise<AppliedObjects> {
  const { call, signal } = cluster;
  const applied: AppliedObject[] = [];
  const errors: CurlewError[] = [];
  const applyOne = async (object: (typeof objects)[number]): Promise<void> => {
    try {
      if (object.takesFields)
        await takeFields(cluster, object, { manager: managerOf(options.id), how: options.handOver });
      const { applied: done } = await tryApply(cluster, object, { ...options, dryRun: false });
      if (done.outcome === 'applied') applied.push({ resource: object.resource, live: done.object });
      else errors.push(done.outcome === 'conflict' ? conflictError(object, done) : notServed(object));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      errors.push(error);
    }
  };
  for (const step of stepsOf(objects)) {
    signal.throwIfAborted();
    await eachLimited(step, applyOne, { width: AT_ONCE, signal });
    const defined = step.filter(definesOthers);
    if (defined.length === 0) continue;
    const limit = { timeoutMs: options.timeoutMs, report: options.report };
    const waiting = applied.filter(({ live }) => defined.some(({ name }) => name === live.metadata.name));
    errors.push(...(await waitForHealth({ call, signal }, waiting, { objects: defined, ...limit })));
  }
  return { applied, errors };
}

function notServed(object: AddonObject): CurlewError {
  const title = titleOf(object.resource, object);
  const where = object.namespace === undefined ? '' : ` or namespace ${object.namespace}`;
  return new CurlewError('CLUSTER_FAILED', `cannot apply ${title}: its kind${where} does not exist`, {
    hint: 'add the namespace to the manifest, or apply the add-on that brings it first (requires in the channel)',
  });
}

/** Objects of one kind have no order among each other. */
function stepsOf<T extends AddonObject>(objects: readonly T[]): readonly (readonly T[])[] {
  const steps: T[][] = [];
  for (const object of objects) {
    const last = steps.at(-1);
    if (last?.[0]?.kind === object.kind) last.push(object);
    else steps.push([object]);
  }
  return steps;
}

const LOOK_MS = 1000;
const FIRST_LOOK_MS = 100;

export interface WaitOptions {
  /** All of the add-on, which say which Services need endpoints and which claims are mounted. */
  readonly objects: readonly AddonObject[];
  readonly timeoutMs: number;
  readonly report: (text: string) => void;
}

/** Waits until objects are healthy; the errors say which are not, why, and what their pods report. */
export async function waitForHealth(
  cluster: Pick<ChannelCluster, 'call' | 'signal'>,
  applied: readonly AppliedObject[],
  { objects, timeoutMs, report }: WaitOptions,
): Promise<readonly CurlewError[]> {
  const { signal } = cluster;
  const until = performance.now() + timeoutMs;
  const failures: { readonly object: AppliedObject; readonly health: Health }[] = [];
  let waiting: readonly AppliedObject[] = applied;
  let said = '';
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 2, LOOK_MS)) {
    const looked = await mapLimited(
      waiting,
      async (object) => ({ object, health: await currentHealth(cluster, object, objects) }),
      { width: AT_ONCE, signal },
    );
    failures.push(...looked.filter(({ health }) => health.state === 'failed'));
    const left = looked.filter(({ health }) => health.state === 'progressing');
    if (left.length === 0 || performance.now() >= until) {
      const late = left.map(({ object, health }) => ({ object, health, timeoutMs }));
      return Promise.all([...failures, ...late].map(async (one) => unhealthy(cluster, one)));
    }
    const [first] = left;
    const text =
      first === undefined
        ? ''
        : `${titleOf(first.object.resource, first.object.live.metadata)}: ${first.health.reason}`;
    if (text !== said) report(left.length > 1 ? `${text} (and ${left.length - 1} more)` : text);
    said = text;
    waiting = left.map(({ object }) => object);
    await pause(waitMs, { signal });
  }
}

async function unhealthy(
  cluster: Pick<ChannelCluster, 'call' | 'signal'>,
  {
    object: { resource, live },
    health,
    timeoutMs,
  }: { readonly object: AppliedObject; readonly health: Health; readonly timeoutMs?: number },
): Promise<CurlewError> {
  const limit = timeoutMs === undefined ? '' : ` after ${Math.round(timeoutMs / 1000)} s`;
  const troubles = await troublesOf(cluster, resource, live);
  const lines = troubles.map((line) => `\n  | ${line}`).join('');
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
): Promise<Health> {
  signal.throwIfAborted();
  const { namespace, name } = live.metadata;
  // Only these change after they have been applied.
  const isStill = STILL.has(resource.kind);
  const now = isStill ? live : await getObject(call, resource, { namespace, name });
  if (now === undefined) return { state: 'progressing', reason: 'does not exist' };
  const templates = objects
    .flatMap((object) => podTemplateOf(object) ?? [])
    .filter((one) => one.namespace === namespace);
  const isExpected = resource.kind === 'Service' && templates.some((template) => selects(now, template));
  const hasEndpoints = isExpected ? await hasReadyEndpoints(call, { namespace, name }) : undefined;
  const isMounted = templates.some(({ claims }) => claims.includes(name));
  return healthOf(now, { hasEndpoints, isMounted });
}

const STILL = new Set([
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
    (Array.isArray(endpoints) ? (endpoints as readonly unknown[]) : []).some(
      (endpoint) => isObject(endpoint) && isObject(endpoint['conditions']) && endpoint['conditions']['ready'] !== false,
    ),
  );
}

/** Marks the nodes that must be replaced after a change, for whoever rolls them, as kops does. Returns their names. */
export async function markNodes(
  { call }: Pick<ChannelCluster, 'call'>,
  role: PlannedAddon['entry']['needsRollingUpdate'],
): Promise<readonly string[]> {
  if (role === undefined) return [];
  const nodes = (await listObjects(call, NODES, { onlyMetadata: true })) ?? [];
  const isControl = ({ metadata: { labels } }: LiveObject): boolean =>
    CONTROL_LABELS.some((label) => labels[label] !== undefined);
  const chosen = role === 'all' ? nodes : nodes.filter((node) => isControl(node) === (role === 'control-plane'));
  const change = { metadata: { annotations: { 'kops.k8s.io/needs-update': '' } } };
  for (const { metadata } of chosen) await mergeObject(call, NODES, { name: metadata.name }, change);
  return chosen.map(({ metadata }) => metadata.name);
}

const NODES: Resource = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
/** Since Kubernetes 1.20, and before. */
const CONTROL_LABELS = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'];
