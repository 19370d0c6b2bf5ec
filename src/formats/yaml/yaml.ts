/**
 * Parses YAML from users into JSON-safe data with the place of every part. Bounded in size, depth and aliases; never throws
 * for bad input.
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
import { hasErrors, type Diagnostic, type Place } from '../../core/diagnostic.ts';
import { checkTree, type SettleRules } from './checked-nodes.ts';
import { splitJsonStream } from './json-stream.ts';

export type Json = string | number | boolean | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

export type Path = readonly (string | number)[];

export interface YamlText {
  /** Undefined if the text is not YAML, or not JSON-safe. Nulls are left out. */
  readonly value: Json | undefined;
  /** Keys whose value is null in the map at this path, such as `spec:` alone at the top. */
  readonly nullKeys: (path: Path) => readonly string[];
  readonly diagnostics: readonly Diagnostic[];
  /** The place of the key or list item at this path, or of its nearest existing parent. */
  readonly placeOf: (path: Path) => Place;
  /** The text of the scalar at this path, if it is written without quotes, a block or a tag. */
  readonly plainText: (path: Path) => string | undefined;
}

const SIZE_LIMIT = 1 << 20;
const DEPTH_LIMIT = 32;
/** Limit on brackets and dashes in the text, some of which may belong to scripts in strings. */
const OPEN_LIMIT = 500;
const ALIAS_LIMIT = 100;
const MAX_FINDINGS = 20;
const NOWHERE: SettleRules['kubernetes'] = () => false;
/** Tags that settle() knows. go-yaml knows no sets and no ordered maps. */
const GO_TAGS = {
  resolveKnownTags: false,
  customTags: ['null', 'bool', 'int', 'float', 'binary', 'timestamp'].map((name) => ({
    tag: `tag:yaml.org,2002:${name}`,
    resolve: (text: string): string => text,
  })),
} as const;

export interface YamlOptions {
  /** Most characters; 1 Mi by default. */
  readonly limit?: number;
  /** Deepest nesting; 32 by default. */
  readonly deepest?: number;
  /** The line of the file in which the text begins; 1 by default. */
  readonly firstLine?: number;
  /**
   * Whether the part at this path follows the rules of Kubernetes' tools, those of go-yaml: no part by default. In these parts
   * nulls are values, and integers beyond 2^53 are bigints.
   */
  readonly kubernetes?: (path: Path) => boolean;
}

