/** What the objects of a hub say, as a step of the fleet sees it. Pure. */
import * as v from 'valibot';
import { exactValue, isObject, mapped } from '../../core/json.ts';
import { secondsOf } from '../../core/time.ts';
import { convert, fits, type Read } from '../../core/schema.ts';
import { Findings } from '../../cluster/channel/findings.ts';
import { contentsIn, idleNote } from '../effects.ts';
import { capiObject } from '../upstream/capi-cluster.ts';
import { COMPAT, compatOf } from '../upstream/document.ts';
import { specHash } from '../rollout/spec-hash.ts';
import type { Approval, Cluster, ClusterAddon, FleetAddon, FleetAddonStatus, Values } from '../rollout/fleet.ts';
import { UNREAD } from '../rollout/brake.ts';
import { removalRulesIn, windowsProblem } from './unreadable-addon.ts';
import { HUB_KINDS, type Condition } from './hub-kinds.ts';
import { placeIn, contentSourceOf, valuesPlaces, type HubSource, type ValuesPlace } from './content-source.ts';

/** Each cluster has a namespace of its own. */
const NAMESPACE = 'fleet-';
export const FINALIZER = 'fleet.curlew.dev/removal';
/** Annotations by which people say how an add-on continues. */
export const ORDER = 'fleet.curlew.dev/';
/** Annotations of what the controller makes from objects of other programs: from which one, and whether it is paused. */
export const FROM = 'fleet.curlew.dev/from';
export const PAUSED = 'fleet.curlew.dev/paused';

/** An object from an API server. */
export interface Live {
  readonly metadata: Version & {
    readonly generation?: number | undefined;
    readonly deletionTimestamp?: string | null | undefined;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
    readonly finalizers: readonly string[];
  };
  readonly [field: string]: unknown;
}

