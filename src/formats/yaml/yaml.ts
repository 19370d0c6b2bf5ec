/**
 * YAML from people as JSON-safe data whose every part can be pointed at. Bounded in size, depth and aliases; nothing
 * throws for bad input.
 */
import {
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Pair,
  type YAMLMap,
} from 'yaml';
import { isObject } from '../../core/json.ts';
import type { Diagnostic, Place } from '../../core/diagnostic.ts';

export type Json = string | number | boolean | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

export type Path = readonly (string | number)[];

export interface YamlText {
  /** Undefined when the text is no YAML, or YAML that is no JSON. Nulls are left out. */
  readonly value: Json | undefined;
  /** Keys of the document itself that hold null, such as `spec:` alone. */
  readonly nullKeys: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
  /** The spot of a key (or of the list item) at this path; the nearest parent's when there is none. */
  readonly placeOf: (path: Path) => Place;
}

const SIZE_LIMIT = 1 << 20;
const DEPTH_LIMIT = 32;
/** Of brackets and dashes as they stand in the text, where some may be words of a script. */
const OPEN_LIMIT = 500;
const ALIAS_LIMIT = 100;
const MOST_FINDINGS = 20;

/** Reads one document of at most 1 MiB. */
export function readYaml(file: string, text: string): YamlText {
  const start: Place = { file, line: 1, column: 1, length: 1 };
  const failed = (code: string, message: string, place = start, hint?: string): YamlText => ({
    value: undefined,
    nullKeys: [],
    diagnostics: [{ code, severity: 'error', message, place, hint }],
    placeOf: () => start,
  });
  // An archive in its place, of which the parser would report every other line.
  if (text.includes('\0')) return failed('yaml/text', 'this is not a text file', start, 'name a file of YAML');
  if (text.length > SIZE_LIMIT) return failed('yaml/size', `the file is larger than ${SIZE_LIMIT} bytes`);
  // Far deeper ones take the parser seconds, or all of the memory.
  if (mostOpen(text) > OPEN_LIMIT) return failed('yaml/depth', 'the document is nested too deeply');
  const lines = new LineCounter();
  const placeAt = (from: number, to: number): Place => {
    const { line, col } = lines.linePos(from);
    const end = text.slice(from, to).search(/[\r\n]/);
    const length = Math.max(1, end === -1 ? to - from : end);
    return { file, line: Math.max(1, line), column: Math.max(1, col), length };
  };
  // Not `^`: to that, lines begin after U+2028 too, which is text to YAML.
  const hard = /(?<![^\r\n])[ \t]*\u00a0/.exec(text);
  try {
    // Its own check of double keys compares each key with each; see duplicates below.
    const options = { lineCounter: lines, uniqueKeys: false, merge: true, prettyErrors: false } as const;
    const document = parseDocument(text, options);
    if (hard !== null) {
      const at = hard.index + hard[0].length - 1;
      return failed('yaml/space', 'a line begins with a non-breaking space', placeAt(at, at + 1), 'use plain spaces');
    }
    const diagnostics: Diagnostic[] = [];
    const errors = document.errors.filter(({ code, pos }) => code !== 'MULTIPLE_DOCS' || !isBlank(text.slice(pos[0])));
    for (const { code, message, pos } of tellable(errors, lines).slice(0, MOST_FINDINGS)) {
      const several = code === 'MULTIPLE_DOCS';
      diagnostics.push({
        code: several ? 'yaml/documents' : 'yaml/syntax',
        severity: 'error',
        message: several ? 'a second document begins here: only one can be in this file' : withoutSource(message),
        place: placeAt(...pos),
        hint: several
          ? 'put each document into a file of its own'
          : code === 'TAB_AS_INDENT'
            ? 'indent with blanks'
            : undefined,
      });
    }
    for (const { message, pos } of document.warnings.slice(0, MOST_FINDINGS)) {
      diagnostics.push({
        code: 'yaml/tag',
        severity: 'warning',
        message: withoutSource(message),
        place: placeAt(...pos),
      });
    }
    if (errors.length === 0) diagnostics.push(...keyFindings(document, placeAt));
    const pairOf = pairFinder();
    const placeOf = (path: Path): Place => placeInside(document, path, { placeAt, pairOf }) ?? start;
    if (diagnostics.some(({ severity }) => severity === 'error'))
      return { value: undefined, nullKeys: [], diagnostics, placeOf };
    const raw: unknown = document.toJS({ maxAliasCount: ALIAS_LIMIT });
    const value = plain(raw, [], (path, message) => {
      diagnostics.push({ code: 'yaml/value', severity: 'error', message, place: placeOf(path) });
    });
    return {
      value: diagnostics.some(({ severity }) => severity === 'error') ? undefined : value,
      nullKeys: Object.entries(isObject(raw) ? raw : {}).flatMap(([key, item]) => (item === null ? [key] : [])),
      diagnostics,
      placeOf,
    };
  } catch (error) {
    // Thrown by the parser for what it will not expand: too many aliases, an anchor inside itself, endless nesting.
    if (error instanceof RangeError) return failed('yaml/depth', 'the document is nested too deeply');
    if (error instanceof ReferenceError)
      return failed('yaml/aliases', `its aliases cannot be expanded: ${withoutSource(error.message)}`);
    throw error;
  }
}

/** Some messages of the parser end in what it has read there, which may be a part of a password. */
function withoutSource(message: string): string {
  return message.replace(/(?<=[\w)]): .*$/s, '');
}

