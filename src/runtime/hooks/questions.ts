/** Passes questions of a hook to the caller, and each answer to the hook in a file. */
import { rm } from 'node:fs/promises';
import type { Reporting } from '../../core/cancellable.ts';
import type { Ask } from '../../core/context.ts';
import { asError } from '../../core/errors.ts';
import type { ControlRecord } from './control.ts';
import { linesFrom } from './log-tail.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';

export interface Questions {
  readonly take: (record: Extract<ControlRecord, { kind: 'question' }>) => void;
  /** True while an answer is awaited. */
  readonly isOpen: () => boolean;
  /** Waits until no question is open, and removes unread answers. */
  readonly finish: () => Promise<void>;
}

interface QuestionsOptions extends Reporting {
  readonly addon: string;
  readonly log: string;
  /** Path prefix of the answer files; the ID of a question is appended. */
  readonly answers: string;
  readonly ask: Ask;
}

const MAX_LINES = 20;

/** Answers go only to the hook, never into a log, journal or event. */
export function answerQuestions({ addon, log, answers, ask, report, signal }: QuestionsOptions): Questions {
  let seen = 0;
  /** One question at a time, in their order. */
  const mutex = createSemaphore(1);
  let open = 0;
  const files: string[] = [];
  const answer = async ({ id, question }: Extract<ControlRecord, { kind: 'question' }>): Promise<void> => {
    const path = `${answers}-${id}`;
    files.push(path);
    const output = await linesFrom(log, seen);
    seen = output.end;
    const text = await ask({ addon, kind: question, lines: output.lines.slice(-MAX_LINES) }, { signal });
    await writeStateFile(path, text === undefined ? 'none\n' : `answer\n${text}\n`);
  };
  return {
    take: (record) => {
      open += 1;
      void mutex.run(async () => {
        try {
          await answer(record);
        } catch (error) {
          // An abort ends the waiting hook; after any other failure it must not wait forever.
          if (signal.aborted) return;
          report({
            type: 'note',
            level: 'warning',
            text: `${addon}: cannot ask its question: ${asError(error).message}`,
          });
          await writeStateFile(`${answers}-${record.id}`, 'none\n').catch(() => undefined);
        } finally {
          open -= 1;
        }
      });
    },
    isOpen: () => open > 0,
    finish: async () => {
      await mutex.run(async () => undefined);
      for (const path of files) await rm(path, { force: true });
    },
  };
}
