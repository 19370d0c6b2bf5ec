/** The error of a failed hook: add-on, hook, place, command, last lines, log. */
import { stat, statfs } from 'node:fs/promises';
import { constants } from 'node:os';
import { basename, dirname } from 'node:path';
import { CurlewError, type ErrorCode } from '../../core/errors.ts';
import { ownerOf } from '../../core/layout.ts';
import { ownPath, type NodePlace } from '../node/node-place.ts';
import { withoutName, type ControlRecord, type FailurePlace } from './control.ts';
import { lastLines } from './log-tail.ts';

/** Control records of a hook that matter for its error. */
export interface HookNotes {
  place?: FailurePlace;
  bail?: Extract<ControlRecord, { kind: 'bail' }>;
  stage?: Extract<ControlRecord, { kind: 'stage' }>;
  absent?: boolean;
}

export function noticeRecord(notes: HookNotes, record: ControlRecord): void {
  switch (record.kind) {
    case 'error':
      // The parent shell may have handled a failure in a subshell. If not, its own follows, except after SIGTERM.
      if (record.place.depth === 0 || record.place.status === ENDED) notes.place = record.place;
      break;
    case 'broken':
      // The hook has handled what it has reported so far, and ended without a place.
      delete notes.place;
      delete notes.bail;
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
  /** The install folder: messages name the files of hooks as the user can open them. */
  readonly node: Pick<NodePlace, 'directory' | 'seen'>;
  /**
   * Exit status or signal. `exited`: it called `exit 0`. `limit`: it exceeded its time limit. `cancelled`: the run was
   * canceled.
   */
  readonly exit: number | NodeJS.Signals | 'exited' | 'limit' | 'cancelled';
  /** For a hook in a sandbox: whether it had a kubeconfig. */
  readonly trial?: 'with cluster' | 'without cluster' | undefined;
  /** Its time limit, if it has one. */
  readonly limitMs?: number | undefined;
  readonly cause?: unknown;
}

const LINES = 20;
const RUNNER = 'hook-runner.sh';
/** Exit status of a shell that SIGTERM ended. */
const ENDED = 143;
/** The exit status for a signal is its number and this. */
const SIGNALED = 128;
const LARGE_LOG = 1 << 20;
/** Why a hook can end without a place. */
const HIDDEN = 'as after exec, builtin exit or an ERR trap of its own';
/** If less than this is free, output or files of a hook may not have fit. */
const FULL_BELOW = 64 << 10;

async function isFull(folder: string): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize < FULL_BELOW;
  } catch {
    return false;
  }
}

/** `HOOK_FAILED`, or `CANCELLED`. */
export async function hookFailure(failed: FailedHook): Promise<CurlewError> {
  const { function: hook, log, exit } = failed;
  const addon = blamed(failed);
  const lines = await lastLines(log, LINES);
  const output =
    lines.length === 0 ? '' : `\nlast lines of its output:\n${lines.map((line) => `  ${line}`).join('\n')}`;
  const folder = dirname(log);
  const full = await isFull(folder);
  // On a full disk neither the place of the failure nor the last lines may have been written.
  const why = full && failed.notes.place === undefined ? 'failed' : reason(failed, lines);
  const space = full ? `; no space is left on the disk of ${folder}` : '';
  const code: ErrorCode = exit === 'cancelled' ? 'CANCELLED' : 'HOOK_FAILED';
  return new CurlewError(code, `${addon}: ${hook} ${why}${space}${output}`, {
    hint: full ? await spaceHint(log) : hintOf(failed, lines),
    cause: failed.cause,
  });
}

/** Adds a hint to a failed hook's error: the command that restores the former version, if there is one. */
export function withRollbackHint(error: unknown, addon: string, version: string | undefined): unknown {
  if (!(error instanceof CurlewError) || error.code !== 'HOOK_FAILED' || version === undefined) return error;
  const { hint } = error;
  const back = `curlew rollback ${addon} restores ${version}`;
  return error.with({ hint: hint === undefined ? back : `${hint}; ${back}` });
}

