/**
 * Fields of programs that applied an object before this add-on: they become those of the add-on, so that the apply which follows
 * removes what its manifest does not have.
 */
import { isObject } from '../core/json.ts';
import { getObject, patchObject, type Applied, type LiveObject } from '../kube/objects.ts';
import { appliedTo, handedOver, type FieldsEntry, type HandOver } from '../kube/managed-fields.ts';
import type { ChannelCluster } from './cluster.ts';
import type { AddonObject } from './manifest.ts';

const MOST_CONFLICTS = 5;

/** What the apply after {@link takeFields} makes of an object, as the server checks and defaults it; changes nothing. */
export async function predictTaking(
  { call }: Pick<ChannelCluster, 'call'>,
  object: AddonObject,
  { before, entries }: { readonly before: LiveObject; readonly entries: readonly FieldsEntry[] },
): Promise<Applied> {
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
  const metadata = isObject(after['metadata']) ? after['metadata'] : {};
  const shared = ['labels', 'annotations'].map((key) => {
    return { op: 'add', path: `/metadata/${key}`, value: metadata[key] ?? {} };
  });
  return [...own, ...shared];
}

/** Another writer may change the object meanwhile: then this looks at it again. */
export async function takeFields(
  { call }: Pick<ChannelCluster, 'call'>,
  object: AddonObject,
  { manager, how }: { readonly manager: string; readonly how: HandOver },
): Promise<void> {
  for (let times = 0; times < MOST_CONFLICTS; times += 1) {
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
