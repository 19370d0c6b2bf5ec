/** The name of a command in a command line. */
import { familyOf, splitFirst, type Split } from './commands.ts';
import { requestOf } from './requests.ts';
import { walkWords } from './walk-words.ts';

/**
 * Splits a command line into the name of a command, which may not exist, and its arguments. Options of the command may
 * precede its name.
 */
export function splitName(words: readonly string[]): Split {
  for (const [at, word] of words.entries()) {
    const { name, args } = splitFirst(words.slice(at));
    const of = requestOf(name) ?? requestOf(familyOf(word)[0]?.[0] ?? '');
    const before = words.slice(0, at);
    if (of !== undefined && walkWords(of, before).onlyOptions) return { name, args: [...before, ...args] };
  }
  return splitFirst(words);
}
