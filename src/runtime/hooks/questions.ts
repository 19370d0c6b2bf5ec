/** Questions of a hook: handed to whoever runs it, and the answers to the hook, by a file of its own for each. */
import { rm } from 'node:fs/promises';
import { asError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import type { ControlRecord } from './control.ts';
import { linesFrom } from './log-tail.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';

export interface Question {
  readonly addon: string;
  /** `yes` and `no` name the answer that counts when none is given; what is typed for a `secret` must not be shown. */
  readonly kind: Extract<ControlRecord, { kind: 'question' }>['question'];
  /** What the hook has printed since it began, or since its last question: there it says what it wants to know. */
  readonly lines: readonly string[];
}

/** The answer of a person, maybe empty; undefined when there is nobody any more who could give one. */
export type Ask = (question: Question, options: { readonly signal: AbortSignal }) => Promise<string | undefined>;

export interface Questions {
  readonly take: (record: Extract<ControlRecord, { kind: 'question' }>) => void;
  /** True while a person is being waited for. */
  readonly isOpen: () => boolean;
  /** Waits until none is open, and removes what nobody has read. */
  readonly finish: () => Promise<void>;
}

interface QuestionsOptions {
  readonly addon: string;
  readonly log: string;
  /** Path of the answers, to which the id of a question is added. */
  readonly answers: string;
  readonly ask: Ask;
  readonly report: Report;
  readonly signal: AbortSignal;
}

const MOST_LINES = 20;

/** Answers never go anywhere but to the hook: into no log, journal or event. */
export function answerQuestions({ addon, log, answers, ask, report, signal }: QuestionsOptions): Questions {
  let seen = 0;
  /** One question at a time, in their order. */
  const mutex = createSemaphore(1);
  let open = 0;
  const files: string[] = [];
  const answer = async ({ id, question }: Extract<ControlRecord, { kind: 'question' }>): Promise<void> => {
    const path = `${answers}-${id}`;
    files.push(path);
    const said = await linesFrom(log, seen);
    seen = said.end;
    const text = await ask({ addon, kind: question, lines: said.lines.slice(-MOST_LINES) }, { signal });
    await writeStateFile(path, text === undefined ? 'nobody\n' : `answer\n${text}\n`);
  };
  return {
    take: (record) => {
      open += 1;
      void mutex.run(async () => {
        try {
          await answer(record);
        } catch (error) {
          // Whoever stops the run ends the hook that waits; any other failure must not leave it waiting.
          if (signal.aborted) return;
          report({
            type: 'note',
            level: 'warning',
            text: `${addon}: its question cannot be asked: ${asError(error).message}`,
          });
          await writeStateFile(`${answers}-${record.id}`, 'nobody\n').catch(() => undefined);
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