/** A program that asks the API server, as a command or in the messages of shells. */
const CLUSTER_PROGRAM = /(?:^|[\s/;&|(`])(?:kubectl|helm)\b/;
/** Messages of kubectl and helm that reach no API server. */
const NO_CLUSTER =
  /localhost:8080|couldn't get current server API group|Kubernetes cluster unreachable|Unable to connect to the server/;

/** The hint for a hook in a sandbox that asked for a cluster; undefined if it did not ask for one. */
function clusterHint({ trial, notes }: FailedHook, lines: readonly string[]): string | undefined {
  if (trial === undefined) return undefined;
  const output = lines.join('\n');
  const missing = /\b(kubectl|helm): command not found/.exec(output)?.[1];
  const install = missing === undefined ? '' : `this machine has no ${missing} in PATH: install it`;
  const asked = CLUSTER_PROGRAM.test(notes.place?.command ?? '') || NO_CLUSTER.test(output) || missing !== undefined;
  if (trial === 'with cluster' || !asked) return install || undefined;
  const reach = 'hooks of a trial reach a cluster only with --kubeconfig FILE, and then they change it';
  return install === '' ? reach : `${install}; ${reach}`;
}

function hintOf(failed: FailedHook, lines: readonly string[]): string {
  const { log, exit } = failed;
  if (exit === 'cancelled') return 'run the same command again, or curlew resume, to continue with this hook';
  const cluster = clusterHint(failed, lines);
  if (cluster !== undefined) return `${cluster}; the complete output is in ${log}`;
  const longer = exit === 'limit' ? ', with a longer --hook-timeout if it needs one' : '';
  return `the complete output is in ${log}; fix the cause, then run the same command again${longer}`;
}

/** A log that fills the disk must be removed first. */
async function spaceHint(log: string): Promise<string> {
  const { size } = await stat(log).catch(() => ({ size: 0 }));
  const first = size > LARGE_LOG ? `${log} has ${Math.round(size / 1e6)} MB: check its end and remove it; ` : '';
  return `${first}free some space, then run the same command again`;
}

/** The add-on whose install.sh failed while the scripts of all add-ons were sourced. */
function blamed({ addon, notes: { stage } }: FailedHook): string {
  if (stage?.stage !== 'source') return addon;
  const [, tail] = /(?:^|\/)((?:addons|packages)\/[^/]+\/[^/]+\/install\.sh)$/.exec(stage.what) ?? [];
  return tail === undefined ? addon : (ownerOf(tail)?.name ?? addon);
}

function reason({ addon, function: hook, node, notes, exit, limitMs }: FailedHook, lines: readonly string[]): string {
  const { bail, stage } = notes;
  const place = notes.place && { ...notes.place, file: ownPath(node, notes.place.file) };
  const sourcing = stage !== undefined && stage.stage !== 'call' ? ` while ${ownPath(node, stage.what)} was read` : '';
  // After SIGTERM the hook reports its place. Outside of its own code, that is a line of the runner.
  const interrupted = place?.status === ENDED && basename(place.file) !== RUNNER ? ` ${placeText(place)}` : '';
  if (exit === 'limit')
    return `took longer than its limit of ${(limitMs ?? 0) / 1000} s and was terminated${sourcing}${interrupted}`;
  if (exit === 'cancelled') return `was canceled${sourcing}${interrupted}`;
  if (exit === 'exited') {
    const where = place?.status === 0 ? ` ${placeText(place)}` : '';
    return `called exit before its end${sourcing}${where}: a hook must return`;
  }
  if (notes.absent === true) return `is not defined: no function ${hook} after every install.sh was read`;
  const killer = typeof exit === 'string' ? exit : place === undefined ? signalOf(exit) : undefined;
  if (killer !== undefined) return `was killed by ${killer} (signal ${constants.signals[killer]})${sourcing}`;
  if (bail !== undefined && place === undefined) {
    return `gave up${sourcing} at ${ownPath(node, bail.file)}:${bail.line}${inFunction(bail.function)}: ${withoutName(addon, bail.text)}`;
  }
  const syntax = syntaxError(stage?.what, lines);
  if (sourcing !== '' && syntax !== undefined) return `failed: ${ownPath(node, syntax.file)}:${syntax.rest}`;
  // While a file is read, the place is then that of the runner, which reads it.
  const ended = place === undefined || basename(place.file) === RUNNER ? expansionError(lines) : undefined;
  if (ended !== undefined) return `failed${sourcing} with status ${exit} at ${ownPath(node, ended.file)}:${ended.rest}`;
  if (place === undefined) return `ended with status ${exit}${sourcing} at an unknown line, ${HIDDEN}`;
  return `failed${sourcing} with status ${exit} ${placeText(place)}`;
}

function placeText({ file, line, function: name, command, isStart = false }: FailurePlace): string {
  const first = command.split('\n', 1)[0] ?? '';
  if (isStart && line > 0 && inFunction(name) !== '') return `in ${name}, which begins at ${file}:${line}: ${first}`;
  const number = line === 0 ? '' : `:${line}`;
  return `at ${file}${number}${inFunction(name)}: ${first}`;
}

function inFunction(name: string): string {
  return name === '' || name === 'source' || name === 'main' ? '' : ` in ${name}`;
}

/** The signal that ended a process, from the status that a shell or a sandbox gives for it. */
function signalOf(status: number): NodeJS.Signals | undefined {
  const names = Object.keys(constants.signals) as NodeJS.Signals[];
  return names.find((name) => constants.signals[name] === status - SIGNALED);
}

/** Errors in expansions: of an unset variable or `${variable:?message}`, in arithmetic, in a substitution. */
const EXPANSION = /^(\/.*): line (\d+): (\w+: .*|.*\(error token is ".*"\)|.*: bad substitution)$/;

/** A file, and `line: message` from bash's output. */
interface BashError {
  readonly file: string;
  readonly rest: string;
}

/** From bash's last line, if an error in an expansion ended the shell, which runs no trap. */
function expansionError(lines: readonly string[]): BashError | undefined {
  const [, file, line, text] = EXPANSION.exec(lines.at(-1) ?? '') ?? [];
  return file === undefined ? undefined : { file, rest: `${line}: ${text}` };
}

/** The syntax error in a file that bash could not parse. */
function syntaxError(file: string | undefined, lines: readonly string[]): BashError | undefined {
  if (file === undefined) return undefined;
  for (const line of lines) {
    const [, number, text] = /: line (\d+): (.*(?:syntax error|unexpected).*)$/.exec(line) ?? [];
    if (number !== undefined && line.startsWith(file)) return { file, rest: `${number}: ${text ?? ''}` };
  }
  return undefined;
}
