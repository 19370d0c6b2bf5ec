/** The objects of an add-on: what applying them would change, and applying them. */
import { fieldChanges, withoutField, type FieldChange } from '../channel/difference.ts';
import { definesOthers } from '../channel/objects.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf } from '../../core/json.ts';
import { Refused } from '../kube/call.ts';
import { appliedTo, handedOver, type FieldsEntry, type HandOver } from '../kube/managed-fields.ts';
import { applyObject, getObject, patchObject, titleOf, type ApplyResult, type LiveObject } from '../kube/objects.ts';
import type { FieldConflict } from '../kube/problem.ts';
import { eachLimited, mapLimited } from '../../platform/limit/each.ts';
import { managerOf } from './addon.ts';
import { AT_ONCE, type ChannelCluster } from './channel-cluster.ts';
import { waitForHealth } from './health.ts';
import type { AddonObject } from './addon-objects.ts';
import { OwnedElsewhere } from './owners.ts';
import type { AppliedObject } from './records.ts';
import type { Reporting } from './request.ts';

export interface ApplyOptions extends Reporting {
  /** Takes fields from other managers. */
  readonly force: boolean;
  /** Fields that others have taken stay theirs. */
  readonly keep: boolean;
  /** Which former managers hand over their fields. */
  readonly handOver: HandOver;
  /** Limit of the wait for health. */
  readonly timeoutMs: number;
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
    const initial = { object, fields: [], conflicts: [], error: undefined, value: object.value, takesFields: false };
    try {
      const before = await getObject(call, object.resource, object);
      const former = before === undefined ? [] : (rights.formerOf?.(object, before) ?? []);
      if (before === undefined) change = 'create';
      const { applied, value, takesFields } = await tryDryRun({ call }, { ...object, former }, { before, rights });
      // Its namespace or its kind comes with this add-on.
      if (applied.outcome === 'not found') return { ...initial, change: 'create' };
      if (applied.outcome === 'conflict')
        return { ...initial, change, conflicts: applied.fields, error: conflictError(object, applied) };
      const fields = fieldChanges(before, applied.object);
      const isSame = before !== undefined && fields.length === 0;
      return { ...initial, former, value, fields, change: isSame ? 'same' : change, takesFields };
    } catch (error) {
      if (error instanceof Refused || error instanceof OwnedElsewhere) return { ...initial, change, error };
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
  const attempt = tryApply({ call }, object, { id, force, keep, dryRun: true });
  const how = (object.former ?? []).length > 0 ? 'never' : rights.handOver;
  const entries = before && handedOver(before.metadata.managedFields, managerOf(id), how);
  if (before === undefined || entries === undefined) return { ...(await attempt), takesFields: false };
  try {
    const { applied, value } = await attempt;
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
  { message, fields }: { readonly message: string; readonly fields: readonly FieldConflict[] },
): CurlewError {
  const title = titleOf(object.resource, object);
  const shown = fields.slice(0, 3).map(({ field, manager }) => `${field} belongs to ${manager}`);
  const what =
    fields.length === 0 ? message : shown.join('; ') + (fields.length > 3 ? `; ${fields.length - 3} more` : '');
  return new CurlewError('CLUSTER_FAILED', `cannot apply ${title}: ${what}`, {
    hint: '--force-conflicts takes these fields; drift: Keep leaves them to their owner',
  });
}

interface TriedApply {
  readonly applied: ApplyResult;
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
    const desired = { ...object, value };
    const applied = await applyObject(call, object.resource, desired, { ...options, force: isForced });
    if (applied.outcome === 'applied' && !dryRun) await release(call, { object, live: applied.object, former });
    if (applied.outcome !== 'conflict' || applied.fields.length === 0) return { applied, value };
    const fields = applied.fields.filter(({ manager }) => !former.includes(manager));
    const remaining = fields.reduce((rest, { field }) => withoutField(rest, field) ?? rest, value);
    if (fields.length > 0 && (!keep || remaining === value)) return { applied: { ...applied, fields }, value };
    isForced = fields.length === 0;
    value = remaining;
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

const MAX_CONFLICTS = 5;

/** What the apply after {@link takeFields} makes of an object, as the server checks and defaults it; changes nothing. */
async function predictTaking(
  { call }: Pick<ChannelCluster, 'call'>,
  object: AddonObject,
  { before, entries }: { readonly before: LiveObject; readonly entries: readonly FieldsEntry[] },
): Promise<ApplyResult> {
  const operations = replacements(before, appliedTo(before, object.value, entries));
  const after = await patchObject(call, object.resource, object, { operations, dryRun: true });
  return after === undefined ? { outcome: 'not found' } : { outcome: 'applied', object: after };
}

/** A JSON patch of what an apply can change. */
function replacements(before: LiveObject, after: Readonly<Record<string, unknown>>): readonly object[] {
  const {
    apiVersion: _version,
    kind: _kind,
    metadata: _metadata,
    status: _status,
    ...fields
  } = { ...before, ...after };
  const own = Object.keys(fields).map((key) => {
    const path = `/${key}`;
    return Object.hasOwn(after, key) ? { op: 'add', path, value: after[key] } : { op: 'remove', path };
  });
  const metadata = fieldsOf(after['metadata']);
  const shared = ['labels', 'annotations'].map((key) => {
    return { op: 'add', path: `/metadata/${key}`, value: metadata[key] ?? {} };
  });
  return [...own, ...shared];
}

/**
 * Fields of programs that applied an object before this add-on become those of the add-on, so that the apply which follows removes
 * what its manifest does not have. Another writer may change the object meanwhile: then this looks at it again.
 */
async function takeFields(
  { call }: Pick<ChannelCluster, 'call'>,
  object: AddonObject,
  { manager, how }: { readonly manager: string; readonly how: HandOver },
): Promise<void> {
  for (let times = 0; times < MAX_CONFLICTS; times += 1) {
    const before = await getObject(call, object.resource, object);
    const entries = before && handedOver(before.metadata.managedFields, manager, how);
    if (before === undefined || entries === undefined) return;
    const operations = [
      { op: 'replace', path: '/metadata/managedFields', value: entries },
      { op: 'replace', path: '/metadata/resourceVersion', value: before.metadata.resourceVersion },
    ];
    if ((await patchObject(call, object.resource, object, { operations })) !== undefined) return;
  }
}
