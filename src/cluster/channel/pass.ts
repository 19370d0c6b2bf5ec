/** The decisions of one pass over a cluster about each add-on of its channels, and why. Pure. */
import { firstOf } from '../../core/counted.ts';
import { redact } from '../../core/errors.ts';
import { byName, entryTitle, type Channel, type Compat, type Entry } from './channel.ts';
import { choose, decideVersion, type Decision } from './choose.ts';
import { formatRange, type Triple } from './range.ts';
import { installedOf, recordKey, type AddonRecord, type Annotated } from './record.ts';

/** The facts of a cluster about its add-ons. */
export interface ClusterFacts {
  readonly kubernetes: Triple;
  /** By {@link recordKey}. */
  readonly annotations: ReadonlyMap<string, Annotated>;
  readonly records: ReadonlyMap<string, AddonRecord>;
  /** Add-ons that installs on nodes have brought. */
  readonly installer: ReadonlySet<string>;
}

export interface PassOptions {
  readonly allowDowngrade?: boolean | undefined;
  /** Add-ons of other owners, which become those of their channel: all, or those of these names. */
  readonly takeOver?: boolean | readonly string[] | undefined;
}

export type AddonAction = 'install' | 'update' | 'downgrade' | 'restore' | 'revert' | 'none' | 'refused';

export interface PassAddon {
  readonly channel: Channel;
  readonly entry: Entry;
  readonly action: AddonAction;
  /** For people. */
  readonly reason: string;
  /** The option that applies an add-on that is refused. */
  readonly hint?: string;
  /** The installed version; undefined if there is none. */
  readonly installed: Annotated | undefined;
  readonly record: AddonRecord | undefined;
  /** The installed version is not for this version of Kubernetes. */
  readonly incompatible: boolean;
}

/** An add-on that was applied from one of the channels, or failed to be, and for which that has no entry now. */
export interface UnlistedAddon {
  readonly addon: string;
  readonly namespace: string;
  /** Or what was to be, if it never became healthy. */
  readonly installed: Annotated;
  readonly reason: string;
}

/** An add-on of a channel that has no entry for this version of Kubernetes. */
export interface UnfitAddon {
  readonly addon: string;
  readonly channel: string;
  readonly reason: string;
}

export interface Pass {
  readonly addons: readonly PassAddon[];
  readonly unlisted: readonly UnlistedAddon[];
  /** Not installed, or not from their channel. */
  readonly unfit: readonly UnfitAddon[];
  readonly warnings: readonly string[];
}

/** The owner of an add-on that a channel has. */
export function channelOwner({ name, location }: Pick<Channel, 'name' | 'location'>): string {
  return `channel:${name ?? redact(location)}`;
}

/**
 * Channels are separate, in the order given; the first one that has an add-on keeps it. Each add-on of each channel is in one of the
 * lists, or in a warning.
 */
export function planPass(channels: readonly Channel[], facts: ClusterFacts, options: PassOptions = {}): Pass {
  const addons: PassAddon[] = [];
  const warnings: string[] = [];
  const unfit: UnfitAddon[] = [];
  const taken = new Map<string, Channel>();
  for (const channel of channels) {
    const location = redact(channel.location);
    const chosen = choose(channel.entries, facts.kubernetes, channel.compat);
    for (const entry of chosen.values()) {
      const key = recordKey(entry.namespace, entry.name);
      const other = taken.get(key);
      if (other === undefined) addons.push(planAddon(channel, entry, facts, options));
      else warnings.push(`${entry.name} of ${location} is ignored: ${redact(other.location)} has it, too`);
      if (other === undefined) taken.set(key, channel);
    }
    for (const [addon, entries] of byName(channel.entries)) {
      if (!chosen.has(addon)) unfit.push({ addon, channel: location, reason: unfitReason(entries, facts) });
    }
  }
  const unlisted = unlistedAddons(channels, facts, new Set(taken.keys()));
  const isUnlisted = ({ addon }: UnfitAddon): boolean => unlisted.some((one) => one.addon === addon);
  return { addons, unlisted, unfit: unfit.filter((one) => !isUnlisted(one)), warnings };
}

function unfitReason(entries: readonly Entry[], { kubernetes }: ClusterFacts): string {
  const titles = entries.slice(0, 3).map((entry) => `${entryTitle(entry)} is for ${formatRange(entry.range ?? [])}`);
  return `no entry fits Kubernetes ${kubernetes.join('.')}: ${titles.join(', ')}`;
}

