/** Which add-ons have an object, now and after a pass. */
import { objectKey } from '../channel/objects.ts';
import { addonId } from '../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, listOf } from '../../core/json.ts';
import { titleOf, type LiveObject } from '../kube/objects.ts';
import { ADDON_LABEL, managerOf, type Addon as Delivered } from './addon.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import type { AddonObject } from './addon-objects.ts';
import { recordedObjects } from './records.ts';

interface Addon {
  readonly namespace: string;
  readonly name: string;
}

/** What an add-on of the channels consists of after the pass, as far as that is known. */
export interface ChosenObjects {
  readonly addon: Addon;
  readonly keys: ReadonlySet<string>;
  /** Its new manifest cannot be read: it may have any object. */
  readonly isUnread: boolean;
}

/** An object is another add-on's, which keeps it, or goes with an owner that another program has given it. */
export class OwnedElsewhere extends CurlewError {}

export class Owners {
  readonly #chosen: readonly (ChosenObjects & { readonly id: string })[];
  /** Keys of the objects of each add-on after the pass, by id. */
  readonly #has: ReadonlyMap<string, ReadonlySet<string>>;
  /** The same before the pass. */
  readonly #had: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #releases: ReadonlyMap<string, string>;

  constructor({ facts }: Pick<ChannelCluster, 'facts'>, chosen: readonly ChosenObjects[]) {
    this.#chosen = chosen.map((one) => ({ ...one, id: addonId(one.addon) }));
    const records = [...facts.records.values()].map((one) => ({
      ...one,
      id: addonId({ namespace: one.namespace, name: one.addon }),
    }));
    this.#had = new Map(records.map(({ id, objects = [] }) => [id, new Set(recordedObjects(objects).keys())]));
    this.#has = new Map([...this.#had, ...this.#chosen.map(({ id, keys }) => [id, keys] as const)]);
    this.#releases = new Map(
      records.flatMap(({ id, release }) =>
        release === undefined ? [] : [[`${release.namespace}/${release.name}`, id]],
      ),
    );
  }

  /** Why an object that the add-on no longer has must stay: another add-on of the channels has it, or may have it. */
  movesTo(key: string, addon: Addon): string | undefined {
    const others = this.#chosen.filter(({ id }) => id !== addonId(addon));
    const next = others.find(({ keys }) => keys.has(key));
    if (next !== undefined) return `it moves to ${next.id}`;
    const unread = others.find(({ isUnread }) => isUnread);
    return unread && `the manifest of ${unread.id} cannot be read: it may move there`;
  }

  /**
   * Ids of the add-ons that hand over an object of the cluster. {@link OwnedElsewhere} if one of them has it in this pass, too, unless
   * the add-on takes it over, and, by the native rules, if the add-on does not have it yet and Kubernetes would delete it with an
   * owner.
   */
  formerOf(
    object: AddonObject,
    live: LiveObject,
    addon: Addon & Pick<Delivered, 'compat'> & { readonly takesOver: boolean },
  ): readonly string[] {
    const id = addonId(addon);
    const isOwn = this.#had.get(id)?.has(object.key) ?? false;
    // What the add-on has may get an owner from a controller.
    const problem = isOwn ? undefined : ownerProblem(object, live, { addon, keys: this.#has.get(id) });
    if (problem !== undefined) throw problem;
    const { labels, annotations, managedFields } = live.metadata;
    const label = labels[ADDON_LABEL];
    const prefix = managerOf('');
    const managers = managedFields.flatMap(({ manager, operation }) =>
      operation === 'Apply' && manager.startsWith(prefix) ? [manager.slice(prefix.length)] : [],
    );
    const release = `${annotations['meta.helm.sh/release-namespace']}/${annotations['meta.helm.sh/release-name']}`;
    const chart = this.#releases.get(release);
    const former = [...new Set([...(label === undefined ? [] : [label]), ...managers])].filter((one) => one !== id);
    if (addon.takesOver || label === id) return former;
    // A label of an unknown add-on can come from anyone who may change the object.
    const keeper = [...former, ...(chart === undefined || chart === id ? [] : [chart])].find(
      (one) => this.#has.get(one)?.has(object.key) ?? !isOwn,
    );
    if (keeper === undefined) return former;
    const what = `cannot apply ${titleOf(object.resource, object)} of ${id}: it belongs to the add-on ${keeper}`;
    throw new OwnedElsewhere('CLUSTER_FAILED', what, {
      hint: `delete it from one of the two manifests; --take-over=${addon.name} moves it to ${addon.name}`,
    });
  }
}

type Owner = LiveObject['metadata']['ownerReferences'][number];

/**
 * Why an add-on does not take over an object that it does not have yet: by the native rules, if Kubernetes deletes it with its owner. The
 * rules of kops take what others have. `keys`: of all that the add-on is to have.
 */
export function ownerProblem(
  object: AddonObject,
  live: LiveObject,
  {
    addon,
    keys,
  }: { readonly addon: Addon & Pick<Delivered, 'compat'>; readonly keys: ReadonlySet<string> | undefined },
): OwnedElsewhere | undefined {
  const owner = addon.compat === 'native' ? strangeOwner(object, live, keys) : undefined;
  return owner && goesWithOwner(object, addonId(addon), owner);
}

/** With which Kubernetes deletes an object; undefined if its manifest names one of its owners, or the add-on has it. */
function strangeOwner(
  { value, namespace }: AddonObject,
  { metadata: { ownerReferences } }: LiveObject,
  keys: ReadonlySet<string> | undefined,
): Owner | undefined {
  const named = listOf(fieldsOf(value['metadata'])['ownerReferences']).map((one) => fieldsOf(one)['uid']);
  const isKnown = ({ uid, ...owner }: Owner): boolean =>
    named.includes(uid) || [namespace, undefined].some((home) => keys?.has(objectKey({ ...owner, namespace: home })));
  // It stays as long as one of them does.
  return ownerReferences.some(isKnown) ? undefined : ownerReferences[0];
}

/** True for the owner that Open Cluster Management gives the objects of a ManifestWork on its cluster. */
export function isWork({ apiVersion, kind }: Pick<Owner, 'apiVersion' | 'kind'>): boolean {
  return kind === 'AppliedManifestWork' && apiVersion.startsWith('work.open-cluster-management.io/');
}

/** The way out is in the message: the status in a hub has no hints. */
function goesWithOwner(object: AddonObject, id: string, owner: Owner): OwnedElsewhere {
  const way = isWork(owner)
    ? 'set spec.deleteOption.propagationPolicy of its ManifestWork to Orphan, and delete that'
    : 'remove the owner from its metadata.ownerReferences, or leave the object out of the manifest';
  const what = `cannot apply ${titleOf(object.resource, object)} of ${id}: Kubernetes deletes it with its owner`;
  return new OwnedElsewhere('CLUSTER_FAILED', `${what}, ${owner.kind} ${owner.name}: ${way}`);
}