/** Which object, and what a change of it relies on. */
export interface Version {
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** What the controller writes into an object that it makes from one of another program. */
export interface Made {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: Values;
}

/** From which object of another program this one was made, such as `HelmChartProxy default/calico`, and the hash of what was made. */
interface Origin {
  readonly from: string;
  readonly hash: string;
}

export interface HubAddon {
  readonly at: Version;
  readonly origin: Origin | undefined;
  readonly addon: FleetAddon;
  /** Why it cannot be read. It is then only removed, from clusters that are deleted, or from all if it is deleted itself. */
  readonly problem: string | undefined;
  /** Why no removal of it begins, even if it is deleted: its windows cannot be read. */
  readonly closed: string | undefined;
  readonly drift: Read<typeof HUB_KINDS.FleetAddon.spec>['drift'];
  /** Values that are only delivered: their digests are in the source, if they have been read. */
  readonly valuesFrom: readonly ValuesPlace[];
  /** The Channel that has its contents, which are in the source if it has been read. */
  readonly channel: HubSource['channel'];
  readonly finalizers: readonly string[];
  readonly conditions: readonly Condition[];
  /** The approval that counts. */
  readonly approval?: HubOrder | undefined;
  /** The stored status. */
  readonly status: unknown;
}

export interface HubCluster {
  readonly at: Version;
  readonly cluster: Cluster;
  readonly origin: Origin | undefined;
  readonly finalizers: readonly string[];
  /** The Secret with its kubeconfig, if the controller delivers its add-ons. */
  readonly secret: { readonly namespace: string; readonly name: string } | undefined;
  /** The stored status. */
  readonly status: unknown;
}

export interface HubClusterAddon {
  readonly at: Version;
  readonly annotations: Live['metadata']['annotations'];
  /** The stored status. */
  readonly status: unknown;
  /** Undefined for an object that this version cannot read. */
  readonly record: ClusterAddon | undefined;
}

export function namespaceOf(cluster: string): string {
  return `${NAMESPACE}${cluster}`;
}

/** The cluster whose namespace this is. */
export function clusterOf(namespace = ''): string | undefined {
  return namespace.startsWith(NAMESPACE) ? namespace.slice(NAMESPACE.length) : undefined;
}

export function objectVersion({ metadata: { name, namespace, uid, resourceVersion } }: Live): Version {
  return { name, namespace, uid, resourceVersion };
}

export function hashOfMade({ labels, annotations, spec }: Made): string {
  const marks = [FROM, PAUSED, COMPAT].map((key) => annotations[key] ?? '');
  return specHash({ labels, marks, made: spec });
}

function originOf({ metadata: { labels, annotations }, spec }: Live): Origin | undefined {
  const { [FROM]: from } = annotations;
  return from === undefined ? undefined : { from, hash: hashOfMade({ labels, annotations, spec: spec as Values }) };
}

/** For what is wrong with an object. */
export function findingsOf(title: string): Findings {
  const place = { file: title, line: 1, column: 1, length: 1 };
  return new Findings({ placeOf: () => place, diagnostics: [] }, false, 'fleet');
}

/** Undefined in another namespace than its own. One that cannot be read is there, and gets nothing. */
export function readHubCluster(object: Live): HubCluster | undefined {
  const { metadata, spec, status = {} } = object;
  const { name, labels, annotations, finalizers, deletionTimestamp } = metadata;
  if (metadata.namespace !== namespaceOf(name)) return undefined;
  const read = convert(HUB_KINDS.Cluster.spec, spec);
  const at = objectVersion(object);
  const origin = originOf(object);
  const deletion = typeof deletionTimestamp === 'string' ? { deleting: secondsOf(deletionTimestamp) } : {};
  if ('problems' in read) {
    const cluster = { name, labels, available: false, paused: true, kubernetes: '', ...deletion };
    return { at, cluster, origin, finalizers, secret: undefined, status };
  }
  const { kubernetes, access, ...others } = read.value;
  const { facts = {}, conditions = [] } = fits(HUB_KINDS.Cluster.status, status) ? status : {};
  const available = conditions.find(({ type }) => type === 'Available');
  const { server } = facts;
  const cluster: Cluster = {
    name,
    labels,
    ...others,
    ...deletion,
    available: available?.status === 'True',
    ...(available && { since: secondsOf(available.lastTransitionTime) }),
    kubernetes: facts.version ?? kubernetes?.version ?? '',
    facts,
    object: capiObject({ name, labels, annotations }, others.networks),
    ...(server !== undefined && { server }),
  };
  const secret = access && { namespace: namespaceOf(name), name: access.kubeconfigSecret };
  return { at, cluster, origin, finalizers, secret, status };
}

export function readFleetAddon(object: Live): HubAddon {
  const { metadata, spec, status } = object;
  const { name, generation = 1, annotations, deletionTimestamp, finalizers } = metadata;
  const read = convert(HUB_KINDS.FleetAddon.spec, spec);
  const own = statusIn(status);
  const stored = own && readStatus(own);
  const doubts = findingsOf(name);
  const compat = compatOf(object, doubts);
  const fields = 'problems' in read ? undefined : read.value;
  const known = 'problems' in read ? removalRulesIn(spec, read.problems[0].message) : undefined;
  const source = fields && contentSourceOf(fields.source, name);
  const place = fields === undefined && isObject(spec) ? placeIn(spec['source'], name) : undefined;
  const { channel } = fields?.source ?? {};
  const isDeleting = typeof deletionTimestamp === 'string';
  const valuesFrom = fields ? valuesPlaces(fields) : [];
  // A changed Secret or Channel begins a rollout of the same generation: an order about an earlier one differs only by its time. A
  // deletion is the same with or without them.
  const hasTurns = !isDeleting && (valuesFrom.length > 0 || channel !== undefined);
  const since = hasTurns ? 0 : (stored?.since ?? 0);
  const { orders, lapsed, paused, approval, problem: wrong } = readOrders(annotations, generation, since);
  const closed = known === undefined ? windowsProblem(fields?.rollout?.windows) : known.closed;
  const problem =
    known?.problem ??
    closed ??
    ((source ?? channel) === undefined ? 'it has no source' : (wrong ?? doubts.diagnostics[0]?.message));
  const {
    source: _source,
    drift,
    valuesConfigMap: _configMap,
    valuesSecret: _secret,
    ...others
  } = fields ?? {
    ...known?.rules,
    source: undefined,
    clusterSelector: known?.rules.clusterSelector,
    drift: undefined,
    valuesConfigMap: undefined,
    valuesSecret: undefined,
  };
  return {
    at: objectVersion(object),
    origin: originOf(object),
    problem,
    closed,
    drift,
    valuesFrom,
    channel,
    finalizers,
    conditions: own?.conditions ?? [],
    // A changed Secret or Channel voids one that was given before, although the generation is the same.
    approval: approval && secondsOf(approval.at) >= (stored?.since ?? 0) ? approval : undefined,
    status,
    addon: {
      name,
      generation,
      ...(source ?? { identity: name, ...place, source: { content: {} } }),
      ...(compat !== undefined && { compat }),
      // A release of the same name is taken over there without a question.
      ...(compat === 'caaph' && { adopt: true }),
      ...others,
      ...(fields && idleNote(fields, contentsIn(fields.source))),
      ...(paused && { paused }),
      ...(isDeleting && { deleting: true }),
      ...(orders && { orders }),
      ...(lapsed && { lapsed }),
      ...(stored && { status: stored }),
    },
  };
}

/** What a status has that says nothing yet. */
const NOT_STORED = {
  observedGeneration: 0,
  reached: 0,
  rolledBack: false,
  counts: {},
  reasons: {},
  batch: [],
  waiting: [],
};

/**
 * A definition of another version drops fields, and a controller of another version writes more: such a field counts as not stored. A
 * rollout continues as long as its revision and its time are there.
 */
function statusIn(status: unknown): AddonStatus | undefined {
  if (!isObject(status)) return undefined;
  const known: Record<string, unknown> = { ...NOT_STORED, ...status };
  const read = convert(HUB_KINDS.FleetAddon.status, known);
  if (!('problems' in read)) return read.value;
  for (const { path } of read.problems) delete known[String(path[0])];
  const fields: Record<string, unknown> = { ...NOT_STORED, ...known };
  if (status['removed'] !== undefined) fields['removed'] ??= UNREAD_REMOVALS;
  if (fits(HUB_KINDS.FleetAddon.status, fields)) return fields;
  const { removed } = fields;
  const bare = { ...NOT_STORED, revision: '', since: '', ...(removed !== undefined && { removed }) };
  return fits(HUB_KINDS.FleetAddon.status, bare) && bare.removed ? bare : undefined;
}

/** The brake is no rollout: what cannot be read must not lift it. */
const UNREAD_REMOVALS = [{ at: '', begun: UNREAD.begun }];

type AddonStatus = Read<typeof HUB_KINDS.FleetAddon.status>;

function readStatus({ soaking, ...status }: AddonStatus): FleetAddonStatus {
  const { conditions: _c, moreWaiting: _more, since, failed, retry, removals, removed, waiting, ...others } = status;
  return {
    ...others,
    since: secondsOf(since),
    ...(soaking && { soaking: mapped(soaking, secondsOf) }),
    ...(failed && { failed: { ...failed, retry: secondsOf(failed.retry) } }),
    ...(retry && { retry: { at: secondsOf(retry.at), seen: secondsOf(retry.seen) } }),
    ...(removals && { removals: { ...removals, at: secondsOf(removals.at) } }),
    ...(removed && { removed: removed.map((one) => ({ ...one, at: secondsOf(one.at) || UNREAD.at })) }),
    waiting: waiting.map((one) => ({ ...one, since: secondsOf(one.since) })),
  };
}

const order = v.object({
  generation: v.number(),
  at: v.pipe(v.string(), v.isoTimestamp()),
  by: v.exactOptional(v.string()),
  groups: v.exactOptional(v.array(v.string())),
  unproven: v.exactOptional(v.array(v.string())),
  removals: v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(0))),
  deletions: v.exactOptional(v.boolean()),
  downgrade: v.exactOptional(v.boolean()),
});
export type HubOrder = Read<typeof order>;

