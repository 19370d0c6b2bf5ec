/** Asks the operator the questions of hooks. */
import type { Cancellable } from '../core/cancellable.ts';
import type { Question } from '../core/context.ts';
import { askLine } from './ask-line.ts';
import { harmless } from './render/plain.ts';

const CHOICES: Readonly<Record<Question['kind'], string>> = { yes: '(Y/n)', no: '(y/N)', text: '', secret: '' };

/** The prompt: the lines that the hook has printed, so that the answer follows the last one. */
export function questionText({ addon, kind, lines }: Question): string {
  const choice = CHOICES[kind];
  const shown = lines.map(harmless);
  const last = shown.at(-1) ?? `${addon}:`;
  const whole = choice === '' || last.endsWith(choice) ? last : `${last} ${choice}`.trimStart();
  return [`${addon} asks:`, ...[...shown.slice(0, -1), whole].map((line) => `  ${line}`)].join('\n') + ' ';
}

/** Undefined if the terminal is gone. */
export async function askOperator(question: Question, { signal }: Cancellable): Promise<string | undefined> {
  return askLine(questionText(question), { secret: question.kind === 'secret', signal });
}