/** No document: separators and comments only, as many a tool leaves at the end. */
function isBlank(text: string): boolean {
  return text.split(/\r\n|[\r\n]/).every((line) => /^(?:---|\.\.\.)?[ \t]*(?:#.*)?$/.test(line));
}

/** One of each line, and where tabs indent nothing else: the parser loses its way behind them. */
function tellable(errors: Document['errors'], lines: LineCounter): Document['errors'] {
  const tabs = errors.filter(({ code }) => code === 'TAB_AS_INDENT');
  const seen = new Set<number>();
  return (tabs.length > 0 ? tabs : errors).filter(({ pos }) => {
    const { line } = lines.linePos(pos[0]);
    return !seen.has(line) && seen.add(line) !== undefined;
  });
}

type PlaceAt = (from: number, to: number) => Place;

/** Keys that stand twice in one map, and keys that are no plain words. */
function keyFindings(document: Document, placeAt: PlaceAt): readonly Diagnostic[] {
  const found: Diagnostic[] = [];
  const add = (code: string, message: string, range: readonly [number, number, number] | null | undefined): void => {
    if (found.length < MOST_FINDINGS) {
      found.push({ code, severity: 'error', message, place: placeAt(range?.[0] ?? 0, range?.[1] ?? 1) });
    }
  };
  visit(document, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        if (!isScalar(key) || !['string', 'number'].includes(typeof key.value)) {
          const range = typeof key === 'object' && key !== null && 'range' in key ? map.range : undefined;
          if (!(isScalar(key) && typeof key.value === 'symbol')) add('yaml/key', 'a key must be a word', range);
          continue;
        }
        const name = String(key.value);
        if (seen.has(name) && name !== '<<') add('yaml/duplicate', `"${name}" stands twice`, key.range);
        seen.add(name);
      }
    },
  });
  return found;
}

type PairOf = (map: YAMLMap, step: string) => Pair | undefined;

/** Finds the first pair of a key. Maps are gone through once, however many places in them are asked for. */
function pairFinder(): PairOf {
  const seen = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>();
  return (map, step) => {
    const known = seen.get(map);
    if (known !== undefined) return known.get(step);
    const pairs = new Map<string, Pair>();
    for (const pair of map.items) {
      const name = isScalar(pair.key) ? String(pair.key.value) : undefined;
      if (name !== undefined && !pairs.has(name)) pairs.set(name, pair);
    }
    seen.set(map, pairs);
    return pairs.get(step);
  };
}

function placeInside(
  document: Document,
  path: Path,
  { placeAt, pairOf }: { readonly placeAt: PlaceAt; readonly pairOf: PairOf },
): Place | undefined {
  let node: unknown = document.contents;
  let place: Place | undefined;
  for (const step of path) {
    if (isMap(node)) {
      const pair = pairOf(node, String(step));
      if (pair === undefined) return place;
      if (isScalar(pair.key) && pair.key.range) place = placeAt(pair.key.range[0], pair.key.range[1]);
      node = pair.value;
    } else if (isSeq(node) && typeof step === 'number') {
      node = node.items[step];
      if (isScalar(node) && node.range) place = placeAt(node.range[0], node.range[1]);
    } else {
      return place;
    }
  }
  return place;
}

/** Brackets that are open at the same time, or marks of nested lists one behind the other, whichever are more. */
function mostOpen(text: string): number {
  let [open, most, marks] = [0, 0, 0];
  for (const character of text) {
    if (character === '[' || character === '{') open += 1;
    else if (character === ']' || character === '}') open = Math.max(0, open - 1);
    if (character === '-' || character === '?') marks += 1;
    else if (character !== ' ' && character !== '\t') marks = 0;
    most = Math.max(most, open, marks);
  }
  return most;
}

/** Checks that a value is JSON of sane depth, and drops nulls: a null says the same as a key that is absent. */
function plain(value: unknown, path: Path, complain: (path: Path, message: string) => void): Json | undefined {
  if (path.length > DEPTH_LIMIT) {
    complain(path, `nested deeper than ${DEPTH_LIMIT} levels`);
    return undefined;
  }
  if (value === null || value === undefined || typeof value === 'boolean') return value ?? undefined;
  if (typeof value === 'string') {
    if (value.includes('\u0000')) complain(path, 'a text holds a NUL character');
    return value;
  }
  if (typeof value === 'number') {
    const exact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    if (!exact) complain(path, 'the number cannot be kept exactly: write it in quotes');
    return value;
  }
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (const [index, item] of value.entries()) {
      const kept = plain(item, [...path, index], complain);
      if (kept !== undefined) items.push(kept);
    }
    return items;
  }
  if (typeof value !== 'object') {
    complain(path, 'not a JSON value');
    return undefined;
  }
  const entries = Object.entries(value).flatMap(([key, item]): [string, Json][] => {
    const kept = plain(item, [...path, key], complain);
    return kept === undefined ? [] : [[key, kept]];
  });
  return Object.fromEntries(entries);
}

/** JSON text as data of the same kind; undefined for what is no JSON. */
export function readJson(text: string): Json | undefined {
  try {
    let sound = true;
    const value = plain(JSON.parse(text) as unknown, [], () => {
      sound = false;
    });
    return sound ? value : undefined;
  } catch {
    return undefined;
  }
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && !Array.isArray(value);
}
