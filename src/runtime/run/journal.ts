/**
 * The write-ahead log of a run: the plan, the start of each action, its end. One line per entry: a checksum and JSON. Each
 * entry is on disk before the action that it announces.
 */
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { isObject, isTexts } from '../../core/json.ts';
import { isAddonName, isVersion } from '../../core/ref.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { isRunId } from '../node/records.ts';
import { readOwnFile } from '../../platform/files/state-file.ts';
import type { RunPlan } from './run-plan.ts';

export type JournalEntry = { readonly at: string } & (
  | {
      readonly type: 'planned';
      readonly plan: RunPlan;
      /** Actions that earlier runs started without finishing them, and the number of attempts. */
      readonly earlier?: readonly (readonly [action: string, attempt: number])[];
      /** Digest of everything that the plan is made from: only a run with the same identity can resume this one. */
      readonly identity?: Digest | undefined;
      /** Boot ID of the machine: a reboot may undo what hooks did. */
      readonly boot?: string | undefined;
      /** Digest of the carried variables at its start; absent if there were none. */
      readonly carried?: Digest | undefined;
    }
  | { readonly type: 'started'; readonly action: string; readonly attempt: number }
  | {
      readonly type: 'done';
      readonly action: string;
      readonly outcome: string;
      /** After a hook: digest of the variables that are carried to the next one. */
      readonly carried?: Digest | undefined;
    }
  | { readonly type: 'failed'; readonly action: string; readonly message: string }
  | {
      readonly type: 'ended';
      readonly outcome: 'finished' | 'failed' | 'cancelled';
      /** The error in one line. */
      readonly message?: string;
    }
);

/** Outcome of a hook that failed in a run that continued anyway. */
export const FAILED = 'failed';

type WithoutTime<Entry> = Entry extends unknown ? Omit<Entry, 'at'> : never;
type JournalFact = WithoutTime<JournalEntry>;

export interface Journal extends AsyncDisposable {
  /** Returns after the entry is on disk. */
  readonly append: (fact: JournalFact) => Promise<void>;
}

const SUM_LENGTH = 16;

function checksum(json: string): string {
  return createHash('sha256').update(json).digest('hex').slice(0, SUM_LENGTH);
}

export function formatEntry(entry: JournalEntry): string {
  const json = JSON.stringify(entry);
  return `{"sum":"${checksum(json)}","entry":${json}}\n`;
}

/** The entry of a line without its newline; undefined if it is torn or damaged. */
function parseLine(line: string): unknown {
  const [, sum, json] = /^\{"sum":"([0-9a-f]{16})","entry":(.*)\}$/s.exec(line) ?? [];
  return json === undefined || sum !== checksum(json) ? undefined : (JSON.parse(json) as unknown);
}

