/**
 * The records on a cluster about its add-ons: for each, an annotation of a Namespace, which kops' tool reads and writes
 * too, and a full record in one ConfigMap. Pure.
 */
import * as v from 'valibot';
import { canonicalJson, digestOf, hexOf } from '../../core/digest.ts';
import { redact } from '../../core/errors.ts';
import { isObject, jsonIn } from '../../core/json.ts';
import { byKey, fits, integer, type Read } from '../../core/schema.ts';
import type { Compat } from './channel.ts';
import { GENERATION } from './choose.ts';

/** Begins the names of annotations that say what is installed. */
export const ANNOTATION_PREFIX = 'addons.k8s.io/';
/** Number of earlier revisions in a full record. */
const MAX_HISTORY = 10;

const text = v.optional(v.string());
/** Names become segments of paths, and arguments of helm: only those that an API server can have given. */
const segment = v.pipe(v.string(), v.regex(/^(?!\.{1,2}$)[^/%]+$/));
const dnsName = v.pipe(v.string(), v.regex(/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/));

/** Content of an add-on, and where it came from. A list is not one. */
const revision = v.pipe(
  byKey(v.unknown()),
  v.object({
    /** Location of the channel. */
    channel: text,
    version: text,
    id: text,
    hash: text,
    generation: v.optional(integer),
    kubernetes: text,
  }),
);
export type Revision = Read<typeof revision>;

/** The installed version, as an annotation says. */
export type Annotated = Omit<Revision, 'kubernetes'>;

/** Objects of one kind that an add-on consists of. */
const recordedKind = v.object({
  apiVersion: v.pipe(v.string(), v.regex(/^(?:[a-z0-9][a-z0-9.-]*\/)?[a-z0-9][a-z0-9-]*$/)),
  kind: v.string(),
  plural: dnsName,
  namespaced: v.boolean(),
  objects: v.array(
    v.object({
      namespace: v.optional(dnsName),
      name: segment,
      /** Digest of the fields that curlew owns, and of their values; another one means that the object was changed. */
      owned: v.string(),
    }),
  ),
});
export type RecordedKind = Read<typeof recordedKind>;

/** The release of a chart. Without a revision, it was begun and may not exist. */
const recordedRelease = v.object({
  name: dnsName,
  namespace: dnsName,
  revision: v.optional(integer),
  /** Status from helm, such as `deployed`. */
  status: text,
  /** `name-version` */
  chart: text,
  /** Hash of the chart and its values; undefined if they were not applied as a whole. */
  hash: text,
});
export type RecordedRelease = Read<typeof recordedRelease>;

const addonRecord = v.object({
  addon: v.string(),
  /** Namespace of the annotation. */
  namespace: v.string(),
  /** Who may change the add-on: `installer`, `channel:NAME`, `fleet:NAME` or `foreign`. */
  owner: v.string(),
  state: v.picklist(['ToApply', 'Progressing', 'Succeeded', 'Failed', 'TimedOut', 'Skipped', 'Paused']),
  /** When the state began by the clock of the API server, as ISO 8601. */
  since: v.string(),
  /** For people. */
  reason: v.string(),
  desired: v.optional(revision),
  applied: v.optional(revision),
  /** The objects of `applied`. */
  objects: v.optional(v.array(recordedKind)),
  /** Objects that earlier versions have left behind, until they are gone. */
  orphans: v.optional(v.array(recordedKind)),
  release: v.optional(recordedRelease),
  /** The last one that became healthy. */
  knownGood: v.optional(revision),
  /** Versions that were applied before, the newest first. */
  history: v.array(v.object({ revision, until: v.string() })),
});
export type AddonRecord = Read<typeof addonRecord>;

/** The records that were read, and a warning for those that could not be. */
interface Inventory<T> {
  /** By {@link recordKey}: the same add-on in another namespace is another one. */
  readonly records: ReadonlyMap<string, T>;
  readonly warnings: readonly string[];
}

export function recordKey(namespace: string, addon: string): string {
  return `${namespace}:${addon}`;
}

const MAX_ID = 63;
const SHORTENED = /^.{50}-[0-9a-f]{12}$/;

/**
 * The name of an add-on in labels and field managers, which have at most 63 characters: `<namespace>.<add-on>`, shortened with
 * a digest if need be. What looks like a shortened one is shortened, too, so that no name is the id of another add-on.
 */
