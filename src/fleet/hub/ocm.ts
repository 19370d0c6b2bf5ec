/** Add-ons of Open Cluster Management in a hub: the FleetAddons that the controller makes from them, and the status that they get. Pure. */
import { groupBy } from '../../core/group-by.ts';
import { layersIn, type Having } from '../upstream/cluster-management-addon.ts';
import { CONFIG_TYPES, keyOf } from '../upstream/config-references.ts';
import { COMPAT } from '../upstream/document.ts';
import { mergeConfigs, type ConfigReference } from '../upstream/placed.ts';
import { readOcm } from '../upstream/read-ocm.ts';
import { fieldsOf, isObject, listOf } from '../../core/json.ts';
import type { Cluster, ClusterAddon, AddonContent, Values } from '../rollout/fleet.ts';
import { isFailure } from '../rollout/strategy.ts';
import type { Labels } from '../rollout/groups.ts';
import { reportOf } from '../rollout/reported.ts';
import { specHash } from '../rollout/spec-hash.ts';
import { NAME_LABEL } from '../upstream/kinds.ts';
import type { AddonCertificate } from '../upstream/registration.ts';
import {
  addonStatus,
  registrationApplied,
  registrationEntry,
  workProbe,
  type AddonStatus,
} from '../upstream/status.ts';
import { findingsOf, FROM, PAUSED, type HubAddon, type Live, type Made } from './observe.ts';
import { conditionsIn, readForeign, type ForeignObject } from './foreign-objects.ts';
import { conditionsAt, textOf } from './write.ts';

/** An object of any of its kinds. */
export interface OcmObject extends ForeignObject {
  readonly kind: string;
  readonly value: Live;
  /** The configurations that an add-on refers to, or an add-on on a cluster. */
  readonly layers: ReturnType<typeof layersIn>;
}

export function readOcmObject(object: Live): OcmObject {
  const kind = String(object['kind']);
  return { ...readForeign(kind, object), kind, value: object, layers: layersIn(kind, object) };
}

/** What a placement of an add-on becomes; with a problem, what it has become before stays. */
interface OcmMade extends Made {
  readonly name: string;
  readonly problem: string | undefined;
}

/** What all objects together become. */
export interface OcmFleet {
  /** By the ClusterManagementAddOn that they are made from. */
  readonly addons: ReadonlyMap<string, readonly OcmMade[]>;
  /** What is wrong with an object, by its name with kind and namespace: it keeps what it has become before. */
  readonly problems: ReadonlyMap<string, string>;
  /** Add-ons that wait for a scheduler: they keep that, too. */
  readonly early: ReadonlySet<string>;
  readonly notes: readonly string[];
  /** Labels of clusters, with those of their ManagedClusters. */
  readonly labels: ReadonlyMap<string, Labels>;
  readonly configs: Configs;
  /** ManagedClusterAddOns by the name of their add-on. */
  readonly onClusters: ReadonlyMap<string, readonly OcmObject[]>;
}

/** Objects by resource, namespace and name, as references have them. */
type Configs = ReadonlyMap<string, OcmObject>;

export function configsIn(objects: readonly OcmObject[]): Configs {
  return new Map(
    objects.map((one) => [`${one.kind.toLowerCase()}s/${one.at.namespace ?? ''}/${one.at.name}`, one] as const),
  );
}

