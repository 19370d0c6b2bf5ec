/**
 * Fills the sample files for a new add-on. Lines between `# [if WORD]` and `# [end]` are kept if the condition is true; lines
 * between `# [each WORD]` and `# [end]` are repeated for each item of a list. Pure.
 */

export type Replacements = Readonly<Record<string, string>>;

export interface Filling {
  /** Replacements for these words anywhere; longer words first. */
  readonly words: Replacements;
  readonly conditions: ReadonlySet<string>;
  readonly lists: Readonly<Record<string, readonly Replacements[]>>;
}

const MARK = /^\s*# \[(if|each|end)(?: ([a-z_]+))?\]$/;

function replaced(text: string, words: Replacements): string {
  const keys = Object.keys(words).toSorted((a, b) => b.length - a.length);
  if (keys.length === 0) return text;
  // Replaces in one pass, so that replacements are not replaced again.
  return text.replaceAll(new RegExp(keys.join('|'), 'g'), (word) => words[word] ?? word);
}

interface Block {
  readonly kind: 'if' | 'each';
  readonly word: string;
  readonly lines: string[];
}

/** Fills in one text. Blocks may nest but not overlap. */
export function fillText(text: string, filling: Filling): string {
  const open: Block[] = [{ kind: 'if', word: '', lines: [] }];
  for (const line of text.split('\n')) {
    const [, mark, word = ''] = MARK.exec(line) ?? [];
    if (mark === 'if' || mark === 'each') {
      open.push({ kind: mark, word, lines: [] });
    } else if (mark === 'end') {
      const block = open.pop();
      if (block !== undefined) open.at(-1)?.lines.push(...blockLines(block, filling));
    } else {
      open.at(-1)?.lines.push(line);
    }
  }
  return replaced((open[0]?.lines ?? []).join('\n'), filling.words);
}

function blockLines({ kind, word, lines }: Block, { conditions, lists }: Filling): readonly string[] {
  if (kind === 'if') return conditions.has(word) ? lines : [];
  return (lists[word] ?? []).flatMap((words) => lines.map((line) => replaced(line, words)));
}

/** Fills in one text for each item of a list. */
export function fillEach(text: string, list: readonly Replacements[], filling: Filling): readonly string[] {
  return list.map((words) => fillText(replaced(text, words), filling));
}
