/** `.dockerignore`: which files of a folder a build does not see. Pure. */

const SPECIAL = /[.+^${}()|\\]/g;

/** `*` and `?` stop at a slash, `**` does not; `[…]` is a set of characters. */
function patternOf(pattern: string): RegExp {
  let source = '';
  for (let at = 0; at < pattern.length;) {
    const rest = pattern.slice(at);
    const [set] = /^\[[^\]/]+\]/.exec(rest) ?? [];
    if (rest.startsWith('**/')) [source, at] = [`${source}(?:.*/)?`, at + 3];
    else if (rest.startsWith('**')) [source, at] = [`${source}.*`, at + 2];
    else if (rest.startsWith('*')) [source, at] = [`${source}[^/]*`, at + 1];
    else if (rest.startsWith('?')) [source, at] = [`${source}[^/]`, at + 1];
    else if (set === undefined) [source, at] = [source + rest.charAt(0).replaceAll(SPECIAL, String.raw`\$&`), at + 1];
    else [source, at] = [source + set.replaceAll('\\', String.raw`\\`), at + set.length];
  }
  // What a matched folder holds is matched too.
  return new RegExp(`^${source}(?:/.*)?$`, 's');
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
    const pattern = (back ? trimmed.slice(1).trim() : trimmed).replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');
    if (pattern === '' || pattern === '.') return [];
    try {
      return [{ back, expression: patternOf(pattern) }];
    } catch {
      return [];
    }
  });
  return (path) => {
    let ignored = false;
    for (const { back, expression } of rules) if (expression.test(path)) ignored = !back;
    return ignored;
  };
}
