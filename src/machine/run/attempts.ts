/** Work of a control plane by timers, without a person: how the last attempt has ended, for those who look later. */
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { asError, CurlewError } from '../../core/errors.ts';
import { jsonIn, printableJson } from '../../core/json.ts';
import { readFound, writeStateFile } from '../../platform/files/state-file.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

export interface Attempt {
  /** When it began, in ISO 8601. */
  readonly time: string;
  /** Why it has failed. */
  readonly problem?: string;
}

/** Name of the record; what it is called, and how it is repeated. */
const WORDS = {
  renewal: ['the renewal of certificates', 'curlew certificates renew'],
  snapshot: [
    'the snapshot of etcd',
    'curlew etcd snapshot with the same options, or systemctl start curlew-etcd-snapshot',
  ],
} as const;
type Work = keyof typeof WORDS;

const FILE_LIMIT = 1 << 20;
const attemptSchema = v.object({ format: v.literal(1), time: v.string(), problem: v.exactOptional(v.string()) });

const recordIn = (folder: string, work: Work): string => join(folder, `curlew/${work}.json`);

/** The last attempt, by its record in /etc/kubernetes, or a folder like it; undefined before the first one. */
export async function lastAttempt(folder: string, work: Work): Promise<Attempt | undefined> {
  const text = await readFound(recordIn(folder, work), FILE_LIMIT);
  const { success, output } = v.safeParse(attemptSchema, text && jsonIn(text.toString('utf8')));
  return success ? output : undefined;
}

/** The problem of an attempt, for status. */
export function attemptProblems(work: Work, attempt: Attempt | undefined): readonly string[] {
  if (attempt?.problem === undefined) return [];
  const [what, again] = WORDS[work];
  return [`${what} has failed on ${attempt.time.slice(0, 10)}: ${attempt.problem}: once that is fixed, ${again}`];
}

/** Records how the work ends. */
export async function recordAttempt<T>(folder: string, work: Work, act: () => Promise<T>): Promise<T> {
  const path = recordIn(folder, work);
  const before = await lastAttempt(folder, work);
  const own: Attempt = { time: new Date().toISOString() };
  const write = async (attempt: Attempt): Promise<void> =>
    writeStateFile(path, `${printableJson({ format: 1, ...attempt })}\n`);
  await makeMissing(dirname(path), 0o700);
  await write({ ...own, problem: 'it was cut' });
  let result: T;
  try {
    result = await act();
  } catch (error) {
    const isBusy = error instanceof CurlewError && error.code === 'BUSY';
    // Another run on this machine is no failure of this one.
    if (!isBusy) await write({ ...own, problem: asError(error).message });
    else if (before === undefined) await rm(path);
    else await write(before);
    throw error;
  }
  await write(own);
  return result;
}