/** Reads one document. */
export function readYaml(
  file: string,
  text: string,
  { limit = SIZE_LIMIT, deepest = DEPTH_LIMIT, firstLine = 1, kubernetes }: YamlOptions = {},
): YamlText {
  const start: Place = { file, line: firstLine, column: 1, length: 1 };
  const failed = (code: string, message: string, place = start, hint?: string): YamlText => ({
    value: undefined,
    ...UNREAD_TEXT,
    diagnostics: [{ code, severity: 'error', message, place, hint }],
    placeOf: () => start,
  });
  // Such as an archive, for which the parser would report nearly every line.
  if (text.includes('\0')) return failed('yaml/text', 'this is not a text file', start, 'use a YAML file');
  if (text.length > limit) return failed('yaml/size', `the file is larger than ${limit} bytes`);
  // Much deeper documents take the parser seconds, or all memory.
  if (maxOpen(text) > OPEN_LIMIT) return failed('yaml/depth', TOO_DEEP);
  const lines = new LineCounter();
  const placeAt = (from: number, to: number): Place => {
    const { line, col } = lines.linePos(from);
    const end = text.slice(from, to).search(/[\r\n]/);
    const length = Math.max(1, end === -1 ? to - from : end);
    return { file, line: Math.max(1, line) + firstLine - 1, column: Math.max(1, col), length };
  };
  // Not `^`, which also matches after U+2028, text in YAML.
  const hard = /(?<![^\r\n])[ \t]*\u00a0/.exec(text);
  try {
    // The parser's check for duplicate keys is quadratic; see settle.
    const options = { lineCounter: lines, uniqueKeys: false, merge: true, prettyErrors: false } as const;
    const document = parseDocument(text, kubernetes === undefined ? options : { ...options, ...GO_TAGS });
    if (hard !== null) {
      const at = hard.index + hard[0].length - 1;
      return failed('yaml/space', 'a line begins with a non-breaking space', placeAt(at, at + 1), 'use plain spaces');
    }
    const diagnostics: Diagnostic[] = [];
    const tooDeep = document.errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION');
    if (tooDeep !== undefined) return failed('yaml/depth', TOO_DEEP, placeAt(...tooDeep.pos));
    const errors = document.errors.filter(({ code, pos }) => code !== 'MULTIPLE_DOCS' || !isBlank(text.slice(pos[0])));
    for (const { code, message, pos } of usefulErrors(errors, lines).slice(0, MAX_FINDINGS)) {
      const several = code === 'MULTIPLE_DOCS';
      diagnostics.push({
        code: several ? 'yaml/documents' : 'yaml/syntax',
        severity: 'error',
        message: several ? 'a second document begins here, but this file may contain only one' : withoutSource(message),
        place: placeAt(...pos),
        hint: several
          ? 'put each document into a separate file'
          : code === 'TAB_AS_INDENT'
            ? 'indent with blanks'
            : undefined,
      });
    }
    for (const { message, pos } of document.warnings.slice(0, MAX_FINDINGS)) {
      diagnostics.push({
        code: 'yaml/tag',
        severity: 'warning',
        message: withoutSource(message),
        place: placeAt(...pos),
      });
    }
    const rules = { kubernetes: kubernetes ?? NOWHERE };
    const lastLine = text.slice(text.lastIndexOf('\n') + 1);
    if (kubernetes !== undefined && lastLine.trim() !== '' && !lastLine.endsWith('\r')) endAsGo(document, text.length);
    if (errors.length === 0) diagnostics.push(...nodeFindings(document, rules, placeAt));
    const pairOf = pairFinder();
    const find = (path: Path): Found => findInside(document, path, { placeAt, pairOf });
    const placeOf = (path: Path): Place => find(path).place ?? start;
    if (hasErrors(diagnostics)) return { value: undefined, ...UNREAD_TEXT, diagnostics, placeOf };
    const raw: unknown = document.toJS({ maxAliasCount: ALIAS_LIMIT });
    const complain = (path: Path, message: string): void => {
      diagnostics.push({ code: 'yaml/value', severity: 'error', message, place: placeOf(path) });
    };
    const value = plain(raw, [], { deepest, complain, ...rules });
    return {
      value: hasErrors(diagnostics) ? undefined : (value as Json | undefined),
      nullKeys: (path) => nullKeys(raw, path),
      diagnostics,
      placeOf,
      plainText: (path) => plainText(find(path).node),
    };
  } catch (error) {
    // The parser throws for aliases that it cannot expand (too many, or recursive) and for endless nesting.
    if (error instanceof RangeError) return failed('yaml/depth', TOO_DEEP);
    if (error instanceof ReferenceError)
      return failed('yaml/aliases', `its aliases cannot be expanded: ${withoutSource(error.message)}`);
    if (error instanceof Error && error.message.startsWith('Merge sources'))
      return failed('yaml/merge', 'the value of a key << is neither a map nor a list of maps');
    throw error;
  }
}

const TOO_DEEP = 'the document is nested too deeply';
const UNREAD_TEXT: Pick<YamlText, 'nullKeys' | 'plainText'> = { nullKeys: () => [], plainText: () => undefined };

function nullKeys(value: unknown, [first, ...rest]: Path): readonly string[] {
  if (!isObject(value)) return [];
  if (first !== undefined) return nullKeys(Object.hasOwn(value, first) ? value[first] : undefined, rest);
  return Object.entries(value).flatMap(([key, item]) => (item === null ? [key] : []));
}

function plainText(node: unknown): string | undefined {
  return isScalar(node) && node.type === 'PLAIN' && node.tag === undefined ? node.source : undefined;
}

/** Some parser messages end with source text, which may be a part of a password. */
function withoutSource(message: string): string {
  return message.replace(/(?<=[\w)]): .*$/s, '');
}

