/** JSON objects one after another, without lines of dashes, as tools of Kubernetes read them and `jq` writes them. Pure. */

/** The texts of the objects in order; undefined if the text is anything but two or more of them. */
export function splitJsonStream(text: string): readonly string[] | undefined {
  if (!/^\s*\{/.test(text) || !/\}\s*\{/.test(text)) return undefined;
  const starts: number[] = [];
  let depth = 0;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === '{' && depth === 0) starts.push(index);
    if (token === '{') depth += 1;
    if (token === '}') depth -= 1;
  }
  const parts = starts.map((_start, at) => text.slice(at === 0 ? 0 : starts[at], starts[at + 1]));
  return parts.length > 1 && parts.every(isJson) ? parts : undefined;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
