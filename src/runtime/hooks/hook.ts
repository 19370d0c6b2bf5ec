/** Runs hooks one after another; each passes its variables to the next. */
import { constants } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { LOOK_UP } from '../plan/action-id.ts';
import { hookFailure } from './hook-failure.ts';
import { runShell, type HookOptions, type HookOutcome, type HookStart, type HookShell } from './hook-process.ts';
import { seenPath } from '../node/node-place.ts';

export interface FinishedHook extends HookOutcome {
  /** Digest of the variables that it passes on; {@link adoptCarried} makes them effective. */
  readonly carried: Digest;
}

/**
 * Runs one hook to its end. `HOOK_FAILED` if it fails, is not defined, calls `exit`, or exceeds its limit; an abort ends
 * all processes that it started.
 */
export async function runHook(shell: HookShell, request: HookStart, options: HookOptions): Promise<FinishedHook> {
  const result = nextCarried(shell);
  await rm(result, { force: true });
  try {
    const outcome = await runShell(shell, request, options, runnerArgs(shell, result, request));
    return { ...outcome, carried: await settleResult(shell, request, result, outcome) };
  } finally {
    await rm(`${result}.part`, { force: true });
  }
}

function nextCarried({ exchange }: Pick<HookShell, 'exchange'>): string {
  return join(exchange, 'carried.sh');
}

/** Later hooks start with the variables that the last one passed on. */
export async function adoptCarried(shell: Pick<HookShell, 'carried' | 'exchange'>): Promise<void> {
  await rename(nextCarried(shell), shell.carried);
}

/** The file with the carried variables of this digest, which a run that died may not have adopted. */
export async function findCarried(
  shell: Pick<HookShell, 'carried' | 'exchange'>,
  digest: Digest,
): Promise<string | undefined> {
  for (const path of [shell.carried, nextCarried(shell)]) {
    // Its digest is in the journal, so it is complete even without the last line, which older versions did not write.
    const text = await readBounded(path, 'the last run');
    if (text !== undefined && digestOf(text) === digest) return path;
  }
  return undefined;
}

/** Sources everything without calling a hook, and returns the names of all functions. */
export async function lookUpFunctions(shell: HookShell, options: HookOptions): Promise<ReadonlySet<string>> {
  const result = join(shell.exchange, 'functions');
  const request = { addon: 'all add-ons', function: LOOK_UP, attempt: 1 };
  const outcome = await runShell(shell, request, options, runnerArgs(shell, result, undefined));
  const text = await readResult(result, 'the function lookup');
  if (text === undefined) throw await hookFailure({ ...request, ...outcome, node: shell.place, exit: 'exited' });
  await rm(result, { force: true });
  return new Set(text.slice(0, -WHOLE.length).split('\n'));
}

/** The arguments of hook-runner.sh, which the comment at its top explains. */
function runnerArgs(
  { place, scripts, settings, carried, installScripts }: HookShell,
  result: string,
  hook: Pick<HookStart, 'function' | 'args' | 'own'> | undefined,
): readonly string[] {
  const paths = [join(scripts, 'hook-runner.sh'), join(scripts, 'lib'), settings, carried, result];
  const own = hook?.own === undefined ? '' : seenPath(place, hook.own);
  const seen = (path: string): string => seenPath(place, path);
  const args = hook?.args ?? [];
  return [...paths.map(seen), hook?.function ?? '', own, String(args.length), ...args, ...installScripts.map(seen)];
}

/** The last line of a complete result of hook-runner.sh. */
const WHOLE = ': whole\n';
/** Maximum bytes that are passed from hook to hook. */
const RESULT_LIMIT = 16 << 20;

/** Undefined if the result is incomplete. */
async function readResult(path: string, whose: string): Promise<string | undefined> {
  const text = await readBounded(path, whose);
  return text?.endsWith(WHOLE) === true ? text : undefined;
}

async function readBounded(path: string, whose: string): Promise<string | undefined> {
  // A hook may have left anything there: follow no link, do not wait for a pipe.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (file === undefined) return undefined;
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return undefined;
    const { size } = stats;
    if (size <= RESULT_LIMIT) return await file.readFile('utf8');
    throw new CurlewError('HOOK_FAILED', `${whose} left ${size} bytes of variables, more than ${RESULT_LIMIT}`, {
      hint: 'keep large values for later hooks in a file',
    });
  } finally {
    await file.close();
  }
}

/** A hook that ended with status 0 but without a complete result has called `exit`. */
async function settleResult(
  { place: node }: HookShell,
  request: HookStart,
  result: string,
  { log, notes }: Pick<HookOutcome, 'log' | 'notes'>,
): Promise<Digest> {
  const text = await readResult(result, `${request.addon}: ${request.function}`);
  if (text === undefined) throw await hookFailure({ ...request, log, notes, node, exit: 'exited' });
  const file = await open(result, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  return digestOf(text);
}