/** `recent`: the uids of Placements that a scheduler may not have seen yet; `has`: the clusters that have an add-on, by its name. */
export function fleetOf(
  objects: readonly OcmObject[],
  clusters: readonly Cluster[],
  { recent = new Set(), has }: { readonly recent?: ReadonlySet<string>; readonly has?: Having } = {},
): OcmFleet {
  const documents = objects.map(({ kind, value, from }) => ({ kind, value, file: from, findings: findingsOf(from) }));
  let early: ReadonlyMap<string, string> = new Map();
  const undecided = (decided: ReadonlySet<string>): ReadonlySet<string> => {
    const placements = objects.filter(({ kind, at }) => kind === 'Placement' && !decided.has(keyOf(at)));
    const fresh = placements.filter(({ at }) => recent.has(at.uid));
    early = waitingFor(new Set(fresh.map(({ at }) => keyOf(at))), objects);
    // Without a trace of a scheduler, none runs, and placements are evaluated here.
    const isScheduled =
      decided.size > 0 || objects.some(({ kind, conditions }) => kind === 'Placement' && conditions.length > 0);
    return new Set((isScheduled ? placements : fresh).map(({ at }) => keyOf(at)));
  };
  const read = readOcm(documents, clusters, { hasHub: true, undecided, ...(has && { has }) });
  const addons = new Map<string, OcmMade[]>();
  for (const { name, named, compat = 'native', file, spec, problem } of read.addons) {
    const annotations = { [FROM]: file, [COMPAT]: compat, [PAUSED]: 'false' };
    const made = { name, problem, labels: {}, annotations, spec: { ...spec, source: { template: named } } };
    addons.set(file, [...(addons.get(file) ?? []), made]);
  }
  const findings = documents.flatMap(({ file: from, findings }) =>
    findings.diagnostics.map((one) => ({ ...one, from })),
  );
  // Other clusters may have other ways to their add-ons.
  const wrong = findings.filter(({ severity, code }) => severity === 'error' && code !== 'fleet/cluster');
  return {
    addons,
    problems: new Map(wrong.toReversed().map(({ from, message }) => [from, message])),
    early: new Set(early.keys()),
    notes: [...findings.map(({ from, message }) => `${from}: ${message}`), ...[...early].map((one) => one.join(': '))],
    labels: new Map(read.clusters.map(({ name, labels }) => [name, { ...labels, [NAME_LABEL]: name }])),
    configs: configsIn(objects),
    onClusters: groupBy(
      objects.filter(({ kind }) => kind === 'ManagedClusterAddOn'),
      ({ at }) => at.name,
    ),
  };
}

/** Add-ons with one of these placements, about which a scheduler has not had the time to decide, and which that is. */
function waitingFor(keys: ReadonlySet<string>, objects: readonly OcmObject[]): ReadonlyMap<string, string> {
  return new Map(
    objects.flatMap(({ from, layers }) => {
      const key = layers.placements.map(keyOf).find((one) => keys.has(one));
      return key === undefined ? [] : [[from, `Placement ${key} has no PlacementDecision yet`]];
    }),
  );
}

/** How far one cluster is with all of its configuration, which a ClusterAddon has by one hash; `content` is what is wanted there now. */
function reachOf(record: ClusterAddon, content: AddonContent | string): AddonStatus['status'] {
  const all = { type: '', name: record.addon };
  const { specHash: desiredHash, action } = record.spec;
  const { state } = reportOf(record) ?? {};
  const reference = { ...all, desiredHash, appliedHash: state === 'Succeeded' ? desiredHash : '' };
  const desired = { ...all, hash: typeof content === 'string' ? '' : content.specHash };
  const reason = state !== undefined && isFailure(state) ? 'Failed' : 'Progressing';
  return addonStatus([desired], action === 'Install' ? [reference] : [], { reason }).status;
}

/** The condition Available. What a ClusterAddon delivers is its work, and a delivery has succeeded when its workloads are healthy. */
function availableOf(record: ClusterAddon, isHeard: boolean): ReturnType<typeof workProbe> {
  const { state } = reportOf(record) ?? {};
  const available = state === 'Succeeded' ? 'True' : state !== undefined && isFailure(state) ? 'False' : undefined;
  return workProbe({
    clusterAvailable: isHeard ? 'True' : 'Unknown',
    work: record.spec.action === 'Install' ? { available } : null,
  });
}

interface Config {
  readonly type: { readonly group: string; readonly resource: string };
  readonly referent: { readonly namespace?: string; readonly name: string };
  readonly generation: number;
  readonly hash: string;
}

/** Hashes of specs: each cluster refers to the same objects. */
const hashes = new WeakMap<OcmObject, string>();

function hashOf(one: OcmObject): string {
  const hash = hashes.get(one) ?? specHash(one.value);
  hashes.set(one, hash);
  return hash;
}

/** Configurations of these layers, the last one of each type, with the hashes of their specs. */
function configsOf(layers: readonly (readonly ConfigReference[])[], configs: Configs): readonly Config[] {
  return Object.entries(mergeConfigs(layers)).flatMap(([title, keys]) => {
    const [group = '', resource = ''] = title.split('/');
    return keys.map((key): Config => {
      const [namespace = '', name = ''] = key.split('/');
      const one = configs.get(`${resource}/${key}`);
      const referent = { ...(namespace !== '' && { namespace }), name };
      return {
        type: { group, resource },
        referent,
        generation: one?.generation ?? 0,
        hash: one ? hashOf(one) : '',
      };
    });
  });
}