/** An order about another generation is void. None counts as given before `since`: a person's clock may be late. */
function readOrders(
  annotations: Readonly<Record<string, string>>,
  generation: number,
  since: number,
): Pick<FleetAddon, 'orders' | 'lapsed'> &
  Pick<HubAddon, 'approval'> & { readonly paused: boolean; readonly problem?: string } {
  const { [`${ORDER}pause`]: pause = 'false', [PAUSED]: held } = annotations;
  const paused = pause !== 'false' || held === 'true';
  const byVerb: Partial<Record<'approve' | 'retry' | 'rollback', Read<typeof order>>> = {};
  let lapsed: FleetAddon['lapsed'];
  for (const verb of ['approve', 'retry', 'rollback'] as const) {
    const text = annotations[`${ORDER}${verb}`];
    if (text === undefined) continue;
    const read = convert(order, valueOf(text));
    if ('problems' in read) {
      const example = '{"generation":1,"at":"2026-01-02T03:04:05Z"}';
      return { paused, problem: `the annotation ${ORDER}${verb} is not like ${example}` };
    }
    const { value } = read;
    if (value.generation === generation) byVerb[verb] = value;
    else
      lapsed = {
        at: secondsOf(value.at),
        ...lapsed,
        ...(verb === 'approve' ? approvalIn(value) : { [verb]: secondsOf(value.at) }),
      };
  }
  const { approve, retry, rollback } = byVerb;
  const timeOf = ({ at }: Read<typeof order>): number => Math.max(secondsOf(at), since);
  // The time of an approval says how many removals have begun under it.
  const [first] = [approve, retry, rollback].flatMap((one) => one ?? []);
  const others = { paused, ...(lapsed && { lapsed }), ...(approve && { approval: approve }) };
  if (first === undefined) return others;
  return {
    ...others,
    orders: {
      generation,
      ...(approve && approvalIn(approve)),
      at: timeOf(first),
      ...(retry && { retry: timeOf(retry), retryGiven: secondsOf(retry.at) }),
      ...(rollback && { rollback: timeOf(rollback) }),
    },
  };
}

