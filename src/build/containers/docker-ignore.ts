/** `.dockerignore`: which files of a folder a build does not see. Pure. */

/** A part of a pattern: one character that fits, any number of them, or any number of folders with their slashes. */
type Step =
  | { readonly kind: 'one' | 'many'; readonly fits: (character: string) => boolean }
  | { readonly kind: 'folders' };

const isAnything = (): boolean => true;
const isNoSlash = (character: string): boolean => character !== '/';

/** `*` and `?` stop at a slash, `**` does not; `[…]` is a set of characters. */
function stepsOf(pattern: string): readonly Step[] {
  return [...pattern.matchAll(/\*\*\/|\*\*|[*?]|\[[^\]/[]+\]|[^]/gu)].map(([part]): Step => {
    if (part === '**/') return { kind: 'folders' };
    if (part === '**') return { kind: 'many', fits: isAnything };
    if (part === '*') return { kind: 'many', fits: isNoSlash };
    if (part === '?') return { kind: 'one', fits: isNoSlash };
    if (part.length < 3) return { kind: 'one', fits: (character) => character === part };
    const set = new RegExp(`^${part.replaceAll('\\', String.raw`\\`)}$`, 's');
    return { kind: 'one', fits: (character) => set.test(character) };
  });
}

/**
 * Whether a path, or a folder that contains it, fits. Every way that the steps can go is gone at once, so that no pattern takes
 * longer than its length for a character of the path.
 */
function fitsSteps(path: string, steps: readonly Step[]): boolean {
  const enter = (into: Set<number>, at: number): void => {
    into.add(at);
    // Nothing at all is any number, too.
    if (at < steps.length && steps[at]?.kind !== 'one') enter(into, at + 1);
  };
  let now = new Set<number>();
  enter(now, 0);
  for (const character of path) {
    if (character === '/' && now.has(steps.length)) return true;
    const next = new Set<number>();
    for (const at of now) {
      const step = steps[at];
      if (step?.kind === 'folders') {
        next.add(at);
        if (character === '/') enter(next, at + 1);
      } else if (step?.fits(character) === true) enter(next, step.kind === 'many' ? at : at + 1);
    }
    now = next;
  }
  return now.has(steps.length);
}

/**
 * Judges paths relative to the folder, with `/`: the last rule that matches wins, `!` takes back in. Rules count from the
 * folder itself, with or without a leading slash; a rule that is no pattern is left out.
 */
export function ignoreRules(text: string): (path: string) => boolean {
  const rules = text.split(/\r?\n/).flatMap((line) => {
    if (line.startsWith('#')) return [];
    const trimmed = line.trim();
    const back = trimmed.startsWith('!');
    const pattern = (back ? trimmed.slice(1).trim() : trimmed).replace(/^(?:\.?\/)+/, '').replace(/(?<!\/)\/+$/, '');
    if (pattern === '' || pattern === '.') return [];
    try {
      return [{ back, steps: stepsOf(pattern) }];
    } catch {
      return [];
    }
  });
  return (path) => {
    let ignored = false;
    for (const { back, steps } of rules) if (fitsSteps(path, steps)) ignored = !back;
    return ignored;
  };
}
