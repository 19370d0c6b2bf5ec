/** The cluster of a channel: its facts, its records and the objects that add-ons consist of. */
import { access } from 'node:fs/promises';
import { hostname } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import * as v from 'valibot';
import { objectKey } from '../channel/objects.ts';
import type { ClusterFacts, LiveLook, PlannedAddon } from '../channel/pass.ts';
import { parseTriple } from '../channel/range.ts';
import {
  addonId,
  annotationKey,
  encodeAnnotation,
  encodeRecords,
  readAnnotations,
  readRecords,
  recordKey,
  type AddonRecord,
  type RecordedKind,
} from '../channel/record.ts';
import { CurlewError } from '../core/errors.ts';
import { CHANNEL_RECORDS, RUN_RECORDS } from '../core/layout.ts';
import { openApi, type KubeApi } from '../kube/api.ts';
import { openCalls, Refused, type Call, type CallOptions } from '../kube/call.ts';
import { holdLease } from '../kube/lease.ts';
import { listObjects, mapObjects, mergeObject, titleOf, type LiveObject } from '../kube/objects.ts';
import { apiPath } from '../kube/path.ts';
import { discover, type Discovery, type Resource } from '../kube/resources.ts';
import { kubeconfigPaths } from '../kube/session.ts';
import { eachLimited } from '../platform/limit/each.ts';
import { configMapClient, type ConfigMapClient } from '../kube/config-map.ts';
import type { Context } from '../core/context.ts';
import { namesDigest, valuesDigest } from './owned-digest.ts';

export interface ClusterRequest {
  /** Default: KUBECONFIG, then ~/.kube/config, then that of kubeadm. */
  readonly kubeconfig?: string | undefined;
  /** Name of a context in it; default: its current one. */
  readonly context?: string | undefined;
}

/** Label of every object that a channel applies; its value is {@link addonId}. */
export const ADDON_LABEL = 'fleet.curlew.dev/addon';

const NAMESPACES: Resource = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false };

const REQUEST_MS = 30_000;
const PATIENCE_MS = 30_000;
export const AT_ONCE = 8;
const LISTS_AT_ONCE = 2;

export interface ChannelCluster {
  readonly call: Call;
  readonly signal: AbortSignal;
  /** Paths of the kubeconfig, as in KUBECONFIG, and the context, if it is not the current one: for programs. */
  readonly kubeconfig: string;
  readonly kubeContext: string | undefined;
  /** Address of its API server. */
  readonly server: string;
  /** The namespace of the kubeconfig's context. */
  readonly namespace: string;
  readonly kubernetes: string;
  readonly facts: ClusterFacts;
  readonly namespaces: ReadonlySet<string>;
  /** What could not be found out; the pass adds to it. */
  readonly warnings: string[];
  /** The kinds that it serves; asked for once. */
  readonly discovery: () => Promise<Discovery>;
  readonly maps: ConfigMapClient;
  readonly api: KubeApi;
  /** Rejects if this process may not write any more; undefined: it does not write. */
  readonly guard: CallOptions['guard'];
}

/** The field manager of an add-on: two add-ons that apply one object conflict. */
export function managerOf(id: string): string {
  return `curlew/${id}`;
}

/**
 * Reads what the cluster says about its add-ons: five requests. `CLUSTER_FAILED` if no kubeconfig leads to one; the hint also names the
 * option `instead` of which a cluster was looked for.
 */
export async function openChannelCluster(
  request: ClusterRequest,
  context: Context,
  instead?: string,
): Promise<ChannelCluster> {
  const { signal } = context;
  const env = { ...context.env, KUBECONFIG: await kubeconfigOf(request, context) };
  const api = await openApi({ env, kubeContext: request.context, deadlineMs: REQUEST_MS });
  if (api === undefined) {
    const what = env.KUBECONFIG === undefined ? 'there is no kubeconfig' : `${env.KUBECONFIG} does not exist`;
    throw new CurlewError('CLUSTER_FAILED', `cannot find a cluster: ${what}`, {
      hint: `specify a kubeconfig with --kubeconfig or KUBECONFIG${instead === undefined ? '' : `, or add ${instead}`}`,
    });
  }
  const { report } = context;
  const from = { kubeconfig: kubeconfigPaths(env).join(delimiter), kubeContext: request.context };
  return readCluster(api, { ...from, signal, guard: undefined, report });
}