function approvalIn({ generation: _generation, by: _by, at, ...approval }: Read<typeof order>): Approval {
  return { ...approval, at: secondsOf(at) };
}

function valueOf(text: string): unknown {
  try {
    return exactValue(text);
  } catch {
    return undefined;
  }
}

/** Undefined outside of the namespaces of clusters. */
export function readClusterAddon(object: Live): HubClusterAddon | undefined {
  const { metadata, spec, status } = object;
  const { namespace, name, annotations } = metadata;
  const cluster = clusterOf(namespace);
  if (cluster === undefined) return undefined;
  const at = objectVersion(object);
  const read = convert(HUB_KINDS.ClusterAddon.spec, spec);
  if ('problems' in read) return { at, annotations, status, record: undefined };
  const { hub: _hub, config, startedAt, source, values, knownGood, ...others } = read.value;
  const own = fits(HUB_KINDS.ClusterAddon.status, status) ? status : undefined;
  return {
    at,
    annotations,
    status,
    record: {
      cluster,
      addon: name,
      ...(config && { config }),
      spec: {
        ...others,
        source,
        values,
        startedAt: secondsOf(startedAt),
        ...(knownGood && { knownGood }),
      },
      ...(own && {
        status: {
          applied: own.applied,
          state: own.state,
          since: secondsOf(own.since),
          ...(own.reason !== undefined && { reason: own.reason }),
          ...(own.message !== undefined && { message: own.message }),
        },
      }),
    },
  };
}