/** Decides again about an add-on whose entry has no hash, with that of its content. */
export function withContent(
  { channel, entry }: PassAddon,
  hash: string,
  { facts, options = {} }: { readonly facts: ClusterFacts; readonly options?: PassOptions },
): PassAddon {
  return { ...planAddon(channel, { ...entry, hash }, facts, options), entry };
}

function planAddon(channel: Channel, entry: Entry, facts: ClusterFacts, options: PassOptions): PassAddon {
  const key = recordKey(entry.namespace, entry.name);
  const record = facts.records.get(key);
  const installed = installedOf(facts.annotations.get(key), record).revision;
  const { kubernetes } = facts;
  const decision = decideVersion(entry, installed, { entries: channel.entries, kubernetes, compat: channel.compat });
  const planned = { channel, entry, installed, record, incompatible: decision.incompatible };
  const owner = ownerOf(channel, entry, { ...facts, record, installed });
  if (owner !== undefined && !takesOver(options, entry.name)) {
    const hint = `--take-over=${entry.name} makes it an add-on of this channel`;
    return { ...planned, action: 'refused', reason: `it belongs to ${owner}`, hint };
  }
  const kinds = kindChange(entry, record);
  if (kinds !== undefined) {
    const hint = `back up its data, then curlew channel remove ${entry.name}: its objects are deleted and created again`;
    return { ...planned, action: 'refused', reason: kinds, hint };
  }
  const reason = reasonOf(decision, { entry, installed, kubernetes });
  if (decision.action === 'downgrade' && options.allowDowngrade !== true) {
    return { ...planned, action: 'refused', reason, hint: '--allow-downgrade applies it' };
  }
  if (decision.action !== 'none') return { ...planned, action: decision.action, reason };
  // The annotation says that it is installed; what curlew began later has not come to its end.
  if (record !== undefined && record.state !== 'Succeeded') {
    return {
      ...planned,
      action: 'update',
      reason: record.reason === '' ? 'the last run did not finish' : record.reason,
    };
  }
  if (owner !== undefined) return { ...planned, action: 'update', reason: `taken over from ${owner}` };
  return { ...planned, action: 'none', reason };
}

/**
 * The key of the record of a required add-on: in the namespace that the first of these channels which has the add-on gives it, and
 * in kube-system if none has it. The same name in another namespace is another add-on.
 */
export function requiredKey(
  name: string,
  channels: readonly Pick<Channel, 'entries' | 'compat'>[],
  { kubernetes }: Pick<ClusterFacts, 'kubernetes'>,
): string {
  const having = channels.find(({ entries }) => entries.some((entry) => entry.name === name));
  const own = (having?.entries ?? []).filter((entry) => entry.name === name);
  const [first] = own;
  const chosen = choose(own, kubernetes, having?.compat ?? 'native').get(name) ?? first;
  return recordKey(chosen?.namespace ?? 'kube-system', name);
}

/** Is an add-on of another owner to become that of its channel? */
export function takesOver({ takeOver = false }: PassOptions, addon: string): boolean {
  return typeof takeOver === 'boolean' ? takeOver : takeOver.includes(addon);
}

/**
 * Another owner than the channel; undefined if it may apply the add-on. An annotation without a record says nothing about objects:
 * natively its add-on is that of another program. By the rules of kops, it is the channel's.
 */
function ownerOf(
  channel: Channel,
  entry: Entry,
  { record, installed, installer }: Pick<ClusterFacts, 'installer'> & Pick<PassAddon, 'record' | 'installed'>,
): string | undefined {
  const own = channelOwner(channel);
  if (record !== undefined) return record.owner === own ? undefined : record.owner;
  if (installer.has(entry.name)) return 'installer';
  if (installed === undefined || !isNative(channel.compat)) return undefined;
  const from = installed.channel === undefined ? '' : `, which applied it from ${installed.channel}`;
  return `another program${from}`;
}

/** Why an add-on is refused: a chart and a manifest, and two releases, do not know each other's objects: what one leaves behind the other would delete. */
export function kindChange(
  { source }: Entry,
  { release, objects = [] }: Partial<AddonRecord> = {},
): string | undefined {
  if (source?.type !== 'manifest' && source?.type !== 'chart') return undefined;
  const title = (name: string, namespace: string): string => `release ${namespace}/${name}`;
  const wanted = source.type === 'chart' ? title(source.chart.releaseName, source.chart.namespace) : 'a manifest';
  const has = release === undefined ? 'a manifest' : title(release.name, release.namespace);
  if (has === wanted || (release === undefined && objects.length === 0)) return undefined;
  return `it is installed as ${has}, and would become ${wanted}`;
}

