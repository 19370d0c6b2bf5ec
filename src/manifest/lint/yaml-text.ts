/**
 * A file of YAML as syntax trees, one document after the other. Bounded: what is too large or too deep is left out and
 * told; aliases are never expanded. Nothing throws for bad input.
 */
import { Document, parseAllDocuments, visit } from 'yaml';
import { isDefinition } from './definition.ts';
import { readPlain, type PlainYaml } from '../../formats/yaml/plain-yaml.ts';
import type { Remark, Spot } from './spot.ts';
import { fillTemplate, type FilledTemplate } from './template.ts';

/** A document, with where it begins in the file; ranges of its nodes count from there. */
export interface YamlDocument {
  readonly tree: Document;
  readonly base: number;
  /** Whether a spot of the document is to be filled in when it is rendered; holes count from its beginning, too. */
  readonly template: Pick<FilledTemplate, 'holes' | 'control'>;
}

const UNFILLED: YamlDocument['template'] = { holes: [], control: false };

type Told = (remark: Remark) => void;

const LONGEST = 1024 * 1024;
const MOST_LINES = 20_000;
const MOST_PARTS = 30_000;
/** What begins a value or an item. */
const PARTS = /[[{,]|[:?-](?=[ \t]|$)/g;
const BLOCK_SCALAR = /[:-][ \t]+[|>][+-]?[1-9]?[+-]?[ \t]*(?:#.*|\r?)$/s;
const MOST_DOCUMENTS = 1000;
const DEEPEST = 200;
const MOST_MISTAKES = 3;
/** Larger ones are generated; parsing them costs more than everything else of an add-on. */
const LARGE_CRD = 16 * 1024;
/** What a document must hold outside of text in blocks for anything to be found in it but mistakes: images and specs. */
const IMAGES = /image|Image|IMAGE/;
const SPECS = /preflight|Preflight|SupportBundle|support-bundle-spec/;
/** Parts of all of those words: a document without them is only read for mistakes. */
const WORDS = ['mage', 'IMAGE', 'reflight', 'SupportBundle', 'support-bundle-spec'] as const;
const RUN_OF_INDICATORS = /(?:[-?][ \t]+){200}/;

interface Reading {
  readonly told: Told;
  readonly each: (document: YamlDocument) => void;
  /** Parse documents too in which nothing is that a rule looks for. */
  readonly all: boolean;
}

/** Calls `each` for every document that parses; unless `all` is wanted, not for those that no rule has to look at. */
export function eachDocument(
  original: string,
  told: Told,
  each: (document: YamlDocument) => void,
  { all = false, clean = false }: { readonly all?: boolean; readonly clean?: boolean } = {},
): void {
  const bad = clean ? null : /[\uFFFD\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.exec(original);
  if (bad !== null) {
    const what = bad[0] === '\u{FFFD}' ? 'the file is not UTF-8 text' : 'the file holds a control character';
    told({ code: 'yaml/encoding', from: bad.index, to: bad.index + 1, message: what });
    return;
  }
  // A byte order mark is allowed, and no part of the first key.
  const text = original.startsWith('\u{FEFF}') ? ` ${original.slice(1)}` : original;
  const chunks = splitDocuments(text);
  for (const spot of chunks.slice(0, MOST_DOCUMENTS)) readChunk(text, spot, { told, each, all });
  const [more] = chunks.slice(MOST_DOCUMENTS);
  if (more === undefined) return;
  const message = `not judged from here: more than ${MOST_DOCUMENTS} documents`;
  told({ code: 'yaml/too-large', from: more.from, to: more.from + 1, message });
}

/** At `---`, which begins a document wherever it stands at the start of a line. Large definitions are left out. */
function splitDocuments(text: string): readonly Spot[] {
  const starts = [0];
  for (let at = text.indexOf('\n---'); at !== -1; at = text.indexOf('\n---', at + 4)) {
    if (/[ \t\r\n]|^$/.test(text.charAt(at + 4))) starts.push(at + 1);
  }
  return starts
    .map((from, index): Spot => ({ from, to: starts[index + 1] ?? text.length }))
    .filter(({ from, to }) => {
      const chunk = text.slice(from, to);
      if (chunk.length > LARGE_CRD && isDefinition(chunk)) return false;
      // Nothing but blanks, comments and directives of the next document.
      return /^(?!---\s*$)[ \t]*[^\s#%]/m.test(chunk);
    });
}

function tooMuch(chunk: string): string | undefined {
  if (chunk.length > LONGEST) return 'the document is larger than 1 MiB';
  // A shorter one cannot have as many of either.
  if (chunk.length >= MOST_LINES) {
    const lines = chunk.split('\n');
    if (lines.length > MOST_LINES) return `the document has more than ${MOST_LINES} lines`;
    if (countParts(lines) > MOST_PARTS) return `the document has more than ${MOST_PARTS} parts`;
  }
  return isTooDeep(chunk) || RUN_OF_INDICATORS.test(chunk) ? 'the document is nested too deeply' : undefined;
}

function isTooDeep(chunk: string): boolean {
  let depth = 0;
  for (let at = 0; at < chunk.length; at += 1) {
    const code = chunk.charCodeAt(at);
    if (code === 0x5b || code === 0x7b) {
      depth += 1;
      if (depth > DEEPEST) return true;
    } else if ((code === 0x5d || code === 0x7d) && depth > 0) depth -= 1;
  }
  return false;
}

/** About as many nodes as the parser will make, each of which costs a kilobyte; text in block scalars makes none. */
function countParts(lines: readonly string[]): number {
  let parts = 0;
  let textBelow: number | undefined;
  for (const line of lines) {
    const indent = line.length - line.trimStart().length;
    if (textBelow !== undefined && (indent > textBelow || indent === line.length)) continue;
    textBelow = BLOCK_SCALAR.test(line) ? indent : undefined;
    parts += line.match(PARTS)?.length ?? 0;
  }
  return parts;
}

/** A text of one document or, where `...` ends one, of several. */
function parse(text: string): readonly Document[] {
  const options = { uniqueKeys: false, strict: false, prettyErrors: false, logLevel: 'silent' } as const;
  const parsed = parseAllDocuments(text, options);
  return Array.isArray(parsed) ? parsed : [];
}

function readChunk(text: string, { from, to }: Spot, { told, each, all }: Reading): void {
  const original = text.slice(from, to);
  const plain = all ? undefined : surveyPlain(original);
  if (plain?.images === false && !plain.specs) return;
  if (plain?.root !== undefined && !plain.specs && tooMuch(original) === undefined) {
    const tree = new Document();
    tree.contents = plain.root;
    each({ tree, base: from, template: UNFILLED });
    return;
  }
  const template = fillTemplate(original);
  const problem = tooMuch(template.text);
  if (problem !== undefined) {
    told({ code: 'yaml/too-large', from, to: from + 1, message: `not judged: ${problem}` });
    return;
  }
  try {
    let trees = parse(template.text);
    const rendered = /[$`]|\{\{|\\"/.test(original);
    // What a here-document or an echo takes the backslashes off.
    if (rendered && hasMistake(trees)) trees = parse(template.text.replaceAll('\\"', ' "'));
    if (hasMistake(trees)) {
      for (const mistake of mistakesOf(trees, from, rendered)) told(mistake);
      return;
    }
    for (const tree of trees) {
      if (!template.control) tellDuplicates(tree, from, told);
      each({ tree, base: from, template });
    }
  } catch (error) {
    // The parser's own stack.
    if (!(error instanceof RangeError)) throw error;
    told({ code: 'yaml/too-large', from, to: from + 1, message: 'not judged: the document is nested too deeply' });
  }
}

interface Survey {
  readonly images: boolean;
  readonly specs: boolean;
  /** Undefined where the parser has to make it. Words of templates stand in it as they are; none looks like an image. */
  readonly root: PlainYaml['root'];
}

/** Undefined where only the parser can tell. */
function surveyPlain(chunk: string): Survey | undefined {
  const mayHold = WORDS.some((word) => chunk.includes(word));
  let [images, specs] = [false, false];
  const each = (line: string): void => {
    images ||= IMAGES.test(line);
    specs ||= SPECS.test(line);
  };
  const plain = readPlain(chunk, { build: mayHold, each: mayHold ? each : undefined });
  return plain === undefined ? undefined : { images, specs, root: plain.root };
}

function hasMistake(trees: readonly Document[]): boolean {
  return trees.some(({ errors }) => errors.length > 0);
}

function mistakesOf(trees: readonly Document[], base: number, rendered: boolean): readonly Remark[] {
  const all = trees.flatMap((tree) => tree.errors);
  // One mistake often is several for the parser.
  const errors = all.filter(({ pos: [from] }, index) => all[index - 1]?.pos[0] !== from);
  return errors.slice(0, rendered ? 1 : MOST_MISTAKES).map(({ message, pos: [from, to] }) => ({
    code: rendered ? 'yaml/template' : 'yaml/syntax',
    from: base + from,
    to: base + to,
    message: rendered ? `not judged before it is rendered: ${message}` : message,
  }));
}

function tellDuplicates(tree: Document, base: number, told: Told): void {
  let found = 0;
  visit(tree, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const scalar = key as { readonly value?: unknown; readonly range?: readonly [number, number, number] | null };
        if (typeof scalar.value !== 'string' || scalar.value === '<<') continue;
        if (seen.has(scalar.value) && found < MOST_MISTAKES && scalar.range) {
          found += 1;
          const message = `the key "${scalar.value.slice(0, 60)}" stands twice`;
          told({ code: 'yaml/duplicate-key', from: base + scalar.range[0], to: base + scalar.range[1], message });
        }
        seen.add(scalar.value);
      }
    },
  });
}