/** A line with the right checksum is complete, but another version of curlew may have written it. */
function isEntry(entry: unknown): entry is JournalEntry {
  if (!isObject(entry) || typeof entry['at'] !== 'string') return false;
  const { type, action, attempt, outcome, message, plan, earlier, identity, boot, carried } = entry;
  switch (type) {
    case 'planned':
      return isPlan(plan) && isEarlier(earlier ?? []) && isTexts([identity ?? '', boot ?? '', carried ?? '']);
    case 'started':
      return typeof action === 'string' && isCount(attempt);
    case 'done':
      return isTexts([action, outcome, carried ?? '']);
    case 'failed':
      return isTexts([action, message]);
    case 'ended':
      return ['finished', 'failed', 'cancelled'].includes(String(outcome)) && isTexts([outcome, message ?? '']);
    default:
      return false;
  }
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isEarlier(earlier: unknown): boolean {
  const isRow = (row: unknown): boolean => Array.isArray(row) && typeof row[0] === 'string' && isCount(row[1]);
  return Array.isArray(earlier) && earlier.every(isRow);
}

/** Names in a plan become paths of folders whose scripts are run and which are removed, so they are checked. */
function isPlan(plan: unknown): boolean {
  if (!isObject(plan) || typeof plan['kind'] !== 'string') return false;
  const { addons, actions, continues } = plan;
  if (!Array.isArray(addons) || !addons.every((addon) => isObject(addon) && isRef(addon['ref']))) return false;
  if (!Array.isArray(actions) || !actions.every(isAction)) return false;
  return continues === undefined || (isObject(continues) && isDone(continues['done']));
}

function isRef(ref: unknown): boolean {
  if (!isObject(ref)) return false;
  const { tree, name, version } = ref;
  if ((tree !== 'addons' && tree !== 'packages') || typeof name !== 'string' || typeof version !== 'string')
    return false;
  return isAddonName(name) && isVersion(version);
}

function isAction(action: unknown): boolean {
  if (!isObject(action)) return false;
  const { id, kind, addon, because, hook, function: called } = action;
  return isTexts([id, kind, addon, because]) && (kind !== 'hook' || isTexts([hook, called]));
}

function isDone(done: unknown): boolean {
  const isRow = (row: unknown): boolean =>
    isObject(row) && typeof row['action'] === 'string' && typeof row['run'] === 'string' && isRunId(row['run']);
  return Array.isArray(done) && done.every(isRow);
}

/** Entries of a journal's text. A torn last line is ignored; any other damage or unknown entry is `FILE_UNUSABLE`. */
export function parseJournal(text: string, path: string): readonly JournalEntry[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const entries: JournalEntry[] = [];
  for (const [index, line] of lines.entries()) {
    const entry = parseLine(line);
    if (isEntry(entry)) entries.push(entry);
    else if (entry !== undefined) {
      throw new CurlewError(
        'FILE_UNUSABLE',
        `cannot read ${path}: line ${index + 1} is damaged, or of another version of curlew`,
        {
          hint: 'use the version of curlew that started this run, or move its folder away to start over',
        },
      );
    } else if (index < lines.length - 1) {
      throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: line ${index + 1} is damaged`, {
        hint: 'a disk error or another program changed it; move the folder of this run away to start over',
      });
    }
  }
  return entries;
}

const LIMIT = 64 << 20;

/** Entries of a journal; none if it does not exist. */
export async function readJournal(path: string): Promise<readonly JournalEntry[]> {
  const text = await readOwnFile(path, LIMIT);
  return text === undefined ? [] : parseJournal(text, path);
}

/** Opens a new journal. */
export async function createJournal(path: string): Promise<Journal> {
  let file: FileHandle;
  try {
    file = await open(path, 'ax', 0o600);
    await syncFolder(dirname(path));
  } catch (error) {
    throw fileError(`write ${path}`, error);
  }
  const write = async (fact: JournalFact): Promise<void> => {
    try {
      await file.appendFile(formatEntry({ at: new Date().toISOString(), ...fact }));
      await file.datasync();
    } catch (error) {
      throw fileError(`write ${path}`, error);
    }
  };
  // Writes are serialized; after a failure nothing more is written.
  let tail: Promise<void> = Promise.resolve();
  return {
    append: async (fact) => {
      tail = tail.then(async () => write(fact));
      await tail;
    },
    [Symbol.asyncDispose]: async () => {
      await file.close();
    },
  };
}

/** Attempts of each action of a run that was started but not finished; `CURLEW_ATTEMPT` continues to count from them. */
export function unfinishedAttempts(entries: readonly JournalEntry[]): ReadonlyMap<string, number> {
  const attempts = new Map<string, number>();
  for (const entry of entries) {
    if (entry.type === 'planned') for (const [action, attempt] of entry.earlier ?? []) attempts.set(action, attempt);
    else if (entry.type === 'started') attempts.set(entry.action, entry.attempt);
    else if (entry.type === 'done' || entry.type === 'failed') attempts.delete(entry.action);
  }
  return attempts;
}
