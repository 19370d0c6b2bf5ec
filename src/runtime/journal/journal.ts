/**
 * A write-ahead log of actions: the plan, the start of each action, its end. One line per entry: a checksum and JSON. Each entry
 * is on disk before the action that it announces. Actions are only known by their ids; what a plan is, its owner says.
 */
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import * as v from 'valibot';
import type { Digest } from '../../core/digest.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { fits, size, type Read } from '../../core/schema.ts';
import { syncFolder } from '../../platform/files/sync-folder.ts';
import { readOwnFile } from '../../platform/files/state-file.ts';

/** A plan of actions, which may resume another one: the actions that are done, and the run that did each. */
export interface Resumable {
  readonly continues?: { readonly done: readonly { readonly action: string; readonly run: string }[] } | undefined;
}

/** True for a valid plan: journals come from disk. */
export type IsPlan<Plan> = (value: unknown) => value is Plan;

const at = v.string();
const digestText = v.optional(v.custom<Digest>((value) => typeof value === 'string'));

const journalEntry = v.variant('type', [
  v.object({
    at,
    type: v.literal('planned'),
    plan: v.unknown(),
    /** Actions that earlier runs started without finishing them, and the number of attempts. */
    earlier: v.optional(v.array(v.looseTuple([v.string(), size]))),
    /** Digest of everything that the plan is made from: only a run with the same identity can resume this one. */
    identity: digestText,
    /** Boot ID of the machine: a reboot may undo what hooks did. */
    boot: v.optional(v.string()),
    /** Digest of the carried variables at its start; absent if there were none. */
    carried: digestText,
  }),
  v.object({ at, type: v.literal('started'), action: v.string(), attempt: size }),
  v.object({
    at,
    type: v.literal('done'),
    action: v.string(),
    outcome: v.string(),
    /** After a hook: digest of the variables that are carried to the next one. */
    carried: digestText,
  }),
  v.object({ at, type: v.literal('failed'), action: v.string(), message: v.string() }),
  v.object({
    at,
    type: v.literal('ended'),
    outcome: v.picklist(['finished', 'failed', 'cancelled']),
    /** The error in one line. */
    message: v.optional(v.string()),
  }),
]);
/** Another version of curlew may have written others. */
type ReadEntry = Read<typeof journalEntry>;
type ActionEntry = Exclude<ReadEntry, { readonly type: 'planned' }>;

export type PlannedEntry<Plan> = Extract<ReadEntry, { readonly type: 'planned' }> & { readonly plan: Plan };
export type JournalEntry<Plan = unknown> = ActionEntry | PlannedEntry<Plan>;

/** Outcome of a hook that failed in a run that continued anyway. */
export const FAILED = 'failed';

type WithoutTime<Entry> = Entry extends unknown ? Omit<Entry, 'at'> : never;
type JournalFact<Plan> = WithoutTime<JournalEntry<Plan>>;

export interface Journal<Plan = never> extends AsyncDisposable {
  /** Returns after the entry is on disk. */
  readonly append: (fact: JournalFact<Plan>) => Promise<void>;
}

/** A journal before its file exists. */
export const CLOSED: Journal<unknown> = {
  append: async () => Promise.reject(new Error('the journal is not open')),
  [Symbol.asyncDispose]: async () => Promise.resolve(),
};

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

/** Entries of a journal's text. A torn last line is ignored; any other damage or unknown entry is `FILE_UNUSABLE`. */
export function parseJournal<Plan>(text: string, path: string, isPlan: IsPlan<Plan>): readonly JournalEntry<Plan>[] {
  const isKnown = (entry: unknown): entry is JournalEntry<Plan> =>
    fits(journalEntry, entry) && (entry.type !== 'planned' || isPlan(entry.plan));
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const entries: JournalEntry<Plan>[] = [];
  for (const [index, line] of lines.entries()) {
    const entry = parseLine(line);
    if (isKnown(entry)) entries.push(entry);
    else if (entry !== undefined) {
      throw new CurlewError(
        'FILE_UNUSABLE',
        `cannot read ${path}: line ${index + 1} is damaged, or of another version of curlew`,
        { hint: 'use the version of curlew that started this run, or move its folder away to start over' },
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
export async function readJournal<Plan>(path: string, isPlan: IsPlan<Plan>): Promise<readonly JournalEntry<Plan>[]> {
  const text = await readOwnFile(path, LIMIT);
  return text === undefined ? [] : parseJournal(text, path, isPlan);
}

/** Opens a new journal. */
export async function createJournal<Plan>(path: string): Promise<Journal<Plan>> {
  let file: FileHandle;
  try {
    file = await open(path, 'ax', 0o600);
    await syncFolder(dirname(path));
  } catch (error) {
    throw fileError(`write ${path}`, error);
  }
  const write = async (fact: JournalFact<Plan>): Promise<void> => {
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
