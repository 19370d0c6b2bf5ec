/** Parts a YAML text into definitions of resources, which are applied first, and the rest. Pure. */

export interface SplitResources {
  /** Empty when there is nothing. */
  readonly definitions: string;
  readonly rest: string;
}

const START = /^---([ \t]|$)/;
const DEFINITION = /^kind:[ \t]*["']?CustomResourceDefinition["']?[ \t]*$/;
const NOTHING = /^[ \t]*(?:#.*)?$/;

/**
 * By lines, as the generator of a template does: documents without anything but comments are left out, line ends and a
 * byte order mark are made Unix's.
 */
export function splitResources(text: string): SplitResources {
  const parts: Record<keyof SplitResources, string[]> = { definitions: [], rest: [] };
  let document: string[] = [];
  const flush = (): void => {
    if (!document.every((line) => NOTHING.test(line))) {
      const part = document.some((line) => DEFINITION.test(line)) ? parts.definitions : parts.rest;
      part.push('---', ...document);
    }
    document = [];
  };
  const lines = text.replace(/^\u{FEFF}/u, '').split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  for (const line of lines) {
    if (!START.test(line)) {
      document.push(line);
      continue;
    }
    flush();
    const behind = line.replace(/^---[ \t]*/, '');
    if (behind !== '' && !behind.startsWith('#')) document.push(behind);
  }
  flush();
  const joined = (part: readonly string[]): string => part.map((line) => `${line}\n`).join('');
  return { definitions: joined(parts.definitions), rest: joined(parts.rest) };
}
