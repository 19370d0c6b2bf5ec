/** Objects of a hub that the controller makes from those of other programs. */
import { CurlewError } from '../../../core/errors.ts';
import { FINALIZER, hashOfMade, type HubAddon, type Made, type Version } from '../observe.ts';
import type { ForeignObject } from '../foreign-objects.ts';
import type { KubeApi } from '../../../cluster/kube/api.ts';
import { createObject, type LiveObject } from '../../../cluster/kube/objects.ts';
import type { Resource } from '../../../cluster/kube/resources.ts';
import { Watch } from '../../../cluster/kube/watch.ts';
import type { Values } from '../../rollout/fleet.ts';
import type { FindNewest } from '../../run/newest.ts';
import { bind, deleteGenerated, patchAt, patchStatus, resourceOf, type Hub } from './hub-pass.ts';

const ADDONS = resourceOf('FleetAddon');

/** What the takers of other programs' objects are made with. */
export interface UpstreamParts {
  readonly api: KubeApi;
  /** The server has each kind that is read for what is taken. */
  readonly find: (kind: string) => Resource;
  readonly served: readonly Resource[];
  readonly onChange: () => void;
  readonly findNewest: FindNewest;
  /** Says a text once. */
  readonly note: (text: string) => void;
}

/** Where an object is, and what it is to have. */
interface Making {
  readonly namespace?: string;
  readonly name: string;
  readonly made: Made;
  /** Undefined for a new one. */
  readonly at: Version | undefined;
}

/** Other annotations stay: they are orders of people. */
export async function writeMade(
  { call }: Hub,
  resource: Resource,
  { namespace, name, made, at }: Making,
): Promise<LiveObject> {
  const { labels, annotations, spec } = made;
  if (at !== undefined) {
    const marks = Object.entries(annotations).map(([key, value]) => {
      return { op: 'add', path: `/metadata/annotations/${key.replaceAll('/', '~1')}`, value };
    });
    const own = { op: 'add', path: '/metadata/labels', value: labels };
    return patchAt(call, resource, { at, changes: [own, ...marks, { op: 'add', path: '/spec', value: spec }] });
  }
  const value = { metadata: { name, namespace, labels, annotations }, spec };
  const created = await createObject(call, resource, { namespace, name, value });
  if (created !== undefined) return created;
  throw new CurlewError('BUSY', `cannot create ${resource.kind} ${name}: it exists, or its namespace does not`);
}

/** The add-ons of these names that are made from an object. */
export function ownAddons({ addons }: Hub, from: string, names: Iterable<string>): readonly HubAddon[] {
  return [...names].flatMap((name) => {
    const addon = addons.get({ name });
    return addon?.origin?.from === from ? [addon] : [];
  });
}

/** Makes an add-on, or changes the one that was made before. Returns why it cannot be. */
export async function putAddon(
  hub: Hub,
  name: string,
  made: Made,
  before: HubAddon | undefined,
): Promise<string | undefined> {
  if (before === undefined && hub.addons.get({ name }) !== undefined) {
    return `there is a FleetAddon ${name} that is not made from it`;
  }
  if (before?.addon.deleting === true) return `FleetAddon ${name} is being removed`;
  if (before?.origin?.hash === hashOfMade(made)) return undefined;
  hub.addons.put(await writeMade(hub, ADDONS, { name, made, at: before?.at }));
  return undefined;
}

/** Objects of one kind that are taken. */
export interface ForeignSource<T extends ForeignObject> {
  readonly resource: Resource;
  readonly watch: Watch<T>;
  readonly read: (object: LiveObject) => T;
}

/** Items of a list may be without their kind, and those of a watch have fields of an error. */
export function typed<T>({ apiVersion, kind }: Resource, read: (object: LiveObject) => T): (object: LiveObject) => T {
  return ({ metadata, spec, status }) =>
    read({ apiVersion, kind, metadata, ...(spec !== undefined && { spec }), ...(status !== undefined && { status }) });
}

export function foreignSourceOf<T extends ForeignObject>(
  api: KubeApi,
  resource: Resource,
  { read, onChange }: { readonly read: (object: LiveObject) => T; readonly onChange: () => void },
): ForeignSource<T> {
  const look = typed(resource, read);
  return { resource, read: look, watch: new Watch(api, { resource, look, onChange }) };
}

/** With the finalizer, by which a deletion waits until its add-on has left the clusters. */
export async function addFinalizer<T extends ForeignObject>(
  { call }: Hub,
  { resource, watch, read }: ForeignSource<T>,
  one: T,
): Promise<T> {
  if (one.finalizers.includes(FINALIZER)) return one;
  const changed = await bind(call, resource, one, true);
  watch.put(changed);
  return read(changed);
}

/** Deletes the add-ons of one that is being deleted, and lets it go after them. `leave` are finalizers of the program that is replaced. */
export async function finalizeForeign<T extends ForeignObject>(
  hub: Hub,
  { resource, watch }: ForeignSource<T>,
  { one, addons, leave }: { readonly one: T; readonly addons: readonly HubAddon[]; readonly leave: readonly string[] },
): Promise<void> {
  for (const { addon, at } of addons) if (addon.deleting !== true) await deleteGenerated(hub, ADDONS, at);
  const ours = [FINALIZER, ...leave];
  if (addons.length > 0 || !one.finalizers.some((name) => ours.includes(name))) return;
  const finalizers = one.finalizers.filter((name) => !leave.includes(name));
  watch.put(await bind(hub.call, resource, { at: one.at, finalizers }, false));
}

/** Only a status that has changed. */
export async function writeStatus<T extends ForeignObject>(
  hub: Hub,
  { resource, watch }: ForeignSource<T>,
  { at, status: before }: T,
  status: Values,
): Promise<void> {
  const changed = await patchStatus(hub, resource, { at, status, before });
  if (changed !== undefined) watch.put(changed);
}
