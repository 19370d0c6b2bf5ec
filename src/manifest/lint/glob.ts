/** Patterns for paths: `*` and `?` within a name, `**` for any number of folders. Pure; no backtracking that explodes. */

/** Whether a path with `/` fits a pattern. A pattern that names a folder fits all below it. */
export function fitsGlob(path: string, pattern: string): boolean {
  const clean = pattern.replace(/^\.?\//, '').replace(/(?<!\/)\/+$/, '');
  const parts = [...clean.split('/'), '**'];
  // Any number of folders twice is any number.
  const once = parts.filter((part, index) => part !== '**' || parts[index - 1] !== '**');
  return fitsParts(path.split('/'), once);
}

/** Each part of the pattern in turn: which beginnings of the path it can end at. */
function fitsParts(names: readonly string[], parts: readonly string[]): boolean {
  let ends = new Set([0]);
  for (const part of parts) {
    const next = new Set<number>();
    for (const end of ends) {
      if (part === '**') for (let at = end; at <= names.length; at += 1) next.add(at);
      else if (end < names.length && fitsName(names[end] ?? '', part)) next.add(end + 1);
    }
    ends = next;
  }
  return ends.has(names.length);
}

/** One name against `*` and `?`: on a mismatch only the last star is moved. */
function fitsName(name: string, part: string): boolean {
  let [at, from] = [0, 0];
  let star: { readonly part: number; name: number } | undefined;
  while (at < name.length) {
    if (part[from] === '*') {
      star = { part: from, name: at };
      from += 1;
    } else if (part[from] === '?' || part[from] === name[at]) {
      from += 1;
      at += 1;
    } else if (star !== undefined) {
      star.name += 1;
      at = star.name;
      from = star.part + 1;
    } else return false;
  }
  while (part[from] === '*') from += 1;
  return from === part.length;
}