/** Also reads a cluster again whose records have changed. */
async function readCluster(
  api: KubeApi,
  from: Pick<ChannelCluster, 'kubeconfig' | 'kubeContext' | 'signal' | 'guard'> & Pick<Context, 'report'>,
): Promise<ChannelCluster> {
  const { kubeconfig, kubeContext, signal, guard, report } = from;
  // A kubeconfig that names no server would be waited for like a server that starts.
  const { server, namespace } = await api.target({ signal });
  let isSaid = false;
  const onSlow = (text: string): void => {
    if (!isSaid) report({ type: 'note', level: 'info', text: `${server}: ${text}` });
    isSaid = true;
  };
  const options = { patienceMs: PATIENCE_MS, signal, guard, onSlow };
  const call = openCalls(api, options);
  const maps = configMapClient(api, options);
  const [version, namespaces, full, installer] = await Promise.all([
    readVersion(call),
    listObjects(call, NAMESPACES),
    maps.read(CHANNEL_RECORDS),
    readInstalled(maps),
  ]);
  const triple = parseTriple(version);
  if (triple === undefined)
    throw new CurlewError('CLUSTER_FAILED', `the version of the cluster cannot be read: ${version}`);
  const found = namespaces ?? [];
  const annotations = readAnnotations(found.map(({ metadata }) => metadata));
  const records = readRecords(full?.data ?? {});
  let discovery: Promise<Discovery> | undefined;
  return {
    call,
    signal,
    guard,
    kubeconfig,
    kubeContext,
    maps,
    api,
    server,
    namespace,
    kubernetes: version,
    facts: {
      kubernetes: triple,
      annotations: annotations.records,
      records: records.records,
      installer: installer.addons,
    },
    namespaces: new Set(found.map(({ metadata }) => metadata.name)),
    warnings: [...annotations.warnings, ...records.warnings, ...installer.warnings],
    discovery: async () => {
      discovery ??= discover(api, options);
      return discovery;
    },
  };
}

/** Add-ons that installs on nodes have brought; a user of one namespace may not be allowed to read that. */
async function readInstalled(
  maps: ConfigMapClient,
): Promise<{ readonly addons: ReadonlySet<string>; readonly warnings: readonly string[] }> {
  try {
    const keys = Object.keys((await maps.read(RUN_RECORDS))?.data ?? {});
    return { addons: new Set(keys.flatMap((key) => (key.startsWith('addon.') ? [key.slice(6)] : []))), warnings: [] };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { addons: new Set(), warnings: [`add-ons of installs on nodes are not known: ${error.message}`] };
  }
}

export interface HeldCluster extends AsyncDisposable {
  /** Read again: another process may have changed it before. */
  readonly cluster: ChannelCluster;
}

