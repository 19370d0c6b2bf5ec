/** The records of a node: what it has installed, and in which state. Pure. */
import * as v from 'valibot';
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import type { CurlewError } from '../../core/errors.ts';
import { isObject, parseObject } from '../../core/json.ts';
import { compareText, isAddonName, type AddonRef } from '../../core/ref.ts';
import { addonName, digest, fits, textList, tree, version, type Read } from '../../core/schema.ts';
import { KUBERNETES } from './hooks.ts';

const RECORDS_FORMAT = 1;

export const runId = v.pipe(v.string(), v.check(isRunId, 'not the ID of a run'));

/** A package whose files are in the install folder, complete and verified. */
const extractedRecord = v.object({
  tree,
  name: addonName,
  version,
  digest,
  /** Folders of operating systems that its bundle omitted; absent if it is whole. */
  omitted: v.optional(textList),
});
export type ExtractedRecord = Read<typeof extractedRecord>;

const state = {
  version,
  digest,
  /** See {@link settingsDigest}. */
  settings: digest,
  /** Id of the run that touched it last, and that has its settings. */
  run: runId,
};

/** The state of an add-on before its last change, for a rollback. */
const previousRecord = v.object(state);
export type PreviousRecord = Read<typeof previousRecord>;

/** The last applied state of an add-on. */
const appliedRecord = v.object({
  ...state,
  /** Undefined if another tool installed it: its package is unknown. */
  digest: v.optional(digest),
  /** That run finished. */
  finished: v.boolean(),
  /** The hook that applied it: a node that joins does not install most add-ons. Absent in records of older versions. */
  by: v.optional(v.picklist(['install', 'join'])),
  /** See {@link installedVersion}; only in the record of a run that has not finished. */
  installed: v.optional(version),
  /** The state that a rollback restores; absent if there is none. */
  previous: v.optional(previousRecord),
});
export type AppliedRecord = Read<typeof appliedRecord>;

/** Why a finished upgrade of Kubernetes cannot be rolled back. */
export const NO_DOWNGRADE = 'kubeadm does not downgrade a cluster that was upgraded';

/** True if the add-on cannot be rolled back because its last run has finished. */
export function isFinal(name: string, { finished }: Pick<AppliedRecord, 'finished'>): boolean {
  return name === KUBERNETES && finished;
}

/** The state that a rollback of an add-on with this record restores; undefined if there is none or it cannot be rolled back. */
export function rollbackTarget(
  name: string,
  { finished, previous }: Pick<AppliedRecord, 'finished' | 'previous'>,
): PreviousRecord | undefined {
  return isFinal(name, { finished }) ? undefined : previous;
}

/**
 * The rollback that messages offer. Not one to an earlier version of Kubernetes: once its upgrade has begun, kubeadm completes it, and nothing
 * says how far it got.
 */
export function offeredRollback(
  name: string,
  record: Pick<AppliedRecord, 'finished' | 'previous' | 'version'>,
): PreviousRecord | undefined {
  const target = rollbackTarget(name, record);
  return name === KUBERNETES && target?.version !== record.version ? undefined : target;
}

/** Undefined if nothing is recorded of the add-on. */
export function recordOf(applied: Records['applied'], name: string): AppliedRecord | undefined {
  // hasOwn: `constructor` is a valid name of an add-on.
  return Object.hasOwn(applied, name) ? applied[name] : undefined;
}

/** The version of the add-on that the last run that finished has installed; undefined if none has finished. */
export function installedVersion({
  finished,
  version,
  installed,
  previous,
}: Pick<AppliedRecord, 'finished' | 'version' | 'installed' | 'previous'>): string | undefined {
  // Records of older versions have only what a rollback restores.
  return finished ? version : (installed ?? previous?.version);
}

/**
 * The version of an add-on that another one replaces; undefined if it is not installed, or in this version. An upgrade that did
 * not finish still replaces the version before it.
 */
export function replacedVersion(
  { name, version }: Pick<AddonRef, 'name' | 'version'>,
  { applied }: Pick<Records, 'applied'>,
): string | undefined {
  const record = recordOf(applied, name);
  const before = record === undefined ? undefined : (installedVersion(record) ?? record.version);
  return before === version ? undefined : before;
}

/** The package of an add-on's version; an add-on that was never extracted is in `addons`. */
export function recordedRef({ extracted }: Pick<Records, 'extracted'>, name: string, version: string): AddonRef {
  const entry = extracted.find((one) => one.name === name && one.version === version);
  return { tree: entry?.tree ?? 'addons', name, version };
}

export interface Records {
  readonly format: typeof RECORDS_FORMAT;
  readonly lastRun: string | undefined;
  /** UID of the kube-system namespace of the cluster that `applied` describes; absent until a cluster has answered. */
  readonly cluster?: string | undefined;
  readonly extracted: readonly ExtractedRecord[];
  /** By name of the add-on. */
  readonly applied: Readonly<Record<string, AppliedRecord>>;
}

export const NO_RECORDS: Records = { format: RECORDS_FORMAT, lastRun: undefined, extracted: [], applied: {} };

/** Identity of an add-on's settings; the order of keys does not matter. */
export function settingsDigest(settings: unknown): Digest {
  return digestOf(canonicalJson(settings));
}

/**
 * The records in the text of `records.json`. Throws what `damaged` makes of the first problem: a guess would reinstall or skip
 * add-ons wrongly.
 */
export function parseRecords(text: string, damaged: (what: string, cause?: unknown) => CurlewError): Records {
  const value = parseObject(text, damaged);
  if (value['format'] !== RECORDS_FORMAT) throw damaged(`format ${JSON.stringify(value['format'])} is not known`);
  const { lastRun, cluster, extracted, applied } = value;
  if (!fits(v.optional(runId), lastRun)) throw damaged('lastRun');
  if (cluster !== undefined && (typeof cluster !== 'string' || !isClusterUid(cluster))) throw damaged('cluster');
  if (!fits(v.array(extractedRecord), extracted)) throw damaged('extracted');
  if (!isObject(applied)) throw damaged('applied');
  const bad = Object.entries(applied).find(([name, record]) => !isAddonName(name) || !isApplied(record));
  if (bad !== undefined) throw damaged(`applied: ${JSON.stringify(bad[0].slice(0, 100))}`);
  // Every field was checked above.
  const known = { format: RECORDS_FORMAT, lastRun, extracted, applied } as Records;
  return cluster === undefined ? known : { ...known, cluster };
}

/** The text of `records.json`: equal records are equal bytes, regardless of the order of changes. */
export function formatRecords(records: Records): string {
  const applied = Object.fromEntries(Object.entries(records.applied).toSorted(([a], [b]) => compareText(a, b)));
  return `${JSON.stringify({ ...records, applied }, undefined, 2)}\n`;
}

/** Run IDs look like `20261121T101500Z-3f2a` and sort by time. */
export function isRunId(text: string): boolean {
  return /^\d{8}T\d{6}Z-[0-9a-f]{4}$/.test(text);
}

/** UIDs of Kubernetes are UUIDs; other distributions may use other formats. */
export function isClusterUid(text: string): boolean {
  return /^[0-9A-Za-z-]{1,64}$/.test(text);
}

/** Instead of a run ID: no run of curlew has touched it. */
export const NO_RUN = '00000000T000000Z-0000';

export function isApplied(value: unknown): value is AppliedRecord {
  return fits(appliedRecord, value);
}
