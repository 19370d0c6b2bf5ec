/** `records.json` in an install folder. Every change rewrites the whole file. */
import { join } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { nodePath } from '../../core/layout.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';
import { formatRecords, NO_RECORDS, parseRecords, type Records } from '../plan/records.ts';

const LIMIT = 16 << 20;

/** Without a file nothing is installed. `FILE_UNUSABLE` if it is damaged. */
export async function readRecords(directory: string): Promise<Records> {
  const path = join(directory, nodePath.records);
  const text = await readOwnFile(path, LIMIT);
  if (text === undefined) return NO_RECORDS;
  return parseRecords(text, (what, cause) => {
    return new CurlewError('FILE_UNUSABLE', `cannot read ${path}: damaged: ${what}`, {
      hint: 'restore it from a backup, or move it away: everything then counts as not installed and is installed again',
      cause,
    });
  });
}

export async function writeRecords(directory: string, records: Records): Promise<void> {
  await writeStateFile(join(directory, nodePath.records), formatRecords(records));
}