function isNative(compat: Compat): boolean {
  return compat === 'native';
}

function reasonOf(
  { action, reason, incompatible }: Decision,
  {
    entry,
    installed,
    kubernetes,
  }: { readonly entry: Entry; readonly installed?: Annotated | undefined; readonly kubernetes: Triple },
): string {
  const version = installed?.version ?? 'what is installed';
  const why = incompatible ? `${version} is not for Kubernetes ${kubernetes.join('.')}` : REASONS[reason];
  if (action === 'downgrade') {
    const what = reason === 'version-lower' ? `${version} is installed, which is greater` : REASONS[reason];
    return incompatible ? `${what}, but ${why}` : what;
  }
  const range = entry.range === undefined || entry.kubernetesVersion === '' ? undefined : formatRange(entry.range);
  return range === undefined || action === 'none' ? why : `${why}; for Kubernetes ${range}`;
}

const REASONS: Readonly<Record<Decision['reason'], string>> = {
  'not-installed': 'not installed',
  'version-greater': 'a newer version',
  'version-lower': 'a greater version is installed',
  'version-missing': 'it has no version, and what is installed has one',
  'version-unparseable': 'its version cannot be compared',
  'kept-unparseable': 'the installed version cannot be compared',
  'kept-unversioned': 'what is installed has no version',
  'id-differs': 'another id',
  'hash-differs': 'changed content',
  'generation-older': 'applied by an older program',
  'generation-newer': 'applied by a newer program',
  same: 'up to date',
};

/** A channel that has moved is known by the owner in the record, and without a record by its location only. */
function unlistedAddons(
  channels: readonly Channel[],
  facts: ClusterFacts,
  taken: ReadonlySet<string>,
): readonly UnlistedAddon[] {
  const unlisted: UnlistedAddon[] = [];
  // An add-on that has never succeeded has no annotation.
  for (const key of new Set([...facts.annotations.keys(), ...facts.records.keys()])) {
    if (taken.has(key)) continue;
    const record = facts.records.get(key);
    const known = facts.annotations.get(key) ?? record?.desired ?? {};
    const isFrom = (one: Channel): boolean => known.channel === redact(one.location);
    const isOwn = (one: Channel): boolean => record?.owner === channelOwner(one);
    const channel = channels.find((one) => (record === undefined ? isFrom(one) : isOwn(one)));
    if (channel === undefined) continue;
    const [namespace = '', addon = ''] = key.split(':');
    const others = channel.entries.filter((entry) => entry.name === addon);
    const moved = others.find((entry) => taken.has(recordKey(entry.namespace, addon)));
    const gone = isFrom(channel) || known.channel === undefined ? '' : `; it was applied from ${known.channel}`;
    const failed = record?.state === 'Failed' ? `; its last apply failed: ${record.reason}` : '';
    const reason =
      moved !== undefined
        ? `the channel has it in namespace ${moved.namespace}`
        : others.length > 0
          ? unfitReason(others, facts)
          : `the channel no longer has it${gone}`;
    const installed = installedOf(facts.annotations.get(key), record).revision ?? known;
    unlisted.push({ addon, namespace, installed, reason: `${reason}${failed}` });
  }
  return unlisted;
}

/** Objects of an add-on that are not as they were applied. */
export interface LiveState {
  readonly missing: readonly string[];
  /** Another manager changed fields that the add-on owns. */
  readonly changed: readonly string[];
  /** Objects, with what others have added to lists and maps of theirs, in words. No apply removes it. */
  readonly added?: readonly string[];
}

/** A planned add-on, and what its objects look like. */
export interface LookedAddon extends PassAddon {
  readonly look: LiveState;
}

const MAX_TITLES = 3;

/** The result of a look at the objects of an unchanged add-on: deleted ones come back, changed ones as its `drift` says. */
export function withLive(planned: PassAddon, look: LiveState): LookedAddon {
  const { missing, changed } = look;
  if (planned.action !== 'none') return { ...planned, look };
  if (missing.length > 0)
    return { ...planned, look, action: 'restore', reason: `missing: ${firstOf(missing, MAX_TITLES)}` };
  if (planned.entry.drift !== 'Revert' || changed.length === 0) return { ...planned, look };
  return { ...planned, look, action: 'revert', reason: `changed by another manager: ${firstOf(changed, MAX_TITLES)}` };
}
