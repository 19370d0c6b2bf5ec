/** Hooks of a run: one after another, with the variables of one handed to the next. */
import { constants } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { hookFailure } from './hook-failure.ts';
import { runShell, type HookOptions, type HookOutcome, type HookRequest, type HookShell } from './hook-process.ts';
import { seenPath } from '../node/node-place.ts';

export interface FinishedHook extends HookOutcome {
  /** Of the variables that it hands on; they lie ready, and count when {@link adoptCarried} has been called. */
  readonly carried: Digest;
}

/**
 * Runs one hook to its end. `HOOK_FAILED` when it fails, is absent, leaves with `exit`, or exceeds its limit; an abort
 * ends everything that it started.
 */
export async function runHook(shell: HookShell, request: HookRequest, options: HookOptions): Promise<FinishedHook> {
  const result = nextCarried(shell);
  await rm(result, { force: true });
  try {
    const outcome = await runShell(shell, request, options, runnerWords(shell, result, request));
    return { ...outcome, carried: await settleResult(request, result, outcome) };
  } finally {
    await rm(`${result}.part`, { force: true });
  }
}

function nextCarried({ exchange }: Pick<HookShell, 'exchange'>): string {
  return join(exchange, 'carried.sh');
}

/** From now on later hooks begin with the variables that the last one has handed on. */
export async function adoptCarried(shell: Pick<HookShell, 'carried' | 'exchange'>): Promise<void> {
  await rename(nextCarried(shell), shell.carried);
}

/** The file with the carried variables of this digest, which a run that died may have had no time to adopt. */
export async function findCarried(
  shell: Pick<HookShell, 'carried' | 'exchange'>,
  digest: Digest,
): Promise<string | undefined> {
  for (const path of [shell.carried, nextCarried(shell)]) {
    // What its journal names is whole, whether the version that wrote it said so at its end or not.
    const text = await readBounded(path, 'the last run');
    if (text !== undefined && digestOf(text) === digest) return path;
  }
  return undefined;
}

/** Sources everything without calling a hook, and returns the names of all functions that are defined then. */
export async function lookUpFunctions(shell: HookShell, options: HookOptions): Promise<ReadonlySet<string>> {
  const result = join(shell.exchange, 'functions');
  const request = { addon: 'all add-ons', function: 'look-up', attempt: 1 };
  const outcome = await runShell(shell, request, options, runnerWords(shell, result, undefined));
  const text = await readResult(result, 'the look-up of functions');
  if (text === undefined) throw await hookFailure({ ...request, ...outcome, exit: 'exited' });
  await rm(result, { force: true });
  return new Set(text.slice(0, -WHOLE.length).split('\n'));
}

/** The words of hook-runner.sh; its head says what they mean. */
function runnerWords(
  { place, scripts, settings, carried, installScripts }: HookShell,
  result: string,
  hook: Pick<HookRequest, 'function' | 'words' | 'own'> | undefined,
): readonly string[] {
  const paths = [join(scripts, 'hook-runner.sh'), join(scripts, 'lib'), settings, carried, result];
  const own = hook?.own === undefined ? '' : seenPath(place, hook.own);
  const seen = (path: string): string => seenPath(place, path);
  const words = hook?.words ?? [];
  return [...paths.map(seen), hook?.function ?? '', own, String(words.length), ...words, ...installScripts.map(seen)];
}

/** The last line of what hook-runner.sh has written to its end. */
const WHOLE = ': whole\n';
/** Most bytes that may be handed from hook to hook. */
const RESULT_LIMIT = 16 << 20;

/** Undefined for what was not written to its end. */
async function readResult(path: string, whose: string): Promise<string | undefined> {
  const text = await readBounded(path, whose);
  return text?.endsWith(WHOLE) === true ? text : undefined;
}

async function readBounded(path: string, whose: string): Promise<string | undefined> {
  // A hook may have left anything: a link is not followed, a pipe not waited for.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (file === undefined) return undefined;
  try {
    const found = await file.stat();
    if (!found.isFile()) return undefined;
    const { size } = found;
    if (size <= RESULT_LIMIT) return await file.readFile('utf8');
    throw new CurlewError('HOOK_FAILED', `${whose} left ${size} bytes of variables, more than ${RESULT_LIMIT}`, {
      hint: 'keep in a file what later hooks need of it',
    });
  } finally {
    await file.close();
  }
}

/** A hook that ended with status 0 but has not written to the end has called `exit`. */
async function settleResult(
  request: HookRequest,
  result: string,
  { log, notes }: Pick<HookOutcome, 'log' | 'notes'>,
): Promise<Digest> {
  const text = await readResult(result, `${request.addon}: ${request.function}`);
  if (text === undefined) throw await hookFailure({ ...request, log, notes, exit: 'exited' });
  const file = await open(result, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  return digestOf(text);
}
