/**
 * The request of a run, saved in its folder: enough to repeat it, and to run hooks of the add-ons that it installed with the
 * same settings. It may contain secrets, so only its owner can read it. It is removed with the last record that names the run.
 */
import { join } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { isObject, shallowJson } from '../../core/json.ts';
import { nodePath } from '../../core/layout.ts';
import type { ShellVariable } from '../hooks/settings.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';

const FORMAT = 1;
const LIMIT = 64 << 20;

export interface SavedRequest {
  readonly format: typeof FORMAT;
  readonly variables: readonly ShellVariable[];
  /** By name of the add-on. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** JSON that only the caller understands: how to repeat the request. */
  readonly command: unknown;
}

export const REQUEST_FILE = 'request.json';

export async function writeSavedRequest(folder: string, asked: Omit<SavedRequest, 'format'>): Promise<void> {
  await writeStateFile(join(folder, REQUEST_FILE), `${JSON.stringify({ format: FORMAT, ...asked })}\n`);
}

/** Undefined if it does not exist. `FILE_UNUSABLE` if it is damaged. */
export async function readSavedRequest(directory: string, run: string): Promise<SavedRequest | undefined> {
  const path = join(directory, nodePath.run(run), REQUEST_FILE);
  const text = await readOwnFile(path, LIMIT);
  if (text === undefined) return undefined;
  const asked = parseAsked(text);
  if (asked !== undefined) return asked;
  throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: damaged`, {
    hint: 'repeat the full command that started the run instead of curlew resume',
  });
}

function parseAsked(text: string): SavedRequest | undefined {
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value['format'] !== FORMAT) return undefined;
  const { variables, settings, command } = value;
  if (!Array.isArray(variables) || !variables.every(isVariable) || !isObject(settings)) return undefined;
  return { format: FORMAT, variables, settings, command };
}

function isVariable(value: unknown): value is ShellVariable {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string');
}
