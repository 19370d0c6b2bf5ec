/** Why a hook failed, in the words that an operator needs: add-on, hook, place, command, last lines, log. */
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import type { ControlRecord, FailurePlace } from './control.ts';
import { lastLines } from './log-tail.ts';

/** What is kept of a hook's control records. */
export interface HookNotes {
  place?: FailurePlace;
  bail?: Extract<ControlRecord, { kind: 'bail' }>;
  stage?: Extract<ControlRecord, { kind: 'stage' }>;
  absent?: boolean;
}

export function noticeRecord(notes: HookNotes, record: ControlRecord): void {
  switch (record.kind) {
    case 'error':
      // A failure in a subshell may have been handled by the shell around it, whose own failure would come later.
      notes.place = record.place;
      break;
    case 'bail':
      notes.bail = record;
      delete notes.place;
      break;
    case 'stage':
      notes.stage = record;
      break;
    case 'absent':
      notes.absent = true;
      break;
    case 'log':
      break;
  }
}

export interface FailedHook {
  readonly addon: string;
  readonly function: string;
  readonly log: string;
  readonly notes: HookNotes;
  /** Exit status or signal; `exited` for one that left with status 0 before its end; `limit` for one that took too long. */
  readonly exit: number | NodeJS.Signals | 'exited' | 'limit';
  readonly cause?: unknown;
}

const LINES = 20;
/** With less than this many bytes a line of output, or a file of a hook, may be what did not fit. */
const NO_ROOM = 64 << 10;

async function isFull(folder: string): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize < NO_ROOM;
  } catch {
    return false;
  }
}

export async function hookFailure(failed: FailedHook): Promise<CurlewError> {
  const { addon, function: hook, log } = failed;
  const lines = await lastLines(log, LINES);
  const said = lines.length === 0 ? '' : `\nlast lines of its output:\n${lines.map((line) => `  ${line}`).join('\n')}`;
  const folder = dirname(log);
  const full = await isFull(folder);
  // Without room, neither the place of a failure nor the last lines may have been written down.
  const why = full && failed.notes.place === undefined ? 'failed' : reason(failed, lines);
  const space = full ? `; no space is left on the disk of ${folder}` : '';
  return new CurlewError('HOOK_FAILED', `${addon}: ${hook} ${why}${space}${said}`, {
    hint: full
      ? 'free some space, then run the same command again'
      : `the whole output is in ${log}; when the cause is removed, run the same command again`,
    cause: failed.cause,
  });
}

function reason({ function: hook, notes, exit }: FailedHook, lines: readonly string[]): string {
  const { place, bail, stage } = notes;
  if (exit === 'limit') return 'took longer than its limit and was ended';
  if (exit === 'exited') return 'called exit before its end: a hook must return';
  if (notes.absent === true) return `is not defined: no function ${hook} after all install.sh were read`;
  if (typeof exit === 'string') return `was ended by ${exit}`;
  const sourcing = stage !== undefined && stage.stage !== 'call' ? ` while ${stage.what} was read` : '';
  if (bail !== undefined && place === undefined) {
    return `gave up${sourcing} at ${bail.file}:${bail.line}${inFunction(bail.function)}: ${bail.text}`;
  }
  const syntax = syntaxError(stage?.what, lines);
  if (sourcing !== '' && syntax !== undefined) return `failed: ${syntax}`;
  if (place === undefined) return `ended with status ${exit}${sourcing}: it called exit ${exit}`;
  const where = `${place.file}:${place.line}${inFunction(place.function)}`;
  return `failed${sourcing} with status ${exit} at ${where}: ${place.command.split('\n', 1)[0] ?? ''}`;
}

function inFunction(name: string): string {
  return name === '' ? '' : ` in ${name}`;
}

/** `file:line: syntax error …` out of what bash printed about a file that it could not parse. */
function syntaxError(file: string | undefined, lines: readonly string[]): string | undefined {
  if (file === undefined) return undefined;
  for (const line of lines) {
    const [, number, text] = /: line (\d+): (.*(?:syntax error|unexpected).*)$/.exec(line) ?? [];
    if (number !== undefined && line.startsWith(file)) return `${file}:${number}: ${text ?? ''}`;
  }
  return undefined;
}
