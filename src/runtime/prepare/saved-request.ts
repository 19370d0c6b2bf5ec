/**
 * The request of a run, saved in its folder: enough to repeat it, and to run hooks of the add-ons that it installed with the
 * same settings. It may contain secrets, so only its owner can read it. It is removed with the last record that names the run.
 */
import { join } from 'node:path';
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import { shallowJson } from '../../core/json.ts';
import { nodePath } from '../../core/layout.ts';
import { byKey, readJson, type Read } from '../../core/schema.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';

const FORMAT = 1;
const LIMIT = 64 << 20;

const savedRequest = v.object({
  format: v.literal(FORMAT),
  variables: v.array(v.strictTuple([v.string(), v.string()])),
  /** By name of the add-on. */
  settings: byKey(v.unknown()),
  /** JSON that only the caller understands: how to repeat the request. */
  command: v.optional(v.unknown()),
});
export type SavedRequest = Read<typeof savedRequest>;

export const REQUEST_FILE = 'request.json';

export async function writeSavedRequest(folder: string, asked: Omit<SavedRequest, 'format'>): Promise<void> {
  await writeStateFile(join(folder, REQUEST_FILE), `${JSON.stringify({ format: FORMAT, ...asked })}\n`);
}

/** Undefined if it does not exist. `FILE_UNUSABLE` if it is damaged. */
export async function readSavedRequest(directory: string, run: string): Promise<SavedRequest | undefined> {
  const path = join(directory, nodePath.run(run), REQUEST_FILE);
  const text = await readOwnFile(path, LIMIT);
  if (text === undefined) return undefined;
  const bad = (): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `cannot read ${path}: damaged`, {
      hint: 'repeat the full command that started the run instead of curlew resume',
    });
  return readJson(savedRequest, text, { bad, parse: shallowJson });
}