/** Its version has other fields in the status. */
function isLater({ value }: OcmObject): boolean {
  return String(value['apiVersion']).endsWith('/v1beta1');
}

/** Reason of the condition Progressing of a placement that cannot be followed, and of what refers to a configuration that cannot be. */
export type Held = 'PlacementNotFollowed' | 'ConfigurationNotFollowed';

/** Problems of placements that the status of an add-on does not say yet. */
export function newProblems(own: OcmObject, problems: readonly (string | undefined)[]): readonly string[] {
  const said = storedIn(own.status, 'installProgressions').flatMap((one) =>
    conditionsIn(one).map(({ message }) => message),
  );
  return problems.flatMap((one) => (one === undefined || said.includes(textOf(one)) ? [] : [one]));
}

/** The status of a ManagedClusterAddOn whose configuration cannot be followed: it says why, and keeps all else. */
export function heldStatus(own: OcmObject, message: string, now: number): Values {
  const reason: Held = 'ConfigurationNotFollowed';
  return withConditions(own, {}, [{ type: 'Progressing', status: 'False', reason, message }], now);
}

interface Stored {
  readonly lastAppliedConfig?: unknown;
  readonly lastKnownGoodConfig?: unknown;
  readonly [field: string]: unknown;
}

function storedIn(status: unknown, list: string): readonly Stored[] {
  return listOf(fieldsOf(status)[list]).filter(isObject);
}

function hashed({ referent, hash }: Config): Values {
  return { ...referent, specHash: hash };
}

const PROGRESS = {
  ToApply: ['False', 'WaitingForCanary', 'its configuration waits for its turn'],
  Progressing: ['True', 'Progressing', 'the configuration is being applied'],
  Failed: ['False', 'Failed', 'the configuration could not be applied'],
  Succeeded: ['False', 'Completed', 'the configuration is applied'],
} as const;

/** What the template of an add-on registers on a cluster. */
export interface AddonRegistration {
  readonly certificates: readonly AddonCertificate[];
  /** Where its Secrets are; undefined if that is up to each of its objects. */
  readonly namespace: string | undefined;
  /** It has all of its rights. */
  readonly isBound: boolean;
  /** Why it cannot have them. */
  readonly refusal: string | undefined;
}

/** The status of a ManagedClusterAddOn at `now`; `at` is the place of its FleetAddon among those of its add-on. */
export function onClusterStatus(
  own: OcmObject,
  {
    addon,
    at,
    record,
    content,
    isHeard,
    registration,
    configs: around,
    now,
  }: {
    readonly addon: OcmObject;
    readonly at: number;
    readonly record: ClusterAddon;
    /** What is wanted there now. */
    readonly content: AddonContent | string;
    /** The cluster answers. */
    readonly isHeard: boolean;
    /** Undefined: what the status says of it stays. */
    readonly registration?: AddonRegistration | undefined;
    readonly configs: Configs;
    readonly now: number;
  },
): Values {
  const { base, placements } = addon.layers;
  const before = storedIn(own.status, 'configReferences');
  const reach = reachOf(record, content);
  const references = configsOf([base, placements[at]?.layer ?? [], own.layers.base], around).map((one) => {
    const { type, referent, generation } = one;
    const isStored = ({ resource, name, desiredConfig }: Stored): boolean =>
      resource === type.resource && (name ?? (isObject(desiredConfig) && desiredConfig['name'])) === referent.name;
    const stored = before.find(isStored) ?? {};
    const desired = reach === 'ToApply' ? (stored['desiredConfig'] ?? hashed(one)) : hashed(one);
    const applied = reach === 'Succeeded' ? hashed(one) : stored['lastAppliedConfig'];
    return {
      ...type,
      ...(!isLater(own) && referent),
      lastObservedGeneration: generation,
      desiredConfig: desired,
      ...(applied !== undefined && { lastAppliedConfig: applied }),
    };
  });
  const { state, reason: why, message } = reportOf(record) ?? {};
  const [status, reason, text] =
    state === 'Skipped' && reach === 'Progressing'
      ? (['False', why ?? state, 'the configuration is not applied'] as const)
      : PROGRESS[reach];
  const isSaid = message !== undefined && (reach === 'Failed' || reach === 'Progressing');
  const shown = isSaid ? `${text}: ${message}` : text;
  const available = availableOf(record, isHeard);
  const rights = registration ? registrationApplied(registration.isBound, registration.refusal) : 'unchanged';
  const present = [
    ...(available === 'unchanged' ? [] : [{ type: 'Available', ...available, message: shown }]),
    { type: 'Progressing', status, reason, message: shown },
    ...(rights === 'unchanged' ? [] : [{ type: 'RegistrationApplied', ...rights }]),
  ];
  const { certificates, namespace } = registration ?? {};
  const written = {
    configReferences: references,
    supportedConfigs: CONFIG_TYPES,
    ...(certificates && { registrations: certificates.map((one) => registrationEntry(one, isLater(own))) }),
    ...(namespace !== undefined && { namespace }),
  };
  return withConditions(own, written, present, now);
}

