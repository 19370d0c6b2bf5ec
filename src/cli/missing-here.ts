/** The one rule for what hints may name: on a node, its curlew has only some of the commands, and no pages. */
import { ERRORS } from '../core/errors.ts';
import { ownPages } from '../own/scripts.ts';
import { COMMANDS, familyOf, offeredCommands } from './commands.ts';
import type { MissingAt } from './suggested-commands.ts';

/** `curlew COMMAND`, or `curlew help TOPIC`. */
const NAMED = /(?<![\w/.-])curlew (?:help [\w-]+(?:\.md)?|[a-z]+(?:-[a-z]+)*)/y;

/** What `help` shows besides commands and pages. */
const TOPICS: ReadonlySet<string> = new Set(['COMMAND', 'commands', ...Object.keys(ERRORS)]);

/** Finds what a text names and this program does not have; with pages, it has everything. */
export function missingHere(hasPages = ownPages() !== undefined): MissingAt {
  if (hasPages) return () => undefined;
  const offered = offeredCommands(false);
  const isOffered = (name: string): boolean => offered.has(name) || familyOf(name).length > 0;
  return (text, at) => {
    NAMED.lastIndex = at;
    const [named = ''] = NAMED.exec(text) ?? [];
    const [, word = '', topic] = named.split(' ');
    if (topic !== undefined) return TOPICS.has(topic) || isOffered(topic) ? undefined : named;
    return COMMANDS.has(word) && !isOffered(word) ? named : undefined;
  };
}

/** A hint, with where to run what it names and this program does not have. */
export function withPlace(hint: string, missingAt: MissingAt = missingHere()): string {
  for (const { index } of hint.matchAll(/curlew /g)) {
    const missing = missingAt(hint, index);
    if (missing !== undefined) return `${hint}; run ${missing} on the machine that makes bundles`;
  }
  return hint;
}