/** Not a document: only separators and comments, which many tools leave at the end. */
function isBlank(text: string): boolean {
  return text.split(/\r\n|[\r\n]/).every((line) => /^(?:---|\.\.\.)?[ \t]*(?:#.*)?$/.test(line));
}

/** The first error of each line; only tab errors if there are any, since they cause the others. */
function usefulErrors(errors: Document['errors'], lines: LineCounter): Document['errors'] {
  const tabs = errors.filter(({ code }) => code === 'TAB_AS_INDENT');
  const seen = new Set<number>();
  return (tabs.length > 0 ? tabs : errors).filter(({ pos }) => {
    const { line } = lines.linePos(pos[0]);
    return !seen.has(line) && seen.add(line) !== undefined;
  });
}

type PlaceAt = (from: number, to: number) => Place;

function nodeFindings(
  { contents }: Document,
  rules: Pick<SettleRules, 'kubernetes'>,
  placeAt: PlaceAt,
): readonly Diagnostic[] {
  const findings: Diagnostic[] = [];
  checkTree(contents, [], {
    ...rules,
    complain: (code, message, range) => {
      if (findings.length === MAX_FINDINGS) return;
      const place = placeAt(range?.[0] ?? 0, range?.[1] ?? 1);
      findings.push({ code: `yaml/${code}`, severity: 'error', message, place });
    },
  });
  return findings;
}

type PairOf = (map: YAMLMap, step: string) => Pair | undefined;

/** Finds the first pair of a key. Indexes each map once, regardless of the number of lookups. */
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

interface Found {
  /** The place of the part, or of its nearest parent. */
  readonly place: Place | undefined;
  readonly node: unknown;
}

function findInside(
  document: Document,
  path: Path,
  { placeAt, pairOf }: { readonly placeAt: PlaceAt; readonly pairOf: PairOf },
): Found {
  let node: unknown = document.contents;
  let place: Place | undefined;
  for (const step of path) {
    if (isMap(node)) {
      const pair = pairOf(node, String(step));
      if (pair === undefined) return { place, node: undefined };
      if (isScalar(pair.key) && pair.key.range) place = placeAt(pair.key.range[0], pair.key.range[1]);
      node = pair.value;
    } else if (isSeq(node) && typeof step === 'number') {
      node = node.items[step];
      if (isScalar(node) && node.range) place = placeAt(node.range[0], node.range[1]);
    } else {
      return { place, node: undefined };
    }
  }
  return { place, node };
}

/** The most brackets that are open at once, or the longest run of nested list marks, whichever is larger. */
function maxOpen(text: string): number {
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

interface Rules extends Pick<SettleRules, 'kubernetes'> {
  readonly deepest: number;
  readonly complain: (path: Path, message: string) => void;
}

/**
 * Checks that a value is JSON within the depth limit, and drops nulls, which are equivalent to absent keys except in parts of
 * Kubernetes.
 */
function plain(value: unknown, path: Path, rules: Rules): unknown {
  const { deepest, complain } = rules;
  const isKubernetes = rules.kubernetes(path);
  if (path.length > deepest) complain(path, `nested deeper than ${deepest} levels`);
  else if (value === null || value === undefined) return isKubernetes ? null : undefined;
  else if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => {
      const result = plain(item, [...path, index], rules);
      return result === undefined ? [] : [result];
    });
  } else if (isObject(value) && Object.getPrototypeOf(value) === Object.prototype) {
    const entries = Object.entries(value).map(([key, item]) => [key, plain(item, [...path, key], rules)] as const);
    return Object.fromEntries(entries.filter(([, item]) => item !== undefined));
  } else if (typeof value === 'string') {
    if (value.includes('\u0000')) complain(path, 'a text contains a NUL character');
    // No text in UTF-8 contains one, so that another text would be sent.
    if (/\p{Surrogate}/u.test(value)) complain(path, 'a text contains half of a surrogate pair');
  } else if (typeof value === 'number') {
    const exact = Number.isFinite(value) && (isKubernetes || !Number.isInteger(value) || Number.isSafeInteger(value));
    if (!exact) complain(path, 'the number cannot be represented exactly: write it in quotes');
  } else if (typeof value !== 'boolean' && !(isKubernetes && typeof value === 'bigint')) {
    complain(path, 'not a JSON value');
  }
  return value;
}

/** A document of a file, and the line in which it begins. */
export interface YamlPart {
  readonly text: string;
  readonly line: number;
}

/**
 * The documents of a file, split at lines of three dashes as Kubernetes' tools do, and those of JSON also without such lines; not
 * those with nothing but comments.
 */
export function splitYaml(text: string): readonly YamlPart[] {
  const parts: YamlPart[] = [];
  const separator = /(?<![^\n])---[ \t]*(?:#[^\n]*|\r?)(?=\n|$)/g;
  let from = 0;
  let line = 1;
  const add = (part: string): void => {
    if (/^[ \t]*[^\s#]/m.test(part)) parts.push({ text: part, line });
    for (let at = part.indexOf('\n'); at !== -1; at = part.indexOf('\n', at + 1)) line += 1;
  };
  const stream = splitJsonStream(text);
  if (stream !== undefined) {
    for (const part of stream) add(part);
    return parts;
  }
  for (let end = separator.exec(text); end !== null; end = separator.exec(text)) {
    add(text.slice(from, end.index));
    from = end.index + end[0].length;
  }
  add(text.slice(from));
  return parts;
}

/** A block that ends with the file, without a line break, gets none from go-yaml. */
function endAsGo(document: Document, end: number): void {
  visit(document, {
    Scalar: (_key, node) => {
      if (node.type !== 'BLOCK_LITERAL' && node.type !== 'BLOCK_FOLDED') return;
      if ((node.range?.[1] ?? 0) >= end && typeof node.value === 'string') node.value = node.value.replace(/\n$/, '');
    },
  });
}

/** JSON text as the same kind of data; undefined if it is not valid JSON. */
export function readJsonText(text: string): Json | undefined {
  try {
    let sound = true;
    const complain = (): void => {
      sound = false;
    };
    const value = plain(JSON.parse(text) as unknown, [], { deepest: DEPTH_LIMIT, complain, kubernetes: NOWHERE });
    return sound ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && !Array.isArray(value);
}
