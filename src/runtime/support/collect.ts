/** Collects the files of a support bundle: each within limits of time and size, and without secrets. */
import type { Reporting } from '../../core/cancellable.ts';
import { asError, CurlewError, errnoOf, isMissing } from '../../core/errors.ts';
import { printableJson } from '../../core/json.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { LimitExceeded, within } from '../../platform/limit/within.ts';
import { CollectProblem } from '../preflight/host.ts';
import type { SupportArchive } from './archive.ts';
import type { Redactor } from './redact.ts';

/** The end of a `text` is kept where it is too long. A `problem` says why the file is missing. */
export type CollectedPiece = { readonly path: string } & (
  | { readonly text: string }
  | { readonly value: unknown }
  | { readonly problem: string }
);

/** The source of one file, or of several with the beginning of its path. */
export interface Item {
  readonly path: string;
  /** A path, or a program with its arguments. */
  readonly source: string;
  /** Milliseconds. */
  readonly limit?: number;
  /** Empty if there is nothing of it on this machine. */
  readonly collect: (at: { readonly signal: AbortSignal }) => Promise<readonly CollectedPiece[]>;
}

/**
 * `shortened`: only its end; `absent`: this machine does not have it; `failed`: it could not be read; `left out`: by the end of the time,
 * of the space, or of the command.
 */
interface Collected {
  readonly path: string;
  readonly source: string;
  readonly state: 'collected' | 'shortened' | 'absent' | 'failed' | 'left out';
  /** The size in the bundle. */
  readonly bytes?: number;
  readonly problem?: string;
}

export interface CollectOptions extends Reporting {
  readonly archive: SupportArchive;
  readonly redactor: Redactor;
  /** Milliseconds for one item, and for all. */
  readonly limit?: number;
  readonly limitOfAll?: number;
  readonly maxBytes?: number;
}

const LIMIT_MS = 30_000;
const LIMIT_OF_ALL_MS = 10 * 60_000;
/** The limit of one file. */
const MAX_BYTES = 8 << 20;
const AT_ONCE = 8;

/** Never throws for what cannot be collected: each item has its state in the result. */
export async function collectItems(items: readonly Item[], options: CollectOptions): Promise<readonly Collected[]> {
  const { report, signal, limit = LIMIT_MS, limitOfAll = LIMIT_OF_ALL_MS } = options;
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(new Error(`not within ${limitOfAll / 60_000} minutes`)), limitOfAll);
  const stop = AbortSignal.any([signal, over.signal]);
  const found: (readonly Collected[])[] = [];
  const one = async ({ path, source, collect, limit: own = limit }: Item): Promise<readonly Collected[]> => {
    const without = (state: Collected['state'], problem: string): readonly Collected[] => [
      { path, source, state, problem: options.redactor.text(problem) },
    ];
    const id = `collect ${path}`;
    report({ type: 'step-started', id, title: path });
    try {
      const pieces = await within(own, collect, { signal: stop });
      const written = pieces.map(async (piece) => writePiece(piece, source, options));
      return pieces.length === 0 ? without('absent', 'this machine does not have it') : await Promise.all(written);
    } catch (error) {
      if (signal.aborted) return without('left out', 'the command was stopped');
      if (stop.aborted) return without('left out', asError(over.signal.reason).message);
      if (error instanceof LimitExceeded) return without('failed', `not finished after ${own / 1000} s`);
      if (isMissing(error)) return without('absent', 'this machine does not have it');
      if (error instanceof TypeError && errnoOf(error) === undefined) throw error;
      return without('failed', problemOf(error));
    } finally {
      report({ type: 'step-done', id, outcome: 'done' });
    }
  };
  try {
    const work = async (at: number): Promise<void> => {
      const item = items[at];
      if (item !== undefined) found[at] = await one(item);
    };
    // What was collected is kept when the command is stopped.
    await eachLimited([...items.keys()], work, { width: AT_ONCE, signal: new AbortController().signal });
  } finally {
    clearTimeout(timer);
  }
  return found.flat();
}

function problemOf(error: unknown): string {
  const errno = errnoOf(error instanceof CurlewError ? error.cause : error);
  if (errno === 'EACCES' || errno === 'EPERM') return 'permission denied: run the command as root';
  return error instanceof CollectProblem ? error.message : asError(error).message;
}

async function writePiece(
  piece: CollectedPiece,
  source: string,
  { archive, redactor, maxBytes = MAX_BYTES }: CollectOptions,
): Promise<Collected> {
  const { path } = piece;
  if ('problem' in piece) return { path, source, state: 'failed', problem: redactor.text(piece.problem) };
  let isShort = false;
  let data: Buffer;
  if ('value' in piece) {
    data = Buffer.from(`${printableJson(redactor.value(piece.value), 2)}\n`);
    if (data.byteLength > 4 * maxBytes) return { path, source, state: 'left out', problem: 'it is too large' };
  } else {
    // Before it is shortened: half of a secret looks like none.
    data = Buffer.from(redactor.text(piece.text));
    isShort = data.byteLength > maxBytes;
    if (isShort) data = data.subarray(data.indexOf('\n', data.byteLength - maxBytes) + 1);
  }
  const problem = await archive.add(path, data);
  if (problem !== undefined) return { path, source, state: 'left out', problem };
  return { path, source, state: isShort ? 'shortened' : 'collected', bytes: data.byteLength };
}
