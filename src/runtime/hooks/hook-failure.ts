/** Why a hook failed, in the words that an operator needs: add-on, hook, place, command, last lines, log. */
import { stat, statfs } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { CurlewError, type ErrorCode } from '../../core/errors.ts';
import { ownerOf } from '../../core/layout.ts';
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
    case 'question':
      break;
  }
}

export interface FailedHook {
  readonly addon: string;
  readonly function: string;
  readonly log: string;
  readonly notes: HookNotes;
  /**
   * Exit status or signal; `exited` for one that left with status 0 before its end; `limit` for one that took too long,
   * `cancelled` for one that was ended because the run was.
   */
  readonly exit: number | NodeJS.Signals | 'exited' | 'limit' | 'cancelled';
  /** The limit, where it has one. */
  readonly limitMs?: number | undefined;
  readonly cause?: unknown;
}

const LINES = 20;
const RUNNER = 'hook-runner.sh';
/** Status of a shell that SIGTERM has ended. */
const ENDED = 143;
const LARGE_LOG = 1 << 20;
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

/** `HOOK_FAILED`, or `CANCELLED`. */
export async function hookFailure(failed: FailedHook): Promise<CurlewError> {
  const { function: hook, log, exit } = failed;
  const addon = blamed(failed);
  const lines = await lastLines(log, LINES);
  const said = lines.length === 0 ? '' : `\nlast lines of its output:\n${lines.map((line) => `  ${line}`).join('\n')}`;
  const folder = dirname(log);
  const full = await isFull(folder);
  // Without room, neither the place of a failure nor the last lines may have been written down.
  const why = full && failed.notes.place === undefined ? 'failed' : reason(failed, lines);
  const space = full ? `; no space is left on the disk of ${folder}` : '';
  const code: ErrorCode = exit === 'cancelled' ? 'CANCELLED' : 'HOOK_FAILED';
  return new CurlewError(code, `${addon}: ${hook} ${why}${space}${said}`, {
    hint: full ? await spaceHint(log) : hintOf(failed),
    cause: failed.cause,
  });
}

/** A failed hook's error, with the command that brings back the version that its add-on had before, if there was one. */
export function withWayBack(error: unknown, addon: string, version: string | undefined): unknown {
  if (!(error instanceof CurlewError) || error.code !== 'HOOK_FAILED' || version === undefined) return error;
  const { code, message, hint, cause, diagnostics } = error;
  const back = `curlew rollback ${addon} goes back to ${version}`;
  return new CurlewError(code, message, { hint: hint === undefined ? back : `${hint}; ${back}`, cause, diagnostics });
}

function hintOf({ log, exit }: FailedHook): string {
  if (exit === 'cancelled') return 'the same command, or curlew resume, goes on with the hook that was ended';
  const longer = exit === 'limit' ? ', with a longer --hook-timeout if it needs one' : '';
  return `the whole output is in ${log}; when the cause is removed, run the same command again${longer}`;
}

/** A log that fills the disk has to go before anything else can. */
async function spaceHint(log: string): Promise<string> {
  const { size } = await stat(log).catch(() => ({ size: 0 }));
  const first = size > LARGE_LOG ? `${log} has ${Math.round(size / 1e6)} MB: look at its end and remove it; ` : '';
  return `${first}free some space, then run the same command again`;
}

/** Whose install.sh was at fault, where they were read for all add-ons. */
function blamed({ addon, notes: { stage } }: FailedHook): string {
  if (stage?.stage !== 'source') return addon;
  const [, tail] = /(?:^|\/)((?:addons|packages)\/[^/]+\/[^/]+\/install\.sh)$/.exec(stage.what) ?? [];
  return tail === undefined ? addon : (ownerOf(tail)?.name ?? addon);
}

function reason({ function: hook, notes, exit, limitMs }: FailedHook, lines: readonly string[]): string {
  const { place, bail, stage } = notes;
  const sourcing = stage !== undefined && stage.stage !== 'call' ? ` while ${stage.what} was read` : '';
  // It was asked to end and reported where it was; between two hooks that is a line of the runner.
  const atWork = place?.status === ENDED && basename(place.file) !== RUNNER ? ` ${placeText(place)}` : '';
  if (exit === 'limit')
    return `took longer than its limit of ${(limitMs ?? 0) / 1000} s and was ended${sourcing}${atWork}`;
  if (exit === 'cancelled') return `was cancelled${sourcing}${atWork}`;
  if (exit === 'exited') {
    const where = place?.status === 0 ? ` ${placeText(place)}` : '';
    return `called exit before its end${sourcing}${where}: a hook must return`;
  }
  if (notes.absent === true) return `is not defined: no function ${hook} after all install.sh were read`;
  if (typeof exit === 'string') return `was ended by ${exit}`;
  if (bail !== undefined && place === undefined) {
    return `gave up${sourcing} at ${bail.file}:${bail.line}${inFunction(bail.function)}: ${bail.text}`;
  }
  const syntax = syntaxError(stage?.what, lines);
  if (sourcing !== '' && syntax !== undefined) return `failed: ${syntax}`;
  if (place === undefined) return `ended with status ${exit}${sourcing}: it called exit ${exit}`;
  return `failed${sourcing} with status ${exit} ${placeText(place)}`;
}

function placeText({ file, line, function: name, command }: FailurePlace): string {
  const number = line === 0 ? '' : `:${line}`;
  return `at ${file}${number}${inFunction(name)}: ${command.split('\n', 1)[0] ?? ''}`;
}

function inFunction(name: string): string {
  return name === '' || name === 'source' || name === 'main' ? '' : ` in ${name}`;
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