export function addonId({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  const whole = `${namespace}.${name}`;
  const isWhole = whole.length <= MAX_ID && !SHORTENED.test(whole);
  return isWhole ? whole : `${whole.slice(0, 50)}-${hexOf(digestOf(whole)).slice(0, 12)}`;
}

export function annotationKey(addon: string): string {
  return `${ANNOTATION_PREFIX}${addon}`;
}

/**
 * The value of an annotation. Only `kops` leaves the version out, and `kops-2017` the generation; whatever else is there is
 * ignored by all programs. Empty fields are left out, and secrets of the channel's address.
 */
export function encodeAnnotation({ channel, version, id, hash }: Annotated, compat: Compat): string {
  const fields = {
    version: compat === 'kops' ? '' : version,
    channel: channel === undefined ? undefined : redact(channel),
    id,
    manifestHash: hash,
    systemGeneration: compat === 'kops-2017' ? '' : GENERATION,
  };
  return JSON.stringify(
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')),
  );
}

/** The add-ons that the annotations of all namespaces name. */
export function readAnnotations(
  namespaces: readonly { readonly name: string; readonly annotations: Readonly<Record<string, string>> }[],
): Inventory<Annotated> {
  const values = namespaces.flatMap(({ name, annotations }) =>
    Object.entries(annotations).flatMap(([key, text]) => {
      if (!key.startsWith(ANNOTATION_PREFIX)) return [];
      const title = `annotation ${key} of namespace ${name}`;
      return [{ key: recordKey(name, key.slice(ANNOTATION_PREFIX.length)), title, text }];
    }),
  );
  return readAll(values, readAnnotated, 'its add-on counts as not installed');
}

function readAll<T>(
  values: readonly { readonly key: string; readonly title: string; readonly text: string }[],
  read: (value: unknown, key: string) => T | undefined,
  consequence: string,
): Inventory<T> {
  const records = new Map<string, T>();
  const warnings: string[] = [];
  for (const { key, title, text } of values) {
    const record = read(jsonIn(text), key);
    if (record === undefined) warnings.push(`${title} cannot be read: ${consequence}`);
    else records.set(key, record);
  }
  return { records, warnings };
}

/** Reads JSON the way Go does: null is an empty record, and a field of another type is an error. */
function readAnnotated(value: unknown): Annotated | undefined {
  const fields = value === null ? {} : value;
  if (!isObject(fields)) return undefined;
  const { channel, version, id, manifestHash: hash, systemGeneration: generation } = fields;
  const entries = Object.entries({ channel, version, id, hash, generation: generation ?? 0 });
  const present = Object.fromEntries(
    entries.filter(([, field]) => field !== undefined && field !== null && field !== ''),
  );
  return fits(revision, present) ? present : undefined;
}

/** The data of the ConfigMap: one key for each add-on, `<namespace>.<add-on>`. Equal records have equal bytes. */
export function encodeRecords(records: Iterable<AddonRecord>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...records].map((record) => [`${record.namespace}.${record.addon}`, encodeRecord(record)]),
  );
}

function encodeRecord(record: AddonRecord): string {
  const limited = { ...record, history: record.history.slice(0, MAX_HISTORY) };
  const withoutSecrets = (key: string, value: unknown): unknown =>
    key === 'channel' && typeof value === 'string' ? redact(value) : value;
  // By way of JSON, which also leaves out what is undefined.
  return canonicalJson(JSON.parse(JSON.stringify(limited, withoutSecrets)));
}

/** The records that {@link encodeRecords} wrote. A record under the key of another add-on counts as unreadable. */
export function decodeRecords(data: Readonly<Record<string, string>>): Inventory<AddonRecord> {
  const values = Object.entries(data).map(([key, text]) => ({
    key: key.replace('.', ':'),
    title: `record ${key}`,
    text,
  }));
  return readAll(
    values,
    (value, key) => (fits(addonRecord, value) && recordKey(value.namespace, value.addon) === key ? value : undefined),
    'a newer curlew may have written it, so use that version',
  );
}

const COMPARED = ['version', 'id', 'hash'] as const;

/** The installed version, as far as the cluster says. */
export interface Installed {
  /** Undefined: nothing is. */
  readonly revision: Annotated | undefined;
  /** Fields in which the annotation and the full record disagree: another program has applied the add-on since. */
  readonly disagreement: readonly (typeof COMPARED)[number][];
}

/** Joins both. The annotation wins: every program that applies add-ons writes it last. kops writes no version into it. */
export function installedOf(annotation: Annotated | undefined, record: AddonRecord | undefined): Installed {
  const applied = record?.applied;
  if (annotation === undefined || applied === undefined) {
    return {
      revision: annotation,
      disagreement: applied === undefined ? [] : COMPARED.filter((field) => applied[field] !== undefined),
    };
  }
  const differs = (field: (typeof COMPARED)[number]): boolean => (annotation[field] ?? '') !== (applied[field] ?? '');
  const isSame = !differs('id') && !differs('hash');
  const version = annotation.version ?? (isSame ? applied.version : undefined);
  const revision = { ...annotation, ...(version === undefined ? {} : { version }) };
  return {
    revision,
    disagreement: COMPARED.filter((field) =>
      field === 'version' ? (version ?? '') !== (applied.version ?? '') : differs(field),
    ),
  };
}
