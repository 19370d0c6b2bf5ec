/** The records that a hook writes to its control descriptor, and reading them while they are written. */
import { watch } from 'node:fs';
import { open } from 'node:fs/promises';
import { asError } from '../../core/errors.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';

/** The place of a failed command, from the ERR trap. */
export interface FailurePlace {
  /** Depth of subshells; 0 is the hook's own shell. */
  readonly depth: number;
  readonly status: number;
  /** Empty at top level. */
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly command: string;
  /** `line` is the first of the function: that of the command is unknown. */
  readonly isStart?: boolean;
}

type LogLevel = 'info' | 'step' | 'substep' | 'success' | 'warning' | 'failure';

export type ControlRecord =
  | { readonly kind: 'log'; readonly level: LogLevel; readonly text: string }
  | { readonly kind: 'stage'; readonly stage: 'settings' | 'source' | 'carried' | 'call'; readonly what: string }
  | { readonly kind: 'error'; readonly place: FailurePlace }
  | {
      readonly kind: 'bail';
      readonly text: string;
      readonly function: string;
      readonly file: string;
      readonly line: number;
    }
  | { readonly kind: 'absent'; readonly function: string }
  /** An error in an expansion has ended the hook, for which the shell runs no trap. */
  | { readonly kind: 'broken' }
  | { readonly kind: 'question'; readonly question: 'yes' | 'no' | 'text' | 'secret'; readonly id: string };

const LEVELS: readonly LogLevel[] = ['info', 'step', 'substep', 'success', 'warning', 'failure'];
const STAGES = ['settings', 'source', 'carried', 'call'] as const;
const QUESTIONS = ['yes', 'no', 'text', 'secret'] as const;
/** Strict, because it becomes part of a file name. */
const QUESTION_ID = /^[0-9]{1,20}-[0-9]{1,20}$/;

/** The text of a message that begins with the name of its add-on, without it. Hooks that also run in kURL name it themselves. */
export function withoutName(addon: string, text: string): string {
  return text.startsWith(`${addon}: `) ? text.slice(addon.length + 2) : text;
}

/**
 * Parses one line of `curlew_control` in scripts/lib/logging.sh. Hooks can write anything here: an unknown line is undefined, not
 * an error.
 */
export function parseControlLine(line: string): ControlRecord | undefined {
  const [kind, first = '', second = '', third = '', fourth = '', fifth = '', sixth = '', seventh] = line
    .split('\t')
    .map(unescape);
  switch (kind) {
    case 'log': {
      const level = LEVELS.find((known) => known === first);
      return level === undefined ? undefined : { kind, level, text: second };
    }
    case 'stage': {
      const stage = STAGES.find((known) => known === first);
      return stage === undefined ? undefined : { kind, stage, what: second };
    }
    case 'error': {
      const place = {
        depth: Number(first),
        status: Number(second),
        function: third,
        file: fourth,
        line: Number(fifth),
      };
      return { kind, place: { ...place, command: sixth, ...(seventh === 'start' ? { isStart: true } : {}) } };
    }
    case 'bail':
      return { kind, text: first, function: second, file: third, line: Number(fourth) };
    case 'absent':
      return { kind, function: first };
    case 'broken':
      return { kind };
    case 'question': {
      const question = QUESTIONS.find((known) => known === first);
      return question === undefined || !QUESTION_ID.test(second) ? undefined : { kind, question, id: second };
    }
    case undefined:
    default:
      return undefined;
  }
}

function unescape(field: string): string {
  return field.replaceAll(/\\(.)/g, (_, char: string) => {
    if (char === 't') return '\t';
    return char === 'n' ? '\n' : char;
  });
}

const POLL_MS = 500;

/** Calls back when a file may have grown. If the machine has no watches left, polls twice a second. */
function onChange(path: string, callback: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const poll = (): void => {
    timer ??= setInterval(callback, POLL_MS).unref();
  };
  try {
    const watcher = watch(path, { persistent: false }, callback);
    watcher.on('error', poll);
    return () => {
      watcher.close();
      clearInterval(timer);
    };
  } catch {
    poll();
    return () => {
      clearInterval(timer);
    };
  }
}

const READ_SIZE = 64 << 10;
/** Longer than any valid record; longer lines are discarded. */
const LINE_LIMIT = 128 << 10;

export interface Follower {
  /** Reads the rest and stops. May be called more than once. */
  readonly finish: () => Promise<void>;
}

/**
 * Calls back with each record of a growing file. It is a file, not a pipe, so that a hook can continue to write after this
 * process has died.
 */
export async function followControl(path: string, onRecord: (record: ControlRecord) => void): Promise<Follower> {
  const file = await open(path, 'r');
  const chunk = Buffer.alloc(READ_SIZE);
  let position = 0;
  let rest = Buffer.alloc(0);
  const drain = async (): Promise<void> => {
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, READ_SIZE, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      let text = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
      for (let end = text.indexOf(10); end !== -1; end = text.indexOf(10)) {
        const record = end > LINE_LIMIT ? undefined : parseControlLine(text.toString('utf8', 0, end));
        if (record !== undefined) onRecord(record);
        text = text.subarray(end + 1);
      }
      rest = text.byteLength > LINE_LIMIT ? text.subarray(-LINE_LIMIT) : text;
    }
  };
  // One reader at a time: the next one reads changes that occur during a read.
  const mutex = createSemaphore(1);
  let failure: Error | undefined;
  const next = async (): Promise<void> =>
    mutex.run(drain).catch((error: unknown) => {
      failure = asError(error);
    });
  const stopWatching = onChange(path, () => void next());
  const finish = async (): Promise<void> => {
    stopWatching();
    await next();
    await file.close();
    if (failure !== undefined) throw failure;
  };
  let finished: Promise<void> | undefined;
  return { finish: async () => (finished ??= finish()) };
}
