/** How recorded objects are now: which are missing, and which others have changed or added to. */
import type { LiveState } from '../channel/pass.ts';
import { recordKey, type AddonRecord, type RecordedKind } from '../channel/record.ts';
import { counted, firstOf } from '../../core/counted.ts';
import { canonicalJson, digestOf, hexOf } from '../../core/digest.ts';
import { withDigits } from '../../core/json.ts';
import { Refused } from '../kube/call.ts';
import { addedByOthers, valuesOf } from '../kube/managed-fields.ts';
import { mapObjects, titleOf, type LiveObject } from '../kube/objects.ts';
import type { Resource } from '../kube/resources.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import type { ChannelCluster } from './channel-cluster.ts';

const LISTS_AT_ONCE = 2;
/** Additions that are named of an object, and objects with additions that are named of an add-on. */
const MAX_ADDED = 5;
const MAX_OBJECTS = 20;

/** How objects say what they belong to. */
export interface Ownership {
  /** Selects the objects of all owners. */
  readonly labelSelector: string;
  readonly ownerIn: (metadata: LiveObject['metadata']) => string | undefined;
  readonly ownerOf: (record: AddonRecord) => string | undefined;
  /** The field manager of an owner. */
  readonly managerOf: (owner: string | undefined) => string;
}

/** The recorded objects of add-ons, by {@link recordKey}: one list for each kind. */
export async function lookAtObjects(
  { call, signal, warnings }: Pick<ChannelCluster, 'call' | 'signal' | 'warnings'>,
  records: readonly AddonRecord[],
  ownership: Ownership,
): Promise<ReadonlyMap<string, LiveState>> {
  const { labelSelector } = ownership;
  const kinds = new Map(records.flatMap(({ objects = [] }) => objects.map((kind) => [keyOf(kind), kind] as const)));
  const live = new Map<string, SeenObject>();
  const unread = new Set<string>();
  const listKind = async ([key, kind]: readonly [string, RecordedKind]): Promise<void> => {
    try {
      // A kind that is no longer served has no objects.
      const look = (object: LiveObject): SeenObject => seenObject(object, kind, ownership);
      const objects = (await mapObjects(call, kind, { labelSelector }, look)) ?? [];
      for (const object of objects) live.set(`${key} ${object.place}`, object);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      unread.add(key);
      warnings.push(`objects of add-ons are not compared: ${error.message}`);
    }
  };
  await eachLimited(kinds, listKind, { width: LISTS_AT_ONCE, signal });
  const look = (record: AddonRecord): LiveState => {
    const [missing, changed, added]: [string[], string[], string[]] = [[], [], []];
    const seen = (record.objects ?? []).filter((kind) => !unread.has(keyOf(kind)));
    for (const [kind, object] of seen.flatMap((one) => one.objects.map((object) => [one, object] as const))) {
      const liveObject = live.get(`${keyOf(kind)} ${object.namespace ?? ''}/${object.name}`);
      const title = titleOf(kind, object);
      if (liveObject === undefined || liveObject.owner !== ownership.ownerOf(record)) {
        missing.push(title);
        continue;
      }
      // The digest is not known if an apply did not finish.
      if (object.owned !== '' && !liveObject.digests.includes(object.owned)) changed.push(title);
      if (liveObject.added !== '') added.push(`${title}: ${liveObject.added}`);
    }
    const more = added.length - MAX_OBJECTS;
    return {
      missing,
      changed,
      added: more > 0 ? [...added.slice(0, MAX_OBJECTS), counted(more, 'more object')] : added,
    };
  };
  return new Map(records.map((record) => [recordKey(record.namespace, record.addon), look(record)]));
}

function keyOf({ apiVersion, plural }: Pick<Resource, 'apiVersion' | 'plural'>): string {
  return `${apiVersion} ${plural}`;
}

/** What a look keeps of an object. */
interface SeenObject {
  readonly place: string;
  readonly owner: string | undefined;
  /** The digest in each form that records have. */
  readonly digests: readonly string[];
  readonly added: string;
}

function seenObject(object: LiveObject, kind: RecordedKind, { ownerIn, managerOf }: Ownership): SeenObject {
  const { namespace = '', name } = object.metadata;
  const owner = ownerIn(object.metadata);
  const manager = managerOf(owner);
  const digests = [namesDigest(object, manager), valuesDigest(object, manager, kind)];
  const added = firstOf(addedByOthers(object.metadata.managedFields, manager), MAX_ADDED);
  return { place: `${namespace}/${name}`, owner, digests, added };
}

/** Begins a digest of this form; one of names has no prefix. */
const VALUES = 'values:';

/** The digest of the names of a manager's fields, the first form in records; empty if it owns none. */
function namesDigest(object: LiveObject, manager: string): string {
  const [first, second] = ownFields(object, manager);
  return first === undefined ? '' : shortDigest(second === undefined ? first : [first, second]);
}

/** The digest of a manager's fields and their values; empty if it owns none. */
export function valuesDigest(object: LiveObject, manager: string, { kind }: Pick<Resource, 'kind'>): string {
  const own = ownFields(object, manager);
  if (own.length === 0) return '';
  const { managedFields, uid } = object.metadata;
  const others = managedFields.filter((one) => one.manager !== manager).map(({ fieldsV1 }) => fieldsV1);
  // Whoever can read the record and not the Secret does not know its uid, and cannot try which value fits.
  const salt = kind === 'Secret' ? uid : '';
  return `${VALUES}${shortDigest([salt, own.map((fields) => valuesOf(object, fields, others))])}`;
}

function ownFields({ metadata }: LiveObject, by: string): readonly unknown[] {
  const own = metadata.managedFields.filter(({ manager, subresource }) => manager === by && subresource === '');
  return own.map(({ fieldsV1 }) => fieldsV1 ?? {});
}

function shortDigest(value: unknown): string {
  return hexOf(digestOf(canonicalJson(withDigits(value)))).slice(0, 16);
}