/** Makes this process the only one that changes add-ons of the cluster. `BUSY` with the name of another one that does. */
export async function holdCluster(
  cluster: ChannelCluster,
  { doing, context }: { readonly doing: string; readonly context: Context },
): Promise<HeldCluster> {
  const lease = await holdLease(cluster.call, {
    ...CHANNEL_RECORDS,
    holder: `${hostname()}/${process.pid}`,
    doing,
    signal: context.signal,
    onWait: (holder) =>
      context.report({ type: 'note', level: 'info', text: `waiting for ${holder}, which may have been interrupted` }),
  });
  const close = lease[Symbol.asyncDispose].bind(lease);
  try {
    const { api, kubeconfig, kubeContext } = cluster;
    const { signal, guard } = lease;
    const held = { kubeconfig, kubeContext, signal, guard, report: context.report };
    return { cluster: await readCluster(api, held), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function kubeconfigOf({ kubeconfig }: ClusterRequest, { env, cwd }: Context): Promise<string | undefined> {
  if (kubeconfig !== undefined) return resolve(cwd, kubeconfig);
  if ((env['KUBECONFIG'] ?? '') !== '') return env['KUBECONFIG'];
  const home = env['HOME'] ?? '';
  const own = join(home, '.kube/config');
  const isThere =
    home !== '' &&
    (await access(own).then(
      () => true,
      () => false,
    ));
  return isThere ? own : undefined;
}

const versionSchema = v.object({ gitVersion: v.string() });

async function readVersion(call: Call): Promise<string> {
  const answer = await call('read the version of the cluster', { verb: 'get', path: apiPath`/version` });
  if (answer.outcome === 'done' && v.is(versionSchema, answer.value)) return answer.value.gitVersion;
  throw new CurlewError('CLUSTER_FAILED', 'cannot read the version of the cluster: the response has none', {
    hint: 'check that the kubeconfig leads to a Kubernetes API server',
  });
}

/** The field manager of all releases. */
export const HELM_MANAGER = 'helm';
const HELM_LABEL = 'app.kubernetes.io/managed-by=Helm';

/** The recorded objects of add-ons as they are now, by {@link recordKey}: one list for each kind. */
export async function lookAtObjects(
  { call, signal, warnings }: Pick<ChannelCluster, 'call' | 'signal' | 'warnings'>,
  records: readonly AddonRecord[],
): Promise<ReadonlyMap<string, LiveLook>> {
  const kinds = new Map<string, { readonly kind: RecordedKind; readonly labelSelector: string }>();
  for (const { objects = [], release } of records) {
    const labelSelector = release === undefined ? ADDON_LABEL : HELM_LABEL;
    for (const kind of objects)
      kinds.set(`${labelSelector} ${kind.apiVersion} ${kind.plural}`, { kind, labelSelector });
  }
  const live = new Map<string, SeenObject>();
  const unread = new Set<string>();
  const listKind = async ([key, { kind, labelSelector }]: [
    string,
    { readonly kind: RecordedKind; readonly labelSelector: string },
  ]): Promise<void> => {
    try {
      // A kind that is no longer served has no objects.
      const look = (object: LiveObject): SeenObject => seenObject(object, kind, labelSelector);
      const objects = (await mapObjects(call, kind, { labelSelector }, look)) ?? [];
      for (const object of objects) live.set(`${key} ${object.place}`, object);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      unread.add(key);
      warnings.push(`objects of add-ons are not compared: ${error.message}`);
    }
  };
  await eachLimited(kinds, listKind, { width: LISTS_AT_ONCE, signal });
  return new Map(
    records.map((record) => [recordKey(record.namespace, record.addon), lookAt(record, { live, unread })]),
  );
}

/** What a look keeps of an object. */
interface SeenObject {
  readonly place: string;
  readonly id: string | undefined;
  readonly release: string | undefined;
  /** The digest in each form that records have. */
  readonly digests: readonly string[];
}

function seenObject(object: LiveObject, kind: RecordedKind, labelSelector: string): SeenObject {
  const { namespace = '', name, labels, annotations } = object.metadata;
  const id = labels[ADDON_LABEL];
  const manager = labelSelector === HELM_LABEL ? HELM_MANAGER : managerOf(id ?? '');
  const digests = [namesDigest(object, manager), valuesDigest(object, manager, kind)];
  return { place: `${namespace}/${name}`, id, release: annotations['meta.helm.sh/release-name'], digests };
}

function lookAt(
  { namespace, addon, objects = [], release }: AddonRecord,
  { live, unread }: { readonly live: ReadonlyMap<string, SeenObject>; readonly unread: ReadonlySet<string> },
): LiveLook {
  const id = addonId({ namespace, name: addon });
  const labelSelector = release === undefined ? ADDON_LABEL : HELM_LABEL;
  const isOwn = (seen: SeenObject): boolean => (release === undefined ? seen.id === id : seen.release === release.name);
  const [missing, changed]: [string[], string[]] = [[], []];
  for (const kind of objects) {
    const key = `${labelSelector} ${kind.apiVersion} ${kind.plural}`;
    if (unread.has(key)) continue;
    for (const object of kind.objects) {
      const found = live.get(`${key} ${object.namespace ?? ''}/${object.name}`);
      if (found === undefined || !isOwn(found)) missing.push(titleOf(kind, object));
      // Of an apply that did not finish, the digest is not known.
      else if (object.owned !== '' && !found.digests.includes(object.owned)) changed.push(titleOf(kind, object));
    }
  }
  return { missing, changed };
}

/** An object, with how it is requested. */
export interface ObjectRef {
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** An object that was applied. */
export interface AppliedObject {
  readonly resource: Resource;
  readonly live: LiveObject;
}

/** For a record: the objects by kind, with what `manager` owns of them. */
export function recordedKinds(applied: readonly AppliedObject[], manager: string): readonly RecordedKind[] {
  const kinds = new Map<string, { readonly resource: Resource; readonly objects: RecordedKind['objects'][number][] }>();
  for (const { resource, live } of applied) {
    const key = `${resource.apiVersion} ${resource.plural}`;
    const kind = kinds.get(key) ?? { resource, objects: [] };
    kinds.set(key, kind);
    const { namespace, name } = live.metadata;
    kind.objects.push({
      ...(namespace === undefined ? {} : { namespace }),
      name,
      owned: valuesDigest(live, manager, resource),
    });
  }
  return [...kinds.values()].map(({ resource: { apiVersion, kind, plural, namespaced }, objects }) => {
    return { apiVersion, kind, plural, namespaced, objects };
  });
}

/** Objects that are not applied yet. */
export function kindsOf(objects: readonly ObjectRef[]): readonly RecordedKind[] {
  return objects.map(({ resource: { apiVersion, kind, plural, namespaced }, namespace, name }) => {
    const object = { ...(namespace === undefined ? {} : { namespace }), name, owned: '' };
    return { apiVersion, kind, plural, namespaced, objects: [object] };
  });
}

/** Objects that both have are those of `first`. */
export function joinKinds(first: readonly RecordedKind[], second: readonly RecordedKind[]): readonly RecordedKind[] {
  const kinds = new Map<string, RecordedKind>();
  for (const kind of [...first, ...second]) {
    const key = `${kind.apiVersion} ${kind.plural}`;
    const known = kinds.get(key);
    const has = new Set(known?.objects.map(({ namespace, name }) => `${namespace ?? ''}/${name}`));
    const added = kind.objects.filter(({ namespace, name }) => !has.has(`${namespace ?? ''}/${name}`));
    kinds.set(key, { ...kind, objects: [...(known?.objects ?? []), ...added] });
  }
  return [...kinds.values()];
}

/** Recorded objects by what identifies them in the cluster. */
export function recordedObjects(kinds: readonly RecordedKind[]): ReadonlyMap<string, ObjectRef> {
  return new Map(
    kinds.flatMap((resource) =>
      resource.objects.map(({ namespace, name }) => {
        return [objectKey({ ...resource, namespace, name }), { resource, namespace, name }] as const;
      }),
    ),
  );
}

/** Writes the full record of an add-on, or removes it. Other writers' records are kept. */
export async function writeRecord(
  { maps }: Pick<ChannelCluster, 'maps'>,
  { namespace, addon }: Pick<AddonRecord, 'namespace' | 'addon'>,
  record: AddonRecord | undefined,
): Promise<void> {
  await maps.change(CHANNEL_RECORDS, (data = {}) => {
    const { [`${namespace}.${addon}`]: _before, ...others } = data;
    return record === undefined ? others : { ...others, ...encodeRecords([record]) };
  });
}

/** The annotation that says what is installed: written last, and removed last. */
export async function writeAnnotation(
  { call }: Pick<ChannelCluster, 'call'>,
  { channel, entry }: Pick<PlannedAddon, 'channel' | 'entry'>,
  installed: AddonRecord['applied'],
): Promise<void> {
  const value = installed === undefined ? null : encodeAnnotation(installed, channel.compat);
  await annotate({ call }, entry, value);
}

export async function annotate(
  { call }: Pick<ChannelCluster, 'call'>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  value: string | null,
): Promise<void> {
  const change = { metadata: { annotations: { [annotationKey(name)]: value } } };
  const found = await mergeObject(call, NAMESPACES, { name: namespace }, change);
  if (found !== undefined || value === null) return;
  throw new CurlewError('CLUSTER_FAILED', `cannot record ${name}: namespace ${namespace} does not exist`, {
    hint: `create the namespace, or correct namespace in the channel, then run the same command again`,
  });
}