/** Other fields and conditions stay. */
function withConditions(
  { status, conditions }: OcmObject,
  fields: Values,
  present: Parameters<typeof conditionsAt>[0],
  now: number,
): Values {
  const others = conditions.filter(({ type }) => !present.some((one) => one.type === type));
  return {
    ...(isObject(status) && status),
    ...fields,
    conditions: [...others, ...conditionsAt(present, conditions, now)],
  };
}

/** The status of a ClusterManagementAddOn at `now`, by those of its FleetAddons, in the order of its placements. */
export function managementStatus(
  own: OcmObject,
  {
    addons,
    problems = [],
    held: because = 'PlacementNotFollowed',
    configs,
    now,
  }: {
    readonly addons: readonly (HubAddon | undefined)[];
    /** Why what placements have become stays as it is. */
    readonly problems?: readonly (string | undefined)[];
    readonly held?: Held;
    readonly configs: Configs;
    readonly now: number;
  },
): Values {
  const { base, placements } = own.layers;
  const before = storedIn(own.status, 'installProgressions');
  const progressions = placements.map(({ name, namespace, layer }, at): Values => {
    const stored = before.find((one) => one['name'] === name && one['namespace'] === namespace) ?? {};
    const { status: reached, generation } = addons[at]?.addon ?? {};
    const { counts = {}, stopped } = reached ?? {};
    const { Succeeded = 0, Failed = 0, TimedOut = 0 } = counts;
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    // The counts of an older generation are about what is being replaced.
    const isDone = reached?.observedGeneration === generation && total > 0 && Succeeded === total;
    const hasFailed = Failed + TimedOut > 0 || stopped !== undefined;
    const { [at]: held } = problems;
    const [status, reason] =
      held === undefined
        ? PROGRESS[isDone ? 'Succeeded' : hasFailed ? 'Failed' : 'Progressing']
        : ['False' as const, because];
    const message = held ?? stopped ?? `${Succeeded}/${total} completed, ${Failed + TimedOut} failed`;
    const configReferences = configsOf([base, layer], configs).map((one) => {
      const last = storedIn(stored, 'configReferences').find(({ resource }) => resource === one.type.resource) ?? {};
      const done = hashed(one);
      const { lastAppliedConfig, lastKnownGoodConfig }: Stored = isDone
        ? { lastAppliedConfig: done, lastKnownGoodConfig: done }
        : last;
      return {
        ...one.type,
        desiredConfig: done,
        ...(lastAppliedConfig !== undefined && { lastAppliedConfig }),
        ...(lastKnownGoodConfig !== undefined && { lastKnownGoodConfig }),
      };
    });
    const conditions = conditionsAt([{ type: 'Progressing', status, reason, message }], conditionsIn(stored), now);
    return { name, namespace, configReferences, conditions };
  });
  return {
    ...(isObject(own.status) && own.status),
    [isLater(own) ? 'defaultConfigReferences' : 'defaultconfigReferences']: configsOf([base], configs).map((one) => ({
      ...one.type,
      desiredConfig: hashed(one),
    })),
    ...(progressions.length > 0 && { installProgressions: progressions }),
  };
}
