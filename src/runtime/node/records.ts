/** `records.json`: what this node has installed, and in which state. Every change rewrites the whole file. */
import { join } from 'node:path';
import { canonicalJson, digestOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject, isTexts, parseObject } from '../../core/json.ts';
import { nodePath } from '../../core/layout.ts';
import { compareText, isAddonName, isVersion, type AddonTree } from '../../core/ref.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';
import { KUBERNETES } from '../hooks/hooks.ts';

const RECORDS_FORMAT = 1;

/** A package whose files are in the install folder, complete and verified. */
export interface ExtractedRecord {
  readonly tree: AddonTree;
  readonly name: string;
  readonly version: string;
  readonly digest: Digest;
  /** Folders of operating systems that its bundle omitted; absent if it is whole. */
  readonly omitted?: readonly string[] | undefined;
}

/** The state of an add-on before its last change, for a rollback. */
export interface PreviousRecord {
  readonly version: string;
  readonly digest: Digest;
  readonly settings: Digest;
  /** The run that applied it and has its settings. */
  readonly run: string;
}

export type AppliedBy = 'install' | 'join';

/** The last applied state of an add-on. */
export interface AppliedRecord {
  readonly version: string;
  /** Undefined if another tool installed it: its package is unknown. */
  readonly digest?: Digest | undefined;
  /** See {@link settingsDigest}. */
  readonly settings: Digest;
  /** Id of the run that touched it last. */
  readonly run: string;
  /** That run finished. */
  readonly finished: boolean;
  /** The hook that applied it: a node that joins does not install most add-ons. Absent in records of older versions. */
  readonly by?: AppliedBy | undefined;
  /** What a rollback restores; absent if there is nothing. */
  readonly previous?: PreviousRecord | undefined;
}

/** Why a finished upgrade of Kubernetes cannot be rolled back. */
export const NO_DOWNGRADE = 'kubeadm does not downgrade a cluster that was upgraded';

/** True if the add-on cannot be rolled back because its last run has finished. */
export function isFinal(name: string, { finished }: Pick<AppliedRecord, 'finished'>): boolean {
  return name === KUBERNETES && finished;
}

/** What a rollback of an add-on with this record restores; undefined if there is nothing or it cannot be rolled back. */
export function rollbackTarget(
  name: string,
  { finished, previous }: Pick<AppliedRecord, 'finished' | 'previous'>,
): PreviousRecord | undefined {
  return isFinal(name, { finished }) ? undefined : previous;
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

const LIMIT = 16 << 20;

/** Without a file nothing is installed. `FILE_UNUSABLE` if it is damaged: a guess would reinstall or skip add-ons wrongly. */
export async function readRecords(directory: string): Promise<Records> {
  const path = join(directory, nodePath.records);
  const text = await readOwnFile(path, LIMIT);
  if (text === undefined) return NO_RECORDS;
  const damaged = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `cannot read ${path}: damaged: ${what}`, {
      hint: 'restore it from a backup, or move it away: everything then counts as not installed and is installed again',
      cause,
    });
  const value = parseObject(text, damaged);
  if (value['format'] !== RECORDS_FORMAT) throw damaged(`format ${JSON.stringify(value['format'])} is not known`);
  const { lastRun, cluster, extracted, applied } = value;
  if (lastRun !== undefined && (typeof lastRun !== 'string' || !isRunId(lastRun))) throw damaged('lastRun');
  if (cluster !== undefined && !isText(cluster, isClusterUid)) throw damaged('cluster');
  if (!Array.isArray(extracted) || !extracted.every(isExtracted)) throw damaged('extracted');
  if (!isObject(applied)) throw damaged('applied');
  for (const [name, record] of Object.entries(applied)) {
    if (!isAddonName(name) || !isApplied(record)) throw damaged(`applied: ${JSON.stringify(name.slice(0, 100))}`);
  }
  // Every field was checked above.
  const known = { format: RECORDS_FORMAT, lastRun, extracted, applied } as Records;
  return cluster === undefined ? known : ({ ...known, cluster } as Records);
}

export async function writeRecords(directory: string, records: Records): Promise<void> {
  // Equal records are equal bytes, regardless of the order of changes.
  const applied = Object.fromEntries(Object.entries(records.applied).toSorted(([a], [b]) => compareText(a, b)));
  await writeStateFile(join(directory, nodePath.records), `${JSON.stringify({ ...records, applied }, undefined, 2)}\n`);
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

function isText(value: unknown, check: (text: string) => boolean): boolean {
  return typeof value === 'string' && check(value);
}

function isExtracted(value: unknown): value is ExtractedRecord {
  if (!isObject(value)) return false;
  const { tree, name, version, digest, omitted } = value;
  if (tree !== 'addons' && tree !== 'packages') return false;
  if (omitted !== undefined && !isTexts(omitted)) return false;
  return isText(name, isAddonName) && isText(version, isVersion) && isText(digest, isDigest);
}

export function isApplied(value: unknown): value is AppliedRecord {
  if (!isObject(value)) return false;
  const { finished, previous, by } = value;
  if (!isPrevious(value) || typeof finished !== 'boolean') return false;
  if (by !== undefined && by !== 'install' && by !== 'join') return false;
  return previous === undefined || (isObject(previous) && previous['digest'] !== undefined && isPrevious(previous));
}

function isPrevious(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { version, digest, settings, run } = value;
  const texts =
    isText(version, isVersion) && (digest === undefined || isText(digest, isDigest)) && isText(settings, isDigest);
  return texts && isText(run, isRunId);
}
