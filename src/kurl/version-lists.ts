/**
 * The lists of versions of kURL's `web/src/installers/versions.js` (kurl.md 3.4), read without running it: a map of lists
 * of texts. Pure.
 */
import type { Place } from '../core/diagnostic.ts';
import { isVersion } from '../core/ref.ts';

export const VERSION_LISTS = 'web/src/installers/versions.js';

export interface VersionLists {
  /** By key; the first version of a list is `latest`. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
  /** Where and why parsing stopped. */
  readonly problem: { readonly message: string; readonly place: Place } | undefined;
}

const TOKEN = /\s+|\/\/[^\n]*|\/\*[^]*?\*\/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_$][\w$]*|[^]/gy;
const BEGIN = /\bInstallerVersions\s*(?::[^=\n]{0,200})?=\s*(?=\{)/;

class Unreadable extends Error {
  readonly offset: number;
  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** Parses up to the first value that is not a plain list. */
export function readVersionLists(file: string, text: string): VersionLists {
  const lists = new Map<string, readonly string[]>();
  const begin = BEGIN.exec(text);
  try {
    if (begin === null) throw new Unreadable('InstallerVersions is missing', 0);
    readMap(tokensOf(text, begin.index + begin[0].length), lists);
    return { lists, problem: undefined };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const before = text.slice(0, error.offset);
    const place = { file, line: before.split('\n').length, column: error.offset - before.lastIndexOf('\n'), length: 1 };
    return { lists, problem: { message: error.message, place } };
  }
}

interface Token {
  readonly text: string;
  readonly offset: number;
}

/** Ends with an endless sequence of empty tokens. */
function* tokensOf(text: string, from: number): Generator<Token, never> {
  for (const { 0: token, index } of text.slice(from).matchAll(TOKEN)) {
    if (!/^(?:\s|\/\/|\/\*)/.test(token)) yield { text: token, offset: from + index };
  }
  for (;;) yield { text: '', offset: text.length };
}

function readMap(tokens: Generator<Token, never>, lists: Map<string, readonly string[]>): void {
  expect(tokens.next().value, '{');
  for (let key = tokens.next().value; key.text !== '}'; key = tokens.next().value) {
    const name = quotedText(key) ?? (/^[\w$]+$/.test(key.text) ? key.text : undefined);
    if (name === undefined) throw new Unreadable('not the name of an add-on', key.offset);
    if (lists.has(name)) throw new Unreadable(`${name} is listed twice`, key.offset);
    expect(tokens.next().value, ':');
    lists.set(name, readList(tokens));
    const after = tokens.next().value;
    if (after.text === '}') return;
    expect(after, ',');
  }
}

function readList(tokens: Generator<Token, never>): readonly string[] {
  expect(tokens.next().value, '[');
  const versions = new Set<string>();
  for (let item = tokens.next().value; item.text !== ']'; item = tokens.next().value) {
    const version = quotedText(item);
    if (version === undefined) throw new Unreadable('not a plain list of versions in quotes', item.offset);
    if (!isVersion(version))
      throw new Unreadable(`${JSON.stringify(version.slice(0, 60))} is not a version`, item.offset);
    versions.add(version);
    const after = tokens.next().value;
    if (after.text === ']') break;
    expect(after, ',');
  }
  return [...versions];
}

function quotedText({ text }: Token): string | undefined {
  return /^["']/.test(text) && text.length > 1 ? text.slice(1, -1) : undefined;
}

function expect({ text, offset }: Token, expected: string): void {
  if (text !== expected) throw new Unreadable(`"${expected}" is missing`, offset);
}
