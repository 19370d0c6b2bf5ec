/**
 * A YAML file as syntax trees, one document after the other. Bounded: skips and reports documents that are too large or too
 * deep; never expands aliases. Never throws for bad input.
 */
import { Document, parseAllDocuments, visit } from 'yaml';
import { isDefinition } from './definition.ts';
import { readPlain, type PlainYaml } from '../../formats/yaml/plain-yaml.ts';
import type { Remark, Spot } from './spot.ts';
import { fillTemplate, type FilledTemplate } from './template.ts';

/** A document and its offset in the file; ranges of its nodes are relative to it. */
export interface YamlDocument {
  readonly tree: Document;
  readonly base: number;
  /** The unrendered parts of the document; holes are also relative to its offset. */
  readonly template: Pick<FilledTemplate, 'holes' | 'control'>;
}

const UNFILLED: YamlDocument['template'] = { holes: [], control: false };

type AddRemark = (remark: Remark) => void;

const MAX_LENGTH = 1024 * 1024;
const MAX_LINES = 20_000;
const MAX_PARTS = 30_000;
/** Characters that begin a value or an item. */
const PARTS = /[[{,]|[:?-](?=[ \t]|$)/g;
const BLOCK_SCALAR = /[:-][ \t]+[|>][+-]?[1-9]?[+-]?[ \t]*(?:#.*|\r?)$/s;
const MAX_DOCUMENTS = 1000;
const DEEPEST = 200;
const MAX_MISTAKES = 3;
/** Larger definitions are generated; parsing them takes longer than everything else of an add-on. */
const LARGE_CRD = 16 * 1024;
/** Text that a document must contain outside block scalars to name images or specs. */
const IMAGES = /image|Image|IMAGE/;
const SPECS = /preflight|Preflight|SupportBundle|support-bundle-spec/;
/** Parts of all these words: a document without them is only checked for errors. */
const RELEVANT_WORDS = ['mage', 'IMAGE', 'reflight', 'SupportBundle', 'support-bundle-spec'] as const;
const RUN_OF_INDICATORS = /(?:[-?][ \t]+){200}/;

interface Reading {
  readonly addRemark: AddRemark;
  readonly each: (document: YamlDocument) => void;
  /** Also parse documents that are irrelevant to all rules. */
  readonly all: boolean;
}

/** Calls `each` for every document that parses; without `all`, only for documents that are relevant to a rule. */
export function eachDocument(
  original: string,
  addRemark: AddRemark,
  each: (document: YamlDocument) => void,
  { all = false, clean = false }: { readonly all?: boolean; readonly clean?: boolean } = {},
): void {
  const bad = clean ? null : /[\uFFFD\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.exec(original);
  if (bad !== null) {
    const what = bad[0] === '\u{FFFD}' ? 'the file is not UTF-8 text' : 'the file contains a control character';
    addRemark({ code: 'yaml/encoding', from: bad.index, to: bad.index + 1, message: what });
    return;
  }
  // A byte order mark is allowed, and is not part of the first key.
  const text = original.startsWith('\u{FEFF}') ? ` ${original.slice(1)}` : original;
  const chunks = splitDocuments(text);
  for (const spot of chunks.slice(0, MAX_DOCUMENTS)) readChunk(text, spot, { addRemark, each, all });
  const [more] = chunks.slice(MAX_DOCUMENTS);
  if (more === undefined) return;
  const message = `not checked from here: more than ${MAX_DOCUMENTS} documents`;
  addRemark({ code: 'yaml/too-large', from: more.from, to: more.from + 1, message });
}

/** Splits at `---` at the start of a line. Leaves out large resource definitions. */
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
      // Excludes chunks with only blanks, comments and directives of the next document.
      return /^(?!---\s*$)[ \t]*[^\s#%]/m.test(chunk);
    });
}

function tooMuch(chunk: string): string | undefined {
  if (chunk.length > MAX_LENGTH) return 'the document is larger than 1 MiB';
  // A shorter document cannot exceed either limit.
  if (chunk.length >= MAX_LINES) {
    const lines = chunk.split('\n');
    if (lines.length > MAX_LINES) return `the document has more than ${MAX_LINES} lines`;
    if (countParts(lines) > MAX_PARTS) return `the document has more than ${MAX_PARTS} parts`;
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

/** Estimates the number of nodes that the parser would create, a kilobyte each; block scalars do not count. */
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

/** Parses a text of one document, or of several if it contains `...`. */
function parse(text: string): readonly Document[] {
  const options = { uniqueKeys: false, strict: false, prettyErrors: false, logLevel: 'silent' } as const;
  const parsed = parseAllDocuments(text, options);
  return Array.isArray(parsed) ? parsed : [];
}

function readChunk(text: string, { from, to }: Spot, { addRemark, each, all }: Reading): void {
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
    addRemark({ code: 'yaml/too-large', from, to: from + 1, message: `not checked: ${problem}` });
    return;
  }
  try {
    let trees = parse(template.text);
    const rendered = /[$`]|\{\{|\\"/.test(original);
    // A here-document or an echo removes these backslashes.
    if (rendered && hasErrors(trees)) trees = parse(template.text.replaceAll('\\"', ' "'));
    if (hasErrors(trees)) {
      for (const remark of errorRemarks(trees, from, rendered)) addRemark(remark);
      return;
    }
    for (const tree of trees) {
      if (!template.control) reportDuplicates(tree, from, addRemark);
      each({ tree, base: from, template });
    }
  } catch (error) {
    // The parser's stack overflowed.
    if (!(error instanceof RangeError)) throw error;
    addRemark({
      code: 'yaml/too-large',
      from,
      to: from + 1,
      message: 'not checked: the document is nested too deeply',
    });
  }
}

interface Survey {
  readonly images: boolean;
  readonly specs: boolean;
  /** Undefined if the parser must build it. Contains template text unchanged, which never looks like an image. */
  readonly root: PlainYaml['root'];
}

/** Undefined if only the parser can decide. */
function surveyPlain(chunk: string): Survey | undefined {
  const isRelevant = RELEVANT_WORDS.some((word) => chunk.includes(word));
  let [images, specs] = [false, false];
  const each = (line: string): void => {
    images ||= IMAGES.test(line);
    specs ||= SPECS.test(line);
  };
  const plain = readPlain(chunk, { build: isRelevant, each: isRelevant ? each : undefined });
  return plain === undefined ? undefined : { images, specs, root: plain.root };
}

function hasErrors(trees: readonly Document[]): boolean {
  return trees.some(({ errors }) => errors.length > 0);
}

function errorRemarks(trees: readonly Document[], base: number, rendered: boolean): readonly Remark[] {
  const all = trees.flatMap((tree) => tree.errors);
  // The parser often reports several errors for one mistake.
  const errors = all.filter(({ pos: [from] }, index) => all[index - 1]?.pos[0] !== from);
  return errors.slice(0, rendered ? 1 : MAX_MISTAKES).map(({ message, pos: [from, to] }) => ({
    code: rendered ? 'yaml/template' : 'yaml/syntax',
    from: base + from,
    to: base + to,
    message: rendered ? `not checked until it is rendered: ${message}` : message,
  }));
}

function reportDuplicates(tree: Document, base: number, addRemark: AddRemark): void {
  let count = 0;
  visit(tree, {
    Map(_, map) {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        const scalar = key as { readonly value?: unknown; readonly range?: readonly [number, number, number] | null };
        if (typeof scalar.value !== 'string' || scalar.value === '<<') continue;
        if (seen.has(scalar.value) && count < MAX_MISTAKES && scalar.range) {
          count += 1;
          const message = `the key "${scalar.value.slice(0, 60)}" is listed twice`;
          addRemark({ code: 'yaml/duplicate-key', from: base + scalar.range[0], to: base + scalar.range[1], message });
        }
        seen.add(scalar.value);
      }
    },
  });
}
